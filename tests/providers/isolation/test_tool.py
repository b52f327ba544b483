"""Tools in child processes: what crosses the boundary, both ways."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from afoot.config.tables import IsolationSettings, ToolSettings
from afoot.core.facts import Result
from afoot.engine.catalog import EffectiveSettings
from afoot.errors import ToolError
from afoot.providers.content import content_of
from afoot.providers.functions.context import Context
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider, tool
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of
from tests.providers.isolation import isolated_tools as tools
from tests.providers.isolation import processor_tools
from tests.providers.isolation.isolated_provider import family, happens


async def test_a_call_runs_in_another_process_which_is_used_again() -> None:
    """G1: a process group of its own, and the next call finds it warm."""
    async with family(warm=0) as isolated:
        isolated.children.keep_ready(isolated.provider.sources())
        first = decoded((await isolated.call("where")).structured)["result"]
        second = decoded((await isolated.call("where")).structured)["result"]
        assert first == second
        pid, fork_server, group = first
        assert pid == group and os.getpid() not in (pid, fork_server)


async def test_a_child_is_ready_before_the_first_call() -> None:
    """G1: the pool is warm; whoever needs none waits for nobody."""
    async with family() as isolated:
        start = isolated.provider.start("echo", "")
        assert start is not None and "child process" in start.what
        isolated.children.keep_ready(isolated.provider.sources())
        await start.done()
        assert isolated.provider.start("echo", "") is None


async def test_everything_a_tool_says_crosses_live() -> None:
    """G1, P1: prints, programs' output, logs, heartbeats, data, a checkpoint."""
    run = ScriptedRun()
    async with family() as isolated:
        await isolated.call("wordy", run)
    said = {(text, logger) for text, _, logger in run.logs}
    assert said >= {
        ("printed", "stdout"),
        ("written to a descriptor", "stdout"),
        ("from a program", "stdout"),
        ("logged", "own"),
        ("said", ""),
        ("without an end", "stderr"),
    }
    assert len(run.logs) == len(said), "nothing is heard twice"
    assert run.beats == 1 and run.changed == ["x://1"]
    data, checkpoint = run.contents
    assert (data.progress, decoded(data.data)) == (1, {"phase": "one"})
    assert decoded(checkpoint.checkpoint) == {"at": 7}


async def test_a_checkpoint_and_partial_results_cross() -> None:
    """P11, H4: the pieces as they come, and what an earlier attempt saved."""
    run = ScriptedRun(resumed_from=b'{"at":7}')
    async with family() as isolated:
        assert decoded((await isolated.call("resumed", run)).structured) == {"at": 7}
        result = await isolated.call("pieces", run, n=3)
    assert text_of(result) == "piece 0\npiece 1\npiece 2\n"
    assert [decoded(one.partial)[0]["text"] for one in run.contents] == [f"piece {n}\n" for n in range(3)]


async def test_a_call_below_goes_through_the_gateway() -> None:
    """P8: `ctx.call` in a child, and what it may raise."""
    run = ScriptedRun()
    run.results.append(Result(content_of("an echo")))
    async with family() as isolated:
        assert text_of(await isolated.call("below", run)) == "an echo"
        assert [(name, decoded(raw)) for name, raw, _ in run.calls] == [("echo", {"text": "from below"})]


async def test_threads_forks_and_programs_of_a_tool_report() -> None:
    """P1: whoever works for the call can say so; a bar in a child is a report too (P10)."""
    run = ScriptedRun()
    async with family() as isolated:
        await isolated.call("from_a_thread", run)
        await isolated.call("from_grandchildren", run)
        await isolated.call("by_hand_in_a_fork", run)
        assert run.readings == [
            (3, 4, "from a thread"),
            (5, 6, "from a program"),
            (1, 2, "from a fork"),
            (2, 2, "from a fork"),
            (1, 1, "by the context"),
        ]
        await isolated.call("bars", run)
        assert run.readings[-1] == (5, 5, "steps")


async def test_a_flood_of_reports_is_thinned_and_its_last_arrives() -> None:
    """P3, P5: what the pipe cannot take is replaced by what is newer; order is kept."""
    run, n = ScriptedRun(), 300_000
    async with family() as isolated:
        assert decoded((await isolated.call("flood", run, n=n)).structured) == {"result": n}
    numbers = [int(progress or 0) for progress, _, _ in run.readings]
    assert numbers == sorted(numbers) and numbers[-1] == n


