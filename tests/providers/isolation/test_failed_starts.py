"""Child processes that cannot start, or never get ready: every call is told why, and nothing stays."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.config.tables import IsolationSettings
from afoot.core.facts import Result
from afoot.errors import RunnerDied, ToolError
from afoot.providers.content import content_of
from afoot.providers.isolation import pool as children_module
from afoot.providers.isolation import processes
from afoot.providers.isolation.child_process import ChildProcess, IsolatedCall
from afoot.providers.isolation.fork_client import FrameConnection
from afoot.providers.isolation.frames import CallDone, ChildExit, IpcMessage, RunCall, SignalChild, ToolSource
from afoot.providers.isolation.pool import ChildPool
from tests.providers.fake_run import ScriptedRun, text_of
from tests.providers.isolation.isolated_provider import PATIENCE_S, below_here, command, family, happens
from tests.providers.isolation.test_unusual_tools import odd, said, told

TOOL = """
import afoot


@afoot.tool(isolate=True)
def one() -> int:
    return 1
"""
# Without an `if __name__ == "__main__":`, which everybody forgets once.
SCRIPT = """
import asyncio


async def main():
    async with afoot.Gateway(one) as gateway:
        call = await gateway.call("one")
        print(call.end.outcome, call.end.failure and call.end.failure.message)


asyncio.run(main())
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with one tool."""
    made = tmp_path / "tools.py"
    made.write_text(TOOL)
    return made


async def test_a_long_path_to_temporary_files_is_gone_around(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: the path of a socket has a hundred bytes."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    async with odd(file) as gateway:
        assert await said(gateway, "one") == "1"


@pytest.mark.parametrize("what", ["folder", "socket"])
async def test_children_start_though_somebody_cleared_up_temporary_files(file: Path, what: str) -> None:
    """G1: the folder in which they call in, or the socket alone; a gateway may run for months."""
    async with odd(file) as gateway:
        assert await said(gateway, "one") == "1"
        fork_client = gateway.children._fork_client
        assert fork_client is not None
        shutil.rmtree(fork_client._folder) if what == "folder" else os.unlink(fork_client._address)
        (child,) = gateway.children._all.values()
        child.signal(signal.SIGKILL)
        await happens(lambda: child.exited.done())
        assert await said(gateway, "one") == "1"


@pytest.mark.parametrize("what", ["link", "open"])
async def test_a_folder_that_somebody_else_may_have_made_is_not_called_in_at(
    file: Path, tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """G1: where temporary files are, everybody may make one by the old name."""
    async with odd(file) as gateway:
        assert await said(gateway, "one") == "1"
        fork_client = gateway.children._fork_client
        assert fork_client is not None
        shutil.rmtree(fork_client._folder)
        (there := tmp_path / "theirs").mkdir(0o700)
        os.symlink(there, fork_client._folder) if what == "link" else os.mkdir(fork_client._folder, 0o755)
        fork_client._recreate_socket()
        assert os.listdir(fork_client._folder) == [] and "somebody else's" in caplog.text
        os.unlink(fork_client._folder) if what == "link" else os.rmdir(fork_client._folder)


@pytest.mark.parametrize(
    ("python", "words"), [("/nowhere/python", "No such file"), ("/bin/false", "exit code 1")]
)
async def test_a_fork_server_that_cannot_start_is_told_at_once(
    file: Path, monkeypatch: pytest.MonkeyPatch, python: str, words: str
) -> None:
    """G1: and not when the limit for a start is over."""
    monkeypatch.setattr(sys, "executable", python)
    async with odd(file) as gateway:
        text = await said(gateway, "one")
        assert text.startswith("start_failed") and "fork server" in text and words in text


async def test_a_child_that_died_while_it_was_ready_is_given_to_nobody(file: Path) -> None:
    """G1: also before its fork server has said so."""
    async with odd(file) as gateway:
        assert await said(gateway, "one") == "1"
        (child,) = gateway.children._all.values()
        (fork_server,) = [pid for pid in below_here() if is_fork_server(pid)]
        (pid,) = processes.descendants(fork_server)
        os.kill(fork_server, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        await happens(lambda: child.connection is None)
        call_id = gateway.submit("one")
        await asyncio.sleep(0)
        os.kill(fork_server, signal.SIGCONT)
        call = await asyncio.wait_for(gateway.result(call_id), PATIENCE_S)
        assert told(call) == "1" and call.attempt == 1


def is_fork_server(pid: int) -> bool:
    """Whether it is the child of a reaper, which is a child of ours."""
    reaper = processes.process_info(pid).parent
    is_one = b"isolation.reaper" in command(reaper) and b"isolation.reaper" in command(pid)
    return is_one and processes.process_info(reaper).parent == os.getpid()


def hanging(file: Path, look_s: float) -> Path:
    """Have children hang that load this file, as long as the file that is given exists."""
    mark = file.with_name("mark")
    mark.touch()
    hang = f"while os.path.exists({str(mark)!r}) and __name__ == '__mp_main__':\n"
    seen = f"    open({str(mark) + '.seen'!r}, 'w').close()\n    time.sleep({look_s})\n"
    file.write_text(f"import os, time\n{hang}{seen}{TOOL}")
    return mark


async def test_a_module_that_hangs_is_given_up_and_loaded_again(file: Path) -> None:
    """G1, C1: the limit of the start is told; what has hung for twice as long is ended."""
    mark = hanging(file, 600)
    async with odd(file, start_limit_s=0.5) as gateway:
        assert "start_limit_s" in await said(gateway, "one")
        first = next(iter(gateway.children._all.values()))
        await happens(mark.with_suffix(".seen").exists)
        mark.unlink()  # but it sleeps on
        while not first.exited.done():
            await said(gateway, "one")
        await happens(lambda: any(one.ready.done() for one in gateway.children._all.values()))
        assert await said(gateway, "one") == "1"


def dying(file: Path) -> Path:
    """Have children die a moment after they loaded this file, as long as the file that is given exists."""
    mark = file.with_name("mark")
    mark.touch()
    dies = f"def die():\n    time.sleep(0.01)\n    if os.path.exists({str(mark)!r}):\n        os._exit(3)\n"
    starts = "if __name__ == '__mp_main__':\n    threading.Thread(target=die, daemon=True).start()\n"
    file.write_text(f"import os, threading, time\n{dies}{starts}{TOOL}")
    return mark


async def test_a_child_that_dies_while_it_waits_for_a_call_is_not_replaced_for_ever(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: nobody may have need of it; a call has one of its own in any case, and then all is well."""
    monkeypatch.setattr(children_module, "RETRY_PAUSES_S", (0.01, 0.01, 0.01))
    mark = dying(file)
    async with odd(file) as gateway:
        children = gateway.children
        (source,) = children._kept_sources
        await happens(lambda: children._failures[source] == 3 and not children._all)
        children._retry(source)
        children._refill(source)
        assert not children._all
        mark.unlink()
        assert await said(gateway, "one") == "1" and not children._failures[source]
        assert children.is_ready(source)


