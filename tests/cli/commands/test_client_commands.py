"""The commands beside `call`: lists, logs, settings, files to begin with; and what they cost to start."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from uuid import uuid4

import pytest

from afoot.cli.commands.config import SETTING_HELP
from afoot.config.settings import Settings
from tests.cli.conftest import Run, program
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api

COMMANDS = ["calls", "watch", "log x", "cancel x", "answer x", "tools", "status", "call x"]


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_gateway_a_client_says_how_to_start_one(lone: dict[str, str], command: str) -> None:
    """V2: exit 6, and the next command to type."""
    done = program(tuple(command.split()), lone)
    assert done.returncode == 6 and "afoot serve" in done.stderr and len(done.stderr.splitlines()) == 1


def test_an_address_that_does_not_answer_is_unreachable(lone: dict[str, str]) -> None:
    """V2: --at and AFOOT_URL name a gateway; nobody there is exit 6."""
    away = {**lone, "AFOOT_TOKEN": "x"}
    assert program(("status", "--at", "http://127.0.0.1:9"), away).returncode == 6
    assert program(("status",), {**away, "AFOOT_URL": "127.0.0.1:9"}).returncode == 6
    assert program(("status", "--at", "ftp://x"), away).returncode == 2


def test_a_token_goes_only_to_the_gateway_it_is_for(gateway: Gateway, lone: dict[str, str]) -> None:
    """S1: another address gets no secret of ours; a wrong token is refused with 5."""
    done = program(("status", "--at", gateway.url), lone)
    assert done.returncode == 2 and "AFOOT_TOKEN" in done.stderr
    assert program(("status", "--at", gateway.url), {**lone, "AFOOT_TOKEN": "wrong"}).returncode in (0, 5)
    wrong = program(("calls", "--at", gateway.url), {**lone, "AFOOT_TOKEN": "wrong"})
    assert wrong.returncode == 5 and "token" in wrong.stderr
    token = (gateway.folder / "home" / "token").read_text().strip()
    right = program(("calls", "--at", gateway.url), {**lone, "AFOOT_TOKEN": token})
    assert right.returncode == 0


@pytest.mark.parametrize(
    "command", ["calls", "tools", "status", "cancel nobody", "log nobody", "call nobody"]
)
def test_a_client_command_imports_nothing_heavy(gateway: Gateway, command: str) -> None:
    """V2: neither mcp nor pydantic nor uvicorn, so that it starts at once."""
    code = (
        "import sys, afoot.cli\n"
        f"sys.argv = ['afoot', *{command.split()!r}]\n"
        "try:\n    afoot.cli.main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'uvicorn', 'starlette', 'jsonschema_rs', 'asyncio'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=gateway.environment, capture_output=True, text=True, check=True
    )
    allowed = "['asyncio']" if command.startswith("call ") else "[]"
    assert done.stderr.splitlines()[-1] in (f"HEAVY {allowed}", "HEAVY []")


def test_status_tells_where_it_is_and_what_it_does(run: Run, gateway: Gateway, api: Api) -> None:
    """V2: address, health, live calls, open questions."""
    call = api.start("ask_name", tag=uuid4().hex)
    api.asked(call)
    done = run("status")
    assert done.returncode == 0
    assert gateway.url.removesuffix("/mcp") in done.stdout and call[-8:] in done.stdout
    told = json.loads(run("status", "--json").stdout)
    assert (
        told["status"] == "ok" and told["live"] >= 1 and told["questions"] >= 1 and told["mcp"] == gateway.url
    )
    assert run("answer", call[-8:], "--decline").returncode == 0
    assert api.ended(call)["result"]["structured"]["action"] == "decline"


def test_calls_are_listed_in_eighty_columns_and_filtered(run: Run, gateway: Gateway, api: Api) -> None:
    """V2, V4: a table for people, the same calls as objects for programs."""
    call = api.start("count_up", n=2)
    api.ended(call)
    wide = program(("calls",), {**gateway.environment, "COLUMNS": "80"})
    assert all(len(line) <= 80 for line in wide.stdout.splitlines())
    assert call[-8:] in wide.stdout and "2/2" in wide.stdout and "\x1b" not in wide.stdout
    found = [json.loads(line) for line in run("calls", "--tool", "count_up", "--json").stdout.splitlines()]
    assert found[0]["id"] == call and {one["tool"] for one in found} == {"count_up"}
    assert run("calls", "no such text anywhere").stdout == "no calls\n"
    assert run("calls", "--state", "gone").returncode == 2


def test_the_log_has_a_line_a_fact_with_times_from_the_start(run: Run, api: Api) -> None:
    """V2: `afoot log CALL`: how it ended and how far it came, then what happened when."""
    call = api.start("fail", how="explained")
    api.ended(call)
    lines = run("log", call[-8:]).stdout.splitlines()
    place = lines.index("")
    assert lines[0].startswith(f"call {call}: fail on local, ")
    assert re.fullmatch(r"  failed after \d.\d s: too many requests", lines[1])
    assert "  it had come to 5/10 half way" in lines[:place]
    assert lines[place + 1].split()[:3] == ["0.000", "opened", "fail"]
    words = [line.split()[1] for line in lines[place + 1 :]]
    assert words == ["opened", "started", "reading", "finished", "released"]
    told = [json.loads(line) for line in run("log", call, "--json").stdout.splitlines()]
    assert [one["seq"] for one in told if one["event"] == "fact"] == [1, 2, 3, 4]


def test_a_cancelled_call_is_said_to_be_cancelled_once(run: Run, gateway: Gateway, api: Api) -> None:
    """V2, X1: not "cancelled: cancelled:"."""
    mark = uuid4().hex
    call = api.start("linger", tag=mark)
    gateway.until_marked(mark, "started")
    run("cancel", call[-8:], "--reason", "seen enough")
    api.ended(call)
    summary = run("log", call).stdout.splitlines()[1]
    assert summary.count("cancelled") == 1 and "seen enough" in summary


def test_calls_that_wait_for_a_person_are_found_by_what_the_table_calls_them(run: Run, api: Api) -> None:
    """V2, V4: the table says waiting, so `--state waiting` finds them, and no other."""
    call, other = api.start("ask_name", tag=f"mark-{uuid4().hex}"), api.start("add", a=1, b=1)
    api.asked(call)
    api.ended(other)
    found = [json.loads(line) for line in run("calls", "--state", "waiting", "--json").stdout.splitlines()]
    assert [one["id"] for one in found] == [call]
    assert [line.split()[2] for line in run("calls", "--state", "waiting").stdout.splitlines()[1:]] == [
        "waiting"
    ]
    run("answer", call, "--decline")


def test_an_unknown_call_lists_the_nearest(run: Run, api: Api) -> None:
    """E5: one character wrong."""
    call = api.start("add", a=1, b=1)
    api.ended(call)
    wrong = f"{call[-8:-1]}{'0' if call[-1] != '0' else '1'}"
    for command in ("log", "watch", "cancel", "answer"):
        done = run(command, wrong)
        assert done.returncode == 2 and call[-8:] in done.stderr, done.stderr
    told = json.loads(run("log", wrong, "--json").stdout)
    assert told["error"]["exit"] == 2 and call[-8:] in told["error"]["nearest"]


def test_a_call_that_is_over_cannot_be_cancelled_or_answered(run: Run, api: Api) -> None:
    """X1, Q4: one line that says how it ended."""
    call = api.start("add", a=1, b=1)
    api.ended(call)
    assert "is over: ok" in run("cancel", call).stderr
    assert "asks nothing" in run("answer", call).stderr


def test_tools_are_listed_and_shown(run: Run) -> None:
    """V2: names with their arguments, one with all that is known."""
    listed = run("tools").stdout
    assert "add a=… b=…" in listed and "count_up n=… [step_s=…]" in listed
    shown = run("tools", "paced").stdout
    assert "pauses (a list)" in shown and "idle 0.6 s, ceiling 2 s" in shown
    assert json.loads(run("tools", "add", "--json").stdout)["name"] == "add"
    assert run("tools", "ad").returncode == 2


def test_everything_is_watched_in_a_pipe(gateway: Gateway, api: Api) -> None:
    """V2, V4: a line a fact; with --json the frames as they come."""
    for words in (["watch"], ["watch", "--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "afoot", *words],
            env=gateway.environment, stdout=subprocess.PIPE, text=True,
        ) as watching:  # fmt: skip
            assert watching.stdout is not None
            if "--json" in words:
                assert json.loads(watching.stdout.readline())["event"] == "snapshot"
                call = api.start("add", a=1, b=1)
            else:
                held = api.start("linger", tag=uuid4().hex)
                until(lambda held=held: held[-8:] in watching.stdout.readline(), "the held call")
                call = api.start("add", a=1, b=1)
                api.post(f"/api/calls/{held}/cancel", {})
            until(lambda call=call: call[-8:] in watching.stdout.readline(), "the call")
            watching.terminate()


def test_config_prints_every_value_and_where_it_came_from(lone: dict[str, str], tmp_path: Path) -> None:
    """V4: default, file, environment."""
    (tmp_path / "afoot.toml").write_text('idle_s = 7.0\nmcp_token = "hush"\n')
    done = program(("config", "--json"), {**lone, "AFOOT_CEILING_S": "9"}, tmp_path)
    told = {one["key"]: one for one in map(json.loads, done.stdout.splitlines())}
    assert set(told) == set(Settings.__struct_fields__)
    assert (told["idle_s"]["value"], Path(told["idle_s"]["from"]).name) == (7.0, "afoot.toml")
    assert (told["ceiling_s"]["value"], told["ceiling_s"]["from"]) == (9.0, "AFOOT_CEILING_S")
    assert told["answer_s"]["from"] == "default"
    assert "hush" not in done.stdout
    secrets = 'url = "https://x.example"\nheaders = { A = "hush", B = "${B}" }\nclient_secret = "hush"\n'
    (tmp_path / "afoot.toml").write_text(f"[servers.x]\n{secrets}")
    plain = program(("config",), lone, tmp_path).stdout
    assert "hush" not in plain and "${B}" in plain and "https://x.example" in plain
    (tmp_path / "afoot.toml").write_text("idle_s = 7.0\n")
    assert "idle_s = 7.0" in program(("config",), lone, tmp_path).stdout
    (tmp_path / "afoot.toml").write_text("idle = 7\n")
    wrong = program(("config",), lone, tmp_path)
    assert wrong.returncode == 2 and "unknown setting 'idle'" in wrong.stderr


def test_every_setting_is_explained() -> None:
    """House: `afoot init` and `afoot config` know them all."""
    assert set(SETTING_HELP) == set(Settings.__struct_fields__)


def test_init_writes_files_that_work_and_overwrites_nothing(lone: dict[str, str], tmp_path: Path) -> None:
    """V2: an afoot.toml with every setting, a tools.py that runs."""
    folder = tmp_path / "new"
    done = program(("init", str(folder)), lone)
    assert done.returncode == 0 and "serve" in done.stderr
    text = (folder / "afoot.toml").read_text()
    assert tomllib.loads(text) == {"targets": ["tools.py"]}
    assert all(f"{key} = " in text or f"[{key}." in text for key in Settings.__struct_fields__)
    plain = "\n".join(
        line.removeprefix("# ") for line in text.splitlines() if " = " in line or "[" in line[:3]
    )
    assert set(tomllib.loads(plain)) == set(Settings.__struct_fields__)
    called = program(("call", "count", "n=1", "--target", str(folder / "tools.py")), lone)
    assert json.loads(called.stdout) == {"counted": 1}
    (folder / "tools.py").write_text("mine\n")
    again = program(("init", str(folder)), lone)
    assert "left" in again.stdout and (folder / "tools.py").read_text() == "mine\n"


def test_a_reader_that_has_enough_is_no_error(gateway: Gateway) -> None:
    """V2: `afoot tools | head -1`."""
    command = f"{sys.executable} -m afoot tools --json | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=gateway.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(gateway: Gateway, closed: str) -> None:
    """V2: `afoot tools >&-`, as those start it who have no terminal."""
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m afoot tools --json {closed}"],
        env=gateway.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout == "") == (">&-" in closed.replace("2>&-", ""))


def test_an_unknown_command_names_the_nearest(lone: dict[str, str]) -> None:
    """E5: wrong usage, exit 2, on stderr."""
    done = program(("stauts",), lone)
    assert done.returncode == 2 and "status" in done.stderr and done.stdout == ""
