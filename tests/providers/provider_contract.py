"""What every provider must do, as tests that take a `provider` fixture.

A test module of a provider says `from tests.providers.provider_contract import *` and has a fixture
`provider`: a function that makes, inside a running loop, a provider with the tools:
`echo(text: str)` gives back the text · `count(n: int)` reports 1 to n of n and gives back n as text ·
`crash()` raises ValueError("boom") · `missing()` raises ToolError.not_found("no such thing") ·
`hang()` reports once and waits until it is cancelled · `confirm()` asks for {"sure": bool} and gives back
"yes" or "no". A provider that has to be opened first is opened, and closed in the same loop. One whose
tools cannot ask says `asks = False`, has no `confirm`, and leaves the test of questions out.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

import msgspec
import pytest
from msgspec import Raw

from afoot.core.facts import Result
from afoot.core.ports import Provider
from afoot.errors import ToolError, UnknownName
from tests.providers.fake_run import ScriptedRun, accept, decoded, text_of, until

TOOLS = {"echo", "count", "crash", "missing", "hang", "confirm"}
Make = Callable[[], Provider]

__all__ = [
    "test_a_crash_of_a_tool_is_raised_and_is_no_cancel",
    "test_a_question_is_asked_and_its_answer_comes_back",
    "test_a_tool_error_keeps_its_category",
    "test_a_wrong_argument_is_named_before_anything_runs",
    "test_an_unknown_tool_lists_the_nearest",
    "test_calls_in_parallel_never_mix",
    "test_cancelling_ends_the_work",
    "test_every_tool_is_offered_with_a_definition",
    "test_reports_arrive_in_order_and_before_the_result",
]


@runtime_checkable
class Opened(Protocol):
    """A provider that has to be opened before it knows its tools."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@asynccontextmanager
async def made(make: Make) -> AsyncIterator[Provider]:
    """A provider that is ready."""
    provider = make()
    if not isinstance(provider, Opened):
        yield provider
        return
    try:
        await provider.open()
        yield provider
    finally:
        await provider.close()


async def run_tool(provider: Provider, tool: str, arguments: object, run: ScriptedRun) -> Result:
    """Prepare and run."""
    return await provider.prepare(tool, Raw(msgspec.json.encode(arguments)))(run)


async def test_every_tool_is_offered_with_a_definition(provider: Make) -> None:
    """C8: a tool carries its name, its server and an object schema."""
    async with made(provider) as one:
        offered = {tool.name: tool for tool in one.tools()}
        assert offered.keys() >= (TOOLS if getattr(one, "asks", True) else TOOLS - {"confirm"})
        for tool in offered.values():
            definition = decoded(tool.definition)
            assert definition["name"] == tool.name
            assert definition["inputSchema"]["type"] == "object"
            assert tool.server == one.name
            assert tool.digest


async def test_an_unknown_tool_lists_the_nearest(provider: Make) -> None:
    """E5: the error names what was meant."""
    async with made(provider) as one:
        with pytest.raises(UnknownName, match="echo"):
            one.prepare("ecko", Raw(b"{}"))


async def test_a_wrong_argument_is_named_before_anything_runs(provider: Make) -> None:
    """E4: the field is in the text, and nothing ran."""
    async with made(provider) as one:
        with pytest.raises(ToolError, match=r"arguments\.n") as caught:
            one.prepare("count", Raw(b'{"n": "many"}'))
        assert caught.value.category == "validation"


async def test_reports_arrive_in_order_and_before_the_result(provider: Make) -> None:
    """P6: nothing overtakes."""
    run = ScriptedRun()
    async with made(provider) as one:
        result = await run_tool(one, "count", {"n": 50}, run)
        assert [reading[:2] for reading in run.readings] == [(n, 50) for n in range(1, 51)]
        assert text_of(result) == "50"


async def test_a_tool_error_keeps_its_category(provider: Make) -> None:
    """E1: category and text are the tool's."""
    async with made(provider) as one:
        with pytest.raises(ToolError, match="no such thing") as caught:
            await run_tool(one, "missing", {}, ScriptedRun())
        assert caught.value.category == "not_found"


async def test_a_crash_of_a_tool_is_raised_and_is_no_cancel(provider: Make) -> None:
    """E3: whoever supervises learns of it; what crashed far away may come back as a result that says so."""
    async with made(provider) as one:
        try:
            result = await run_tool(one, "crash", {}, ScriptedRun())
        except Exception as error:
            assert "boom" in str(error)
        else:
            assert result.is_error and "crash" in text_of(result)


async def test_cancelling_ends_the_work(provider: Make) -> None:
    """X1: the cancelled task really ends."""
    run = ScriptedRun()
    async with made(provider) as one:
        task = asyncio.create_task(run_tool(one, "hang", {}, run))
        await until(lambda: run.readings)
        run.cancelled = "enough"
        task.cancel()
        with pytest.raises((asyncio.CancelledError, ToolError)):
            await task


async def test_a_question_is_asked_and_its_answer_comes_back(provider: Make) -> None:
    """Q1: straight-line code."""
    run = ScriptedRun(answers=[accept({"sure": True})])
    async with made(provider) as one:
        assert text_of(await run_tool(one, "confirm", {}, run)) == "yes"
        assert (run.questions[0].kind, run.questions[0].id) == ("form", "")
        assert "sure" in decoded(run.questions[0].body)["properties"]


async def test_calls_in_parallel_never_mix(provider: Make) -> None:
    """C8: each run hears only its own call."""
    runs = [ScriptedRun(f"c{n}") for n in range(1, 11)]
    async with made(provider) as one:
        results = await asyncio.gather(
            *(run_tool(one, "count", {"n": n}, run) for n, run in enumerate(runs, 1))
        )
        assert [text_of(result) for result in results] == [str(n) for n in range(1, 11)]
        assert [len(run.readings) for run in runs] == list(range(1, 11))
