"""Tools in child processes that loop, eat, fork, crash and babble: they end, and nothing of them is left."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from afoot import Gateway
from afoot.errors import RunnerDied, ToolError
from afoot.providers.isolation import processes
from tests.providers.fake_run import ScriptedRun, decoded, text_of
from tests.providers.isolation.isolated_provider import Isolated, below_here, command, family, happens


async def failed(isolated: Isolated, tool: str, **arguments: Any) -> ToolError:
    """The error of a call that fails; another goes well after it."""
    with pytest.raises(ToolError) as caught:
        await isolated.call(tool, **arguments)
    assert text_of(await isolated.call("echo", text="still here")) == "still here"
    return caught.value


@pytest.mark.parametrize("tool", ["endless", "endless_below"])
async def test_processor_time_is_limited_for_all_that_a_call_started(tool: str) -> None:
    """G1: also where a program below spends it."""
    async with family() as isolated:
        error = await failed(isolated, tool)
    assert error.code == "cpu_limit" and "cpu_s" in error.message


@pytest.mark.parametrize("tool", ["greedy", "shares_greedily"])
async def test_out_of_memory_is_a_failed_call_that_says_so(tool: str) -> None:
    """G1: by the system's limit at once, or by the fork server, who counts what is shared too."""
    async with family() as isolated:
        error = await failed(isolated, tool)
    assert error.code == "out_of_memory" and "memory_bytes" in error.message


async def test_a_tool_that_forks_too_much_ends_with_all_of_it() -> None:
    """G1: processes in sessions of their own count as well."""
    async with family() as isolated:
        error = await failed(isolated, "forks", n=50)
        assert error.code == "process_limit" and "more than 8 processes" in error.message
        await happens(lambda: len(below_here()) < 8)


async def test_open_files_are_limited() -> None:
    """G1: the tool meets the limit as an error of its own."""
    async with family() as isolated:
        assert decoded((await isolated.call("opens")).structured)["result"] < 40


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "words"),
    [
        ("segfault", {}, "child_crashed", "SIGSEGV"),
        ("exits", {"code": 3}, "exit", "exit code 3"),
        ("half_a_report", {}, "exit", "exit code 0"),
        ("garbage", {}, "pipe_lost", "garbage"),
    ],
)
async def test_a_crash_is_a_failed_call_that_says_how(
    tool: str, arguments: dict[str, object], code: str, words: str
) -> None:
    """G1, E3: a signal's name, an exit code, garbage on the pipe; the next call has a new child."""
    async with family() as isolated:
        error = await failed(isolated, tool, **arguments)
    assert error.code == code and words in error.message


async def test_a_child_that_somebody_killed_is_a_runner_that_died() -> None:
    """U4: that is not the tool's fault, so the rules for repeating hold."""
    async with family() as isolated:
        with pytest.raises(RunnerDied, match="SIGKILL") as caught:
            await isolated.call("is_killed")
        assert caught.value.began and caught.value.code == "child_killed"


async def test_a_call_that_is_safe_runs_again_in_another_child(tmp_path: Path) -> None:
    """U4: the whole way through the engine; one that is not safe ends as uncertain."""
    async with Gateway("tests.providers.isolation.isolated_tools") as gateway:
        call = await gateway.call("is_killed_once", {"mark": str(tmp_path / "mark")})
        assert call.end is not None and (call.end.outcome, call.attempt) == ("ok", 2)
        call = await gateway.call("is_killed")
        assert call.end is not None and (call.end.outcome, call.attempt) == ("uncertain", 1)


async def test_a_clock_ends_the_process_and_what_it_used_is_told() -> None:
    """C7: told at the limit, then really stopped within its grace; processor time up to its end."""
    async with Gateway("tests.providers.isolation.isolated_tools") as gateway:
        call_id = gateway.submit("spends", {"seconds": 600}, ceiling_s=1.0)
        call = await gateway.result(call_id)
        await happens(lambda: call.released)
    assert call.end is not None and call.released is not None
    assert call.end.outcome == "timed_out" and call.released.how == "stopped"
    assert call.cpu_s == call.released.cpu_s > 0


async def test_a_crash_still_says_what_was_used_and_printed() -> None:
    """G1: processor time up to the end, by the fork server."""
    run = ScriptedRun()
    async with family() as isolated:
        with pytest.raises(ToolError):
            await isolated.call("endless", run)
    assert run.cpu_s >= 0.25


async def test_a_tool_deaf_to_signals_is_killed_with_what_it_started() -> None:
    """C7, X1: within its grace, and what ignores SIGTERM in a session of its own goes too."""
    run = ScriptedRun()
    async with family(grace_s=2.0) as isolated:
        isolated.children.keep_ready(isolated.provider.sources())
        task = asyncio.create_task(isolated.call("deaf_to_signals", run))
        await happens(lambda: run.readings)
        before = set(below_here())
        run.cancelled = "enough"
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task
        await happens(lambda: len(before & set(below_here())) <= 3)  # reaper, fork server, and who is ready


async def test_a_daemon_left_behind_is_found_and_ended() -> None:
    """C7: forked twice, its session and environment its own; the call itself went well."""
    async with family() as isolated:
        assert text_of(await isolated.call("double_forks")) == "left"
        await happens(lambda: b"sleep" not in b"".join(map(command, below_here())))


async def test_output_is_cut_and_nobody_waits_for_it() -> None:
    """G3: two hundred lines a call; the rest is read and dropped."""
    run = ScriptedRun()
    async with family() as isolated:
        assert text_of(await isolated.call("talks", run, lines=20_000)) == "said"
    assert len(run.logs) == 201 and "output is cut here" in run.logs[-1][0]


async def test_other_calls_go_on_while_tools_misbehave() -> None:
    """G1: three bad ones and a good one, at the same time."""
    async with family() as isolated:
        bad = [
            asyncio.create_task(failed(isolated, "endless")),
            asyncio.create_task(failed(isolated, "greedy")),
            asyncio.create_task(failed(isolated, "forks", n=30)),
        ]
        run = ScriptedRun()
        while not all(task.done() for task in bad):
            assert text_of(await isolated.call("count", run, n=3)) == "3"
        assert len(run.readings) % 3 == 0 and run.readings
        assert [task.result().code for task in bad] == ["cpu_limit", "out_of_memory", "process_limit"]


async def test_a_reaper_that_is_killed_takes_everything_along_and_is_replaced() -> None:
    """G1: whatever dies, the next call runs."""
    run = ScriptedRun()
    async with family() as isolated:
        task = asyncio.create_task(isolated.call("hang", run))
        await happens(lambda: run.readings)
        (reaper,) = [
            pid
            for pid in below_here()
            if b"isolation.reaper" in command(pid) and processes.process_info(pid).parent == os.getpid()
        ]
        os.kill(reaper, signal.SIGKILL)
        with pytest.raises(RunnerDied):
            await task
        assert text_of(await isolated.call("echo", text="again")) == "again"


async def test_two_that_died_are_told_apart(tmp_path: Path) -> None:
    """C8: each call hears of its own child alone."""
    runs = [ScriptedRun(f"c{n}") for n in range(4)]
    async with family() as isolated:
        ends = await asyncio.gather(
            isolated.call("exits", runs[0], code=5),
            isolated.call("count", runs[1], n=2),
            isolated.call("segfault", runs[2]),
            isolated.call("count", runs[3], n=4),
            return_exceptions=True,
        )
    assert "exit code 5" in str(ends[0]) and "SIGSEGV" in str(ends[2])
    assert [len(run.readings) for run in runs] == [0, 2, 0, 4]
