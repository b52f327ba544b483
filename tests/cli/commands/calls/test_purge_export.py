"""`afoot purge` and `export`, with a gateway and without one."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.cli.conftest import Run, program
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api


def test_calls_go_from_a_running_gateway(run: Run, api: Api) -> None:
    """H6: the command says how many went."""
    call = api.ended(api.start("add", a=1, b=2))["id"]
    until(lambda: not api.get("/api/snapshot").body["calls"], "nothing lives")
    done = run("purge", "--call", call[-8:])
    assert (done.returncode, done.stdout) == (0, "1 call went for good\n")
    api.ended(api.start("add", a=1, b=2))
    until(lambda: not api.get("/api/snapshot").body["calls"], "nothing lives")
    told = run("purge", "--all", "--json")
    assert told.returncode == 0 and json.loads(told.stdout)["purged"] >= 1
    assert api.get("/api/calls?state=finished").body["calls"] == []
    assert json.loads(run("purge", "--older", "5", "--json").stdout) == {"purged": 0}


def test_which_calls_must_be_said(run: Run) -> None:
    """H6: exit 2, and nothing goes."""
    nothing: list[str] = []
    for words in (
        nothing, ["--all", "--keep", "3"], ["--keep", "-1"], ["--store", "/no/such.db", "--all"],
        ["--older", "nan"], ["--older", "inf"], ["--older", "-1"], ["--keep", "some"],
    ):  # fmt: skip
        assert run("purge", *words).returncode == 2, words
    assert run("purge", "--keep", "9" * 30).stdout == "0 calls went for good\n"
    assert run("purge", "--call", "nobody00").returncode == 2


def test_the_history_is_printed_as_lines(run: Run, api: Api) -> None:
    """H6: all of it, or one call."""
    call = api.ended(api.start("add", a=1, b=2))["id"]
    api.ended(api.start("add", a=3, b=4))
    every = [json.loads(line) for line in run("export").stdout.splitlines()]
    one = [json.loads(line) for line in run("export", call, "--json").stdout.splitlines()]
    assert [line["fact"]["type"] for line in one] == ["opened", "started", "finished", "released"]
    assert [line for line in every if line["call"] == call] == one
    assert run("export", "nobody00").returncode == 2


def test_a_file_that_no_gateway_has_is_purged_and_exported(gateway: Gateway, lone: dict[str, str]) -> None:
    """H6: and one that a gateway has is refused, naming it."""
    with serving(gateway.folder / "alone") as other:
        api = Api(other)
        calls = [api.ended(api.start("add", a=n, b=1))["id"] for n in range(3)]
        taken = program(("purge", "--all", "--store", str(other.store)), lone)
        assert taken.returncode == 5 and "belongs to another gateway" in taken.stderr
    store = str(other.store)
    assert program(("purge", "--keep", "2", "--store", store), lone).stdout == "1 call went for good\n"
    assert (
        program(("purge", "--call", calls[1], "--store", store, "--json"), lone).stdout == '{"purged": 1}\n'
    )
    lines = program(("export", "--store", store), lone).stdout.splitlines()
    assert {json.loads(line)["call"] for line in lines} == {calls[2]}
    short = program(("export", calls[2][-8:], "--store", store), lone).stdout
    assert short.splitlines() == lines and short
    assert program(("purge", "--older", "0", "--store", store), lone).stdout == "1 call went for good\n"
    for words in (("export", calls[2]), ("purge", "--call", calls[2][-8:])):
        gone = program((*words, "--store", store), lone)
        assert (gone.returncode, gone.stdout) == (2, "") and "unknown call" in gone.stderr


def test_a_call_that_has_not_ended_stays_in_its_file(gateway: Gateway, lone: dict[str, str]) -> None:
    """H6: its gateway was killed; what became of it is for the next one to say."""
    with serving(gateway.folder / "killed") as other:
        call = Api(other).start("linger", tag="purge-killed")
        other.until_marked("purge-killed", "started")
        other.process.kill()
    for words, code in ((("--call", call), 5), (("--all",), 0)):
        told = program(("purge", *words, "--store", str(other.store)), lone)
        assert told.returncode == code, told.stderr
        assert ("the next `afoot serve` over HTTP" in told.stderr) == (code == 5), "none on a pipe does"
    assert call in program(("export", "--store", str(other.store)), lone).stdout


def test_an_export_that_finds_no_room_says_so(gateway: Gateway, api: Api) -> None:
    """H6: what was printed is not all, and nobody takes it for that."""
    api.ended(api.start("add", a=1, b=2))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "afoot", "export"], stdout=full, stderr=subprocess.PIPE, text=True,
            timeout=30, check=False, env=gateway.environment,
        )  # fmt: skip
    assert done.returncode == 1 and "not all: No space left" in done.stderr and "Traceback" not in done.stderr


def test_a_damaged_call_costs_no_other_and_can_go(gateway: Gateway, lone: dict[str, str]) -> None:
    """H6: an export tells all others and says that it is not all; then that call goes by its name."""
    with serving(gateway.folder / "damaged") as other:
        api = Api(other)
        calls = [api.ended(api.start("add", a=n, b=1))["id"] for n in range(4)]
        other.stop()
        for spoiled, environment, where in (
            (calls[1], lone, ("--store", str(other.store))),
            (calls[2], other.environment, ()),
        ):
            with closing(sqlite3.connect(other.store)) as db, db:
                db.execute("UPDATE facts SET body = '[{rubbish' WHERE call = ?", (spoiled,))
            if not where:
                other.start()
            told = program(("export", *where), environment)
            assert told.returncode in (5, 6) and (spoiled in told.stderr or spoiled in other.said())
            assert {json.loads(line)["call"] for line in told.stdout.splitlines()} == {*calls} - {spoiled}
            assert program(("purge", "--call", spoiled[-8:], *where), environment).returncode == 0
            calls.remove(spoiled)
            assert program(("export", *where), environment).returncode == 0