async def test_children_that_end_together_are_one_failure(file: Path) -> None:
    """G1: however many were kept ready; another is ready soon, though no call comes."""
    async with odd(file, isolation=IsolationSettings(warm=len(children_module.RETRY_PAUSES_S))) as gateway:
        children = gateway.children
        (source,) = children._kept_sources
        await happens(lambda: len(children._idle.get(source, ())) == len(children_module.RETRY_PAUSES_S))
        fork_client = children._fork_client
        assert fork_client is not None and fork_client._process is not None
        fork_client._process.kill()
        await happens(lambda: children._fork_client is not fork_client and children.is_ready(source))
        assert children._failures[source] == 1


async def test_who_waits_for_a_child_when_all_end_is_told_and_starts_no_other(file: Path) -> None:
    """G1: nobody would end that one."""
    hanging(file, 0.01)
    children = ChildPool()
    async with children:
        waiting = asyncio.create_task(children.acquire(ToolSource("", str(file))))
        await happens(lambda: children._all)
    with pytest.raises(RunnerDied, match="the gateway is closing"):
        await waiting
    with pytest.raises(RunnerDied, match="the gateway is closing"):
        await children.acquire(ToolSource("", str(file)))
    assert children._fork_client is None


def test_a_script_that_starts_its_own_tools_is_told_how_not_to(file: Path) -> None:
    """G1: loaded in a child it would start another, and so on without end."""
    file.write_text(TOOL + SCRIPT)
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=PATIENCE_S)
    assert "failed" in ran.stdout and 'below `if __name__ == "__main__":`' in ran.stdout
    file.write_text(TOOL + SCRIPT.replace("\nasyncio.run", '\nif __name__ == "__main__":\n    asyncio.run'))
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.stdout == "ok None\n"


async def test_what_a_child_said_before_its_end_counts_though_its_end_is_known_first() -> None:
    """G1: both come on ways of their own."""
    child, run = ChildProcess(1, ToolSource("tools"), list[IpcMessage]().append), ScriptedRun()
    child.connection = FrameConnection(lambda line, said: None)
    working = asyncio.create_task(IsolatedCall(child, run, RunCall("one", Raw(b"{}"), "c1"), 1.0).work())
    await asyncio.sleep(0)
    child.receive(ChildExit(1, 0, cpu_s=2.0))
    child.receive(CallDone(Result(content_of("said"))))
    child.on_disconnect("it closed its pipe", is_invalid=False)
    assert text_of(await working) == "said" and run.cpu_s == 2.0


@pytest.mark.parametrize("is_lost", [True, False])
async def test_a_call_whose_child_went_before_it_began_may_run_in_another(is_lost: bool) -> None:
    """G1, U4: between being given and being used; also where its end is known to the pipe alone."""
    told = list[IpcMessage]()
    child = ChildProcess(1, ToolSource("tools"), told.append)
    ours, theirs = socket.socketpair()
    with theirs:
        child.connection = line = FrameConnection(lambda line, said: None)
        await asyncio.get_running_loop().create_connection(lambda: line, sock=ours)
        line.close()
        if is_lost:
            child.on_disconnect("it closed its pipe", is_invalid=False)
        with pytest.raises(RunnerDied, match="before the call began") as caught:
            await IsolatedCall(child, ScriptedRun(), RunCall("one", Raw(b"{}"), "c1"), 1.0).work()
    assert not caught.value.began
    assert told == [SignalChild(1, signal.SIGKILL)], "nothing of the call was said"


async def test_arguments_that_no_pipe_takes_cost_the_call_and_leave_no_process() -> None:
    """G1, G3: neither one that nobody uses, nor one that is counted as there."""
    async with family() as isolated:
        for _ in range(2):
            with pytest.raises(ToolError, match="bytes cannot pass") as caught:
                await isolated.call("echo", text="x" * 70_000_000)
            assert caught.value.code == "too_large"
        await happens(lambda: not isolated.children._all)
        assert text_of(await isolated.call("echo", text="short")) == "short"


async def test_a_reply_that_no_pipe_takes_is_an_error_of_what_was_asked_for() -> None:
    """G3, P3: the tool does not wait for ever."""
    run = ScriptedRun()
    run.results.append(Result(content_of("x" * 70_000_000)))
    async with family() as isolated:
        with pytest.raises(ToolError, match="bytes cannot pass") as caught:
            await asyncio.wait_for(isolated.call("below", run), PATIENCE_S)
    assert caught.value.code == "too_large"
