"""Tools in child processes that do what nobody expects: each call ends, says why, and leaves nothing."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from afoot import Gateway
from afoot.config.settings import Settings
from afoot.core.call import Call
from afoot.core.facts import Logged, Reading
from afoot.engine.failures import MAX_ERROR_CHARS, MAX_TRACE_CHARS
from afoot.providers.functions.loading import Loaded
from afoot.providers.isolation import processes
from afoot.providers.isolation.child_main import ChildLifespan, Worker
from tests.providers.fake_run import text_of
from tests.providers.isolation.isolated_provider import PATIENCE_S, below_here, command, happens, is_dead

TOOLS = Path(__file__).with_name("unusual_tools.py")


@asynccontextmanager
async def odd(target: Path = TOOLS, **settings: Any) -> AsyncIterator[Gateway]:
    """A gateway with these tools while the block lasts; then nothing of it is left."""
    before = set(below_here())
    async with Gateway(target, settings=Settings(store=":memory:", **settings)) as made:
        yield made
    await happens(lambda: set(below_here()) <= before)


async def said(gateway: Gateway, tool: str, **arguments: object) -> str:
    """What a call gave, or why it failed."""
    call = await asyncio.wait_for(gateway.call(tool, arguments), PATIENCE_S)
    return told(call)


def told(call: Call) -> str:
    """The same of a call that is over."""
    assert call.end is not None
    if call.end.failure is not None:
        return f"{call.end.failure.code}: {call.end.failure.message}"
    assert call.end.result is not None
    return text_of(call.end.result)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no text", "cannot read /nowhere/"),
        ("no words", "Mute"),
        ("odd fields", "404: inside"),
        ("no notes", "Unnoted: said"),
        ("no line", "SyntaxError: odd"),
        ("interrupt", "KeyboardInterrupt: typed"),
        ("no memory", "raise memory_bytes"),
    ],
)
async def test_whatever_is_raised_the_call_ends_and_says_so(what: str, words: str) -> None:
    """G1, E3: names that are no text, errors without words, fields of another type."""
    async with odd() as gateway:
        assert words in await said(gateway, "raises", what=what)


@pytest.mark.parametrize("kind", ["words", "crash"])
async def test_half_a_secret_comes_from_no_child(tmp_path: Path, kind: str) -> None:
    """S4, E3: it is cut where secrets are known; in a child they are not."""
    raises = f'ToolError("." * {MAX_ERROR_CHARS - 5} + password)'
    if kind == "crash":
        raises = f'ValueError("no") from ValueError(password * {MAX_TRACE_CHARS // 80})'
    file = tmp_path / "tools.py"
    made = "import afoot\nfrom afoot.errors import ToolError\n@afoot.tool(isolate=True)\n"
    file.write_text(f"{made}def tell(password: str) -> int:\n    raise {raises}\n")
    async with odd(file) as gateway:
        call = await asyncio.wait_for(gateway.call("tell", {"password": "Q7w-" * 24 + "x"}), PATIENCE_S)
    assert call.end is not None and (failure := call.end.failure) is not None
    for half in ("w-", "x["):
        assert half not in failure.message and half not in failure.trace


async def test_a_result_that_no_pipe_takes_is_a_failed_call() -> None:
    """G1, G3: told how much it was; a report of that size costs itself alone."""
    async with odd() as gateway:
        assert (await said(gateway, "gives", megabytes=70)).startswith("too_large: 140")
        assert await said(gateway, "saves", megabytes=70) == "saved"


async def test_a_tool_that_opens_too_many_files_is_told_the_setting() -> None:
    """G1: each process may have so many; an infinite limit is none, as 0 is."""
    async with odd() as gateway:
        assert "may have 30: raise open_files" in await said(gateway, "opens")
        assert await said(gateway, "unlimited") == "done"


async def test_a_tool_that_starts_too_many_threads_is_told_the_setting() -> None:
    """G1: their stacks are memory, though nobody says so."""
    async with odd() as gateway:
        assert "new thread; it may need more memory (raise memory_bytes)" in await said(
            gateway, "threads", n=5000
        )


async def test_a_cancel_that_comes_with_the_call_is_heard() -> None:
    """X1: both are read in one go, and the tool can still stop by itself."""
    async with odd() as gateway:
        pid = int(await said(gateway, "where"))
        os.kill(pid, signal.SIGSTOP)
        call_id = gateway.submit("polite")
        await happens(lambda: gateway.engine[call_id].call.attempt)
        await gateway.engine.recorder.recorded()  # it is sent once its start is on record
        await asyncio.sleep(0.01)  # the child has it
        gateway.cancel(call_id, "at once")
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGCONT)
        call = await asyncio.wait_for(gateway.result(call_id), PATIENCE_S)
        assert call.end is not None and call.end.result is not None
        assert text_of(call.end.result) == "stopped: at once"
        assert int(await said(gateway, "where")) == pid, "it was not killed for it"


async def test_what_a_call_left_running_reaches_no_other() -> None:
    """C8, G1: a thread that goes on ends with its child; one that rests in a pool keeps it."""
    async with odd() as gateway:
        pid = await said(gateway, "leaves_a_thread")
        call_id = gateway.submit("naps", {"seconds": 0.3})
        facts = [one async for one in gateway.follow(call_id)]
        assert not [one for one in facts if isinstance(one, Logged | Reading)], "of the one before"
        assert told(await gateway.result(call_id)) != pid
        pid = await said(gateway, "leaves_a_pool")
        assert await said(gateway, "where") == pid


@pytest.mark.parametrize(
    ("what", "is_kept"),
    [("timer", False), ("poll", False), ("job", False), ("bar", True), ("queue", True)],
)
async def test_a_child_is_used_again_if_no_thread_in_it_goes_on_by_itself(what: str, is_kept: bool) -> None:
    """C8, G1: what it prints later would be taken for words of the next call; rest costs no process."""
    async with odd() as gateway:
        pid = await said(gateway, "leaves", what=what)
        call_id = gateway.submit("naps", {"seconds": 0.4})
        facts = [one async for one in gateway.follow(call_id)]
        assert not [one for one in facts if isinstance(one, Logged)], "of the one before"
        assert (told(await gateway.result(call_id)) == pid) is is_kept


async def test_work_for_a_thread_that_was_at_rest_ends_with_the_call_that_gave_it() -> None:
    """C8, G1: also if an earlier call left the thread."""
    async with odd() as gateway:
        pid = await said(gateway, "leaves_a_pool")
        assert await said(gateway, "hands_to_the_pool") == pid
        assert await said(gateway, "where") != pid


async def test_memory_that_a_call_kept_is_not_the_next_ones_fault() -> None:
    """G1: each call has all that it may use."""
    async with odd() as gateway:
        pid = await said(gateway, "keeps", megabytes=200)
        assert await said(gateway, "modest") == "150000000"
        assert await said(gateway, "where") != pid


@pytest.mark.parametrize("method", ["fork", "spawn"])
async def test_processes_of_multiprocessing_report(method: str) -> None:
    """G1, P1: also where each loads the file of the tool anew."""
    async with odd() as gateway:
        call = await gateway.call("spreads", {"method": method})
        assert told(call) == "[1,4,9,16]"
        assert call.latest is not None and call.latest.message == "squared elsewhere"


async def test_a_process_that_a_tool_forked_ends_by_sigterm() -> None:
    """G1: it does not keep the handler of the child process, which would let `Pool` wait for it forever."""
    async with odd() as gateway:
        assert await said(gateway, "ends_what_it_forked") == str(-signal.SIGTERM)


async def test_the_last_of_a_flood_from_below_arrives() -> None:
    """P5: what finds no room waits, the newest of it; long words are cut, not dropped."""
    async with odd() as gateway:
        call = await gateway.call("floods_from_below", {"n": 3000})
        assert call.latest is not None and call.latest.progress == 3000 and call.latest.message


class Flood:
    """A socket on which there is always one more report."""

    def recv(self, most: int) -> bytes:
        """One of them."""
        return b'[1,2,"more"]'


async def test_a_flood_from_below_keeps_nobody_else_waiting() -> None:
    """P5, X1: after some of them others have their turn, a cancel too."""
    loop = asyncio.get_running_loop()
    Worker([], ChildLifespan(Loaded([])), loop, cast(socket.socket, Flood())).relay_reports()


async def test_a_report_from_below_may_have_numbers_of_any_type() -> None:
    """P1, P4: as one in the call itself."""
    async with odd() as gateway:
        latest = (await gateway.call("reports_oddly")).latest
        assert latest is not None
        assert (latest.progress, latest.total, latest.message) == (0.5, None, "['a', 'list']")


async def test_a_child_cannot_speak_for_its_fork_server() -> None:
    """G1: what it says of its own end is garbage, and ends it."""
    async with odd() as gateway:
        assert (await said(gateway, "forges")).startswith("pipe_lost")


def hiding() -> list[int]:
    """What the tool `hides` has started."""
    return [pid for pid in below_here() if b"613" in command(pid)]


async def test_a_fork_server_that_is_killed_leaves_nothing_behind() -> None:
    """G1: also what hid in a session of its own, its environment empty; the next call runs."""
    async with odd() as gateway:
        call_id = gateway.submit("hides")
        await happens(lambda: gateway.engine[call_id].call.latest)
        await happens(lambda: len(hiding()) == 1)  # it is another program a moment after it was started
        (hidden,) = hiding()
        child = processes.process_info(hidden).parent
        os.kill(processes.process_info(child).parent, signal.SIGKILL)
        call = await asyncio.wait_for(gateway.result(call_id), PATIENCE_S)
        assert told(call).startswith("child_killed") and "fork server" in told(call)
        await happens(lambda: is_dead(hidden))
        assert await said(gateway, "unlimited") == "done"


async def test_programs_that_are_over_count_for_nothing() -> None:
    """G1: what nobody waited for is no process any more."""
    async with odd() as gateway:
        assert await said(gateway, "backgrounds", n=60) == "done"


async def test_processes_that_double_are_all_ended() -> None:
    """G1: hundreds before anybody looks, each in a session of its own."""
    async with odd() as gateway:
        assert (await said(gateway, "doubles", times=9)).startswith("process_limit")
        assert await said(gateway, "unlimited") == "done"
        await happens(lambda: len(below_here()) < 16)
