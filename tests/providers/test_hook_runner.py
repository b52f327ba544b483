"""One hook, run once: commands and functions, what they say, and every way in which they fail."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec import Raw

from afoot.config.settings import Hook
from afoot.core.ports import Tool
from afoot.providers import hook_runner
from afoot.providers.hook_runner import ActiveHook, HookAnswer, HookFailed

EVENT: dict[str, Any] = {"hook": "before_call", "call": {"id": "c1"}, "arguments": Raw(b'{"n":1}')}


def command(script: str, on: str = "before_call", timeout_s: float = 60.0) -> ActiveHook:
    """A hook that is a Python script of one line."""
    return ActiveHook(Hook(on, [sys.executable, "-S", "-c", script], timeout_s=timeout_s))


def function(
    body: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, on: str = "before_call", timeout_s: float = 60
) -> ActiveHook:
    """A hook that is this function."""
    find: Callable[[str], Callable[..., Any]] = lambda named: body  # noqa: E731
    monkeypatch.setattr(hook_runner, "_find_function", find)
    one = ActiveHook(Hook(on, python="somewhere:body", timeout_s=timeout_s))
    one.load()
    return one


async def fails(one: ActiveHook) -> str:
    """What is told of its failure."""
    with pytest.raises(HookFailed) as caught:
        await one.run(EVENT)
    return str(caught.value)


async def test_a_command_gets_one_json_object_on_its_stdin() -> None:
    """K1: the whole event, arguments included."""
    said = await command('import sys, json; print(json.dumps({"refuse": sys.stdin.read()}))').run(EVENT)
    assert json.loads(said.refusal or "") == {
        "hook": "before_call",
        "call": {"id": "c1"},
        "arguments": {"n": 1},
    }


@pytest.mark.parametrize(
    ("printed", "refusal", "changed"),
    [
        ("", None, b""),
        ("  \n", None, b""),
        ("null", None, b""),
        ("{}", None, b""),
        ('{"refuse": false}', None, b""),
        ('{"refuse": "no"}', "no", b""),
        ('{"refuse": ""}', "it gave no reason", b""),
        ('{"refuse": true}', "it gave no reason", b""),
        ('{"arguments": {"n": 2}}', None, b'{"n":2}'),
        ('{"arguments": {}}', None, b"{}"),
    ],
)
async def test_a_command_may_print_what_it_says(printed: str, refusal: str | None, changed: bytes) -> None:
    """K1: nothing, a refusal, or other arguments."""
    said = await command(f"print({printed!r})").run(EVENT)
    assert (said.refusal, bytes(said.changed)) == (refusal, changed)


async def test_exit_code_two_refuses_with_what_stands_on_stderr() -> None:
    """K1: a plain script can say no without JSON."""
    said = await command('import sys; sys.stderr.write("not on Sundays\\n"); sys.exit(2)').run(EVENT)
    assert said.refusal == "not on Sundays"
    assert (await command("import sys; sys.exit(2)").run(EVENT)).refusal == "it gave no reason"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('import sys; sys.stderr.write("no disk"); sys.exit(1)', "exited with 1: no disk"),
        ("import sys; sys.exit(3)", "exited with 3"),
        ("import os; os.kill(os.getpid(), 9)", "exited with -9"),
        ('print("hello")', "printed what is no JSON"),
        ("print('[1]')", 'gave neither "refuse" nor "arguments"'),
        ('print(\'{"refused": "x"}\')', "unknown field `refused`"),
        ("print('{\"arguments\": [1]}')", "Expected `object | null`, got `array` - at `$.arguments`"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe')", "printed what is no JSON"),
        ("print('[' * 2_000_000)", "printed over 1048576 bytes"),
    ],
)
async def test_what_a_command_does_wrong_is_told(script: str, told: str) -> None:
    """K1: an exit code, no JSON, JSON that means nothing, more than can be taken."""
    assert told in await fails(command(script))


async def test_a_command_that_only_looks_on_may_print_anything() -> None:
    """K1: nobody reads what it prints, and it has nothing to refuse."""
    assert await command('print("hello")', on="on_end").run(EVENT) == HookAnswer()
    assert "exited with 2" in await fails(command("import sys; sys.exit(2)", on="on_end"))


async def test_a_command_need_not_read_its_stdin() -> None:
    """K1: more than a pipe takes is given to one that is not interested."""
    big = {**EVENT, "arguments": Raw(b'{"text":"' + b"x" * 2_000_000 + b'"}')}
    assert await command("pass").run(big) == HookAnswer()


def test_commands_run_on_the_loop_of_the_gateway_too() -> None:
    """K1: uvloop: one that is gone before it was given anything, one that hangs, one that says no."""

    async def main() -> None:
        big = {**EVENT, "arguments": Raw(b'{"text":"' + b"x" * 2_000_000 + b'"}')}
        for _ in range(5):
            assert await ActiveHook(Hook("before_call", "true")).run(big) == HookAnswer()
        assert "took longer" in await fails(ActiveHook(Hook("before_call", "sleep 1000", timeout_s=0.01)))
        assert "took longer" in await fails(ActiveHook(Hook("before_call", "yes", timeout_s=0.05)))
        no = ActiveHook(Hook("before_call", ["sh", "-c", "echo no >&2; exit 2"]))
        assert (await no.run(EVENT)).refusal == "no"

    uvloop.run(main())


async def test_a_command_that_does_not_exist_says_so() -> None:
    """K1: the words are run as they are, by no shell."""
    assert "cannot be run" in await fails(ActiveHook(Hook("before_call", "no-such-program --x")))
    assert "cannot be run" in await fails(ActiveHook(Hook("before_call", "echo; true")))


async def test_words_are_split_as_a_shell_would_and_nothing_is_expanded() -> None:
    """K1: no shell sees them."""
    line = f"{sys.executable} -S -c 'import sys; sys.exit(sys.argv[1:] != [\"$HOME\", \"a b\"])' $HOME 'a b'"
    assert await ActiveHook(Hook("before_call", line)).run(EVENT) == HookAnswer()


async def test_a_command_that_takes_too_long_is_a_failure_that_names_the_limit() -> None:
    """K1: its own timeout_s holds."""
    told = await fails(command("import time; time.sleep(1000)", timeout_s=0.05))
    assert told == "took longer than 0.05 s (raise its timeout_s)"


async def test_a_command_is_killed_with_everything_it_started(tmp_path: Path) -> None:
    """K1: a call that is cancelled, or a timeout, leaves nothing running."""
    noted = tmp_path / "pid"
    script = (
        "import subprocess, sys, pathlib; "
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(1000)']); "
        f"pathlib.Path({str(noted)!r}).write_text(str(child.pid)); child.wait()"
    )
    task = asyncio.create_task(command(script).run(EVENT))
    await asyncio.to_thread(until, lambda: noted.exists() and noted.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    child = int(noted.read_text())
    await asyncio.to_thread(until, lambda: not is_running(child))


async def test_a_command_that_is_cancelled_while_it_starts_is_killed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K1: a start is never left half done, whatever the call does meanwhile."""
    started, release, spawn = asyncio.Event(), asyncio.Event(), asyncio.create_subprocess_exec
    processes = list[asyncio.subprocess.Process]()

    async def slow(*words: str, **options: Any) -> asyncio.subprocess.Process:
        processes.append(await spawn(*words, **options))
        started.set()
        await release.wait()
        return processes[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    task = asyncio.create_task(ActiveHook(Hook("before_call", "sleep 1000")).run(EVENT))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes[0].returncode == -9


def until(condition: Callable[[], bool]) -> None:
    """Wait for it, in a thread."""
    while not condition():
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """Whether this process does anything; one that waits for its parent to look does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("pattern", "wants"),
    [
        ("*", True),
        ("files__read", True),
        ("read", True),
        ("files/read", True),
        ("files/*", True),
        ("re*", True),
        ("write", False),
        ("other/*", False),
        ("READ", False),
    ],
)
def test_a_hook_is_for_the_tools_that_its_pattern_means(pattern: str, wants: bool) -> None:
    """K1, U12: a name, SERVER__NAME, server/name, or a pattern of these, as in the settings of tools."""
    tool = Tool("anything", "files", Raw(b"{}"), inner="read", alias="files__read")
    assert ActiveHook(Hook("on_end", "true", tools=pattern)).matches(tool) is wants
