"""Every command where a server, a tool or a caller chose the words: nothing in them steers a terminal."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli import hostile_server
from tests.cli.conftest import Run, program
from tests.cli.hostile_server import NASTY, STEERING
from tests.cli.pseudo_terminal import terminal
from tests.e2e.gateway import Gateway, serving
from tests.serve.api_client import Api

SERVER = str(Path(hostile_server.__file__))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with a server whose every word is nasty, and with calls of it."""
    with serving(tmp_path_factory.mktemp("hostile")) as started:
        added = program(("servers", "add", "evil", "--", sys.executable, SERVER), started.environment)
        assert added.returncode == 0, added.stderr
        assert is_harmless(added.stdout + added.stderr)
        assert program(("call", "nasty_ok"), started.environment).returncode == 0
        yield started


def is_harmless(text: str) -> bool:
    """Whether nothing in it steers, or is not seen."""
    return not STEERING & set(text)


def test_the_nasty_text_has_all_that_is_feared() -> None:
    """V2: escapes of both lengths, bells, direction marks, what has no width, line ends of every kind."""
    assert {"\x1b", "\x07", "\x9b", "\u202e", "\u200b", "\r", "\u2066", "\x00", "\u3164", "\x7f"} <= STEERING
    assert {"\u2028", "\U000e0041"} <= STEERING and is_harmless("plain text\n\t漢字 é …")