async def test_a_tool_that_looks_stops_by_itself_and_its_result_counts() -> None:
    """X1: cooperative first; the child lives on."""
    run = ScriptedRun()
    async with family() as isolated:
        isolated.children.keep_ready(isolated.provider.sources())
        task = asyncio.create_task(isolated.call("polite", run))
        await happens(lambda: run.readings)
        run.cancelled = "enough"
        task.cancel("enough")
        assert text_of(await task) == "stopped: enough"


async def test_a_tool_that_does_not_look_is_interrupted_and_can_clear_up(tmp_path: Path) -> None:
    """X1, C7: after half of its grace its Python code is left by an exception."""
    run, mark = ScriptedRun(), tmp_path / "mark"
    async with family() as isolated:
        task = asyncio.create_task(isolated.call("clears_up", run, mark=str(mark)))
        await happens(lambda: run.readings)
        run.cancelled = "enough"
        task.cancel("enough")
        with pytest.raises((asyncio.CancelledError, ToolError)):
            await task
        assert mark.read_text() == "cleared up"


async def test_processor_time_is_counted() -> None:
    """G1: user and system, of the child and of what it waited for."""
    run = ScriptedRun()
    async with family() as isolated:
        await isolated.call("spends", run, seconds=0.3)
    assert 0.3 <= run.cpu_s < 3


@pytest.mark.parametrize("spare", [0, 1, 1000])
async def test_a_processor_stays_free_of_isolated_tools_and_they_always_have_one(spare: int) -> None:
    """G1: reports of other calls would wait for their turn if children kept all of them busy."""
    ours = sorted(os.sched_getaffinity(0))
    given = await call(
        processor_tools.processors, settings=FunctionSettings(isolation=IsolationSettings(spare=spare))
    )
    assert decoded(given.structured) == {"result": ours[spare:] or ours[-1:]}


async def test_a_call_that_keeps_a_processor_busy_steps_back_with_all_that_it_started() -> None:
    """G1: its threads and its programs, so that others on the same processor come first."""
    settings = FunctionSettings(isolation=IsolationSettings(nice=7))
    given = await call(processor_tools.works_until_it_steps_back, {"nice": 7}, settings=settings)
    assert decoded(given.structured) == {"result": [7, 7, 7]}


async def test_a_tool_that_keeps_a_processor_busy_is_isolated_unless_somebody_says_no() -> None:
    """G1: declared by its author; the settings have the last word."""
    elsewhere = EffectiveSettings({"crunch": ToolSettings(isolate=False)})
    assert decoded((await call(tools.crunch)).structured) != {"result": os.getpid()}
    assert decoded((await call(tools.crunch_here)).structured) == {"result": os.getpid()}
    told = FunctionSettings(effective_settings=elsewhere)
    assert decoded((await call(tools.crunch, settings=told)).structured) == {"result": os.getpid()}
    off = FunctionSettings(isolation=IsolationSettings(enabled=False))
    assert decoded((await call(tools.crunch, settings=off)).structured) == {"result": os.getpid()}


def test_limits_come_from_the_settings_of_the_tool_its_author_or_the_table() -> None:
    """G1, C3: the nearest wins."""
    terms = EffectiveSettings({"greedy": ToolSettings(cpu_s=7.0, open_files=9)})
    settings = FunctionSettings(isolation=IsolationSettings(processes=5), effective_settings=terms)
    provider = FunctionProvider([tools.greedy], settings=settings)
    limits = provider._isolated["greedy"].limits
    assert msgspec.to_builtins(limits) == {
        "cpu_s": 7.0,
        "memory_bytes": 400_000_000,
        "open_files": 9,
        "processes": 5,
    }
    (offer,) = provider.tools()
    assert offer.starts and offer.concurrency > 0
    assert offer.isolation == msgspec.to_builtins(limits)


def test_a_function_that_no_other_process_can_find_is_refused_by_name() -> None:
    """G1: where it is told, when it is offered."""

    @tool(isolate=True)
    def inner(ctx: Context) -> None: ...

    with pytest.raises(TypeError, match=r"tool inner .*at the top of a module"):
        FunctionProvider([inner])


async def test_a_module_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    """G1, E3: file and line, and no call hangs."""
    from afoot.providers.functions.loading import load_file

    file = tmp_path / "later.py"
    file.write_text("import afoot\n\n@afoot.tool(isolate=True)\ndef one() -> int:\n    return 1\n")
    provider = FunctionProvider(load_file(file).tools)
    file.write_text("import afoot\n\nraise RuntimeError('not today')\n")
    try:
        with pytest.raises(ToolError, match=r"later\.py, line 3: RuntimeError: not today"):
            await provider.prepare("one", msgspec.Raw(b"{}"))(ScriptedRun())
    finally:
        provider.close()