@pytest.mark.parametrize(
    "words",
    [
        ("tools",), ("tools", "nasty_ok"), ("servers",), ("servers", "evil"), ("servers", "logs", "evil"),
        ("servers", "reload", "evil"), ("status",), ("calls",), ("calls", "--json"), ("tools", "--json"),
        ("tools", "nasty_ok", "--json"), ("servers", "--json"), ("servers", "logs", "evil", "--json"),
        ("call", "nasty_ok"), ("call", "nasty_error"), ("call", "nasty_fault"), ("call", "nasty_progress"),
        ("call", "nasty_ok", "--json"), ("call", "nasty_fault", "--json"), ("browser", "--json"),
        ("call", "nasty_ok", "x\x1b[2J\u202e=1"), ("call", "nasty\x1b[2J\u202e"), ("log", "\x1b[2J\u202e"),
        ("answer", "\x1b[2J\u202e"), ("cancel", "\x1b[2J\u202e"), ("allow", "add", "evil/\x1b[2J\u202e"),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)  # fmt: skip
def test_what_a_command_prints_steers_no_terminal(run: Run, words: tuple[str, ...]) -> None:
    """V2, S1: of tools, servers, results and errors; and of what was typed."""
    done = run(*words)
    assert is_harmless(done.stdout + done.stderr), ascii(done.stdout + done.stderr)
    assert done.stdout or done.stderr


@pytest.mark.parametrize(
    "words", [("calls",), ("cancel",), ("log",), ("calls", "--tool"), ("cluster", "drain")]
)
def test_words_that_are_no_text_are_answered_as_any(run: Run, words: tuple[str, ...]) -> None:
    """V2: bytes that are no UTF-8 ended a command with a traceback."""
    done = run(*words, "\udcff\udcfe")
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr


def test_what_is_not_seen_is_drawn_as_a_mark(run: Run) -> None:
    """V2: nothing is dropped in silence."""
    done = run("call", "nasty_ok")
    for mark in ("␛[2J", "␇", "⟨U+009B⟩", "⟨U+202E⟩", "⟨U+200B⟩", "␍", "␀", "⟨U+3164⟩", "␡", "⟨U+2028⟩"):
        assert mark in done.stdout
    assert "⟨U+E0041⟩" in done.stdout


def test_json_means_the_same(run: Run) -> None:
    """V4: a program reads what was said, a terminal shows only what is seen."""
    done = run("call", "nasty_ok", "--json")
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["result"]["content"][0]["text"] == NASTY


@pytest.mark.parametrize("tool", ["nasty_ok", "nasty_error", "nasty_fault"])
def test_a_story_steers_no_terminal(run: Run, api: Api, tool: str) -> None:
    """V2: arguments, readings, results and errors in `afoot log`, as words and as JSON."""
    answer = api.post("/api/calls", {"tool": tool, "arguments": {NASTY: NASTY}}, prefer="respond-async")
    call = str(answer.body["id"])
    api.ended(call)
    for words in (("log", call), ("log", call, "--json"), ("calls", tool)):
        done = run(*words)
        assert done.returncode == 0 and is_harmless(done.stdout + done.stderr), ascii(done.stdout)


def test_what_is_asked_and_allowed_steers_no_terminal(run: Run, api: Api) -> None:
    """A2: arguments of an approval, and what was allowed for ever."""
    call = api.start("wipe", tag=f"mark-{uuid4().hex}", what=NASTY)
    api.asked(call)
    asked = run("answer", call)
    assert asked.returncode == 2 and is_harmless(asked.stderr) and "it asks" in asked.stderr
    always = run("answer", call, "--always", "--scope", "arguments", "--for", "60")
    assert always.returncode == 0
    [one] = api.get("/api/allow").body["allowed"]
    listed, revoked = run("allow"), run("allow", "revoke", one["id"])
    assert is_harmless(listed.stdout + revoked.stdout) and one["id"] in listed.stdout
    api.ended(call)


@pytest.mark.parametrize("words", [["call", "nasty_progress"], ["call", "nasty_fault"], ["servers", "evil"]])
def test_in_a_terminal_too(gateway: Gateway, words: list[str]) -> None:
    """V2: with a bar, of which nothing is left over."""
    with terminal(words, gateway.environment, (100, 30)) as screen:
        screen.end()
        assert b"\x1b]0;" not in screen.raw and b"\x1b[2J" not in screen.raw and b"\xc2\x9b" not in screen.raw
        assert all(mark.encode() not in screen.raw for mark in ("\u202e", "\u200b", "\u2066", "\U000e0041"))
        assert screen.is_restored()


def test_an_approval_in_a_terminal_shows_marks(gateway: Gateway, api: Api) -> None:
    """A2: `afoot answer` where a person types."""
    call = api.start("wipe", tag=f"mark-{uuid4().hex}", what=NASTY)
    api.asked(call)
    with terminal(["answer", call], gateway.environment) as screen:
        screen.until("a)lways: ")
        assert b"\x1b]0;" not in screen.raw and "\u202e".encode() not in screen.raw
        screen.type("s\n")
        assert screen.end() == 0
    api.ended(call)


def test_a_server_that_fails_steers_no_doctor(tmp_path: Path, lone: dict[str, str]) -> None:
    """V2: what it wrote to stderr stands in the doctor's line."""
    script = tmp_path / "dies.py"
    script.write_text(f"import sys\nsys.stderr.write({NASTY!r})\nsys.exit(3)\n")
    quoted = json.dumps([str(script)])
    (tmp_path / "afoot.toml").write_text(
        f"[servers.evil]\ncommand = {json.dumps(sys.executable)}\nargs = {quoted}\n"
    )
    for words in (("doctor",), ("doctor", "--json")):
        done = program(words, lone, tmp_path)
        assert "evil" in done.stdout and is_harmless(done.stdout + done.stderr), ascii(done.stdout)


def test_everything_that_happens_steers_no_pipe(gateway: Gateway, run: Run, api: Api) -> None:
    """V2: `afoot watch` as lines."""
    held = api.start("linger", tag=f"mark-{uuid4().hex}")
    with subprocess.Popen(
        [sys.executable, "-m", "afoot", "watch"],
        env=gateway.environment, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
    ) as watching:  # fmt: skip
        assert watching.stdout is not None
        lines = [watching.stdout.readline()]
        while held[-8:] not in lines[-1]:
            lines.append(watching.stdout.readline())
        run("call", "nasty_error")
        while "finished" not in lines[-1]:
            lines.append(watching.stdout.readline())
        watching.terminate()
    api.post(f"/api/calls/{held}/cancel", {})
    assert "⟨U+202E⟩" in lines[-1] and is_harmless("".join(lines))
