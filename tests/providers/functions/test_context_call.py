"""A tool that calls tools through its context: in async code, in threads, and through every kind of end."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import json

import afoot
from afoot import Context, ToolError
from afoot.core.call import Call
from afoot.engine.followers import Watcher
from afoot.errors import UnknownName
from afoot.gateway import Gateway
from tests.providers.fake_run import until


@afoot.tool
async def add(a: int, b: int = 1, ctx: Context | None = None) -> dict[str, int]:
    """Add."""
    if ctx is not None:
        ctx.report(1, 2, f"adding {b}")
    return {"sum": a + b}


@afoot.tool
async def shout(word: str) -> str:
    """Shout."""
    return word.upper()


@afoot.tool
async def fail(how: str) -> str:
    """Fail."""
    if how == "crash":
        raise ValueError("boom")
    raise ToolError.rate_limited("slow down", retry_after=7.0)


@afoot.tool
async def sleep() -> str:
    """Sleep for as long as it may."""
    await asyncio.sleep(1000)
    return "woke"


async def called(function: Callable[..., Any], **arguments: object) -> Call:
    """One call of a tool that has these others to call."""
    made = afoot.tool(function)
    async with Gateway(made, add, shout, fail, sleep) as gateway:
        return await gateway.call(gateway.tools()[0].name, arguments)


def value(call: Call) -> Any:
    """What it returned."""
    assert call.end is not None and call.end.result is not None, call.end
    if call.end.result.structured:
        return json.decode(call.end.result.structured)
    return json.decode(call.end.result.content)[0]["text"]


async def test_an_async_tool_awaits_what_another_returned() -> None:
    """P8: the structured result, or the text."""

    async def outer(ctx: Context) -> dict[str, Any]:
        """Call."""
        found = await ctx.call("add", {"a": 1, "b": 2})
        return {"sum": found["sum"], "word": await ctx.call("shout", {"word": "hey"})}

    assert value(await called(outer))["sum"] == 3
    assert "HEY" in str(value(await called(outer))["word"])


async def test_a_sync_tool_blocks_in_its_own_thread() -> None:
    """P8, G4: the same, without await; the loop goes on meanwhile."""
    threads = list[int]()

    def outer(ctx: Context) -> int:
        """Call."""
        threads.append(threading.get_ident())
        total = 0
        for n in range(5):
            total = ctx.call("add", {"a": total, "b": n})["sum"]
        return total

    assert "10" in str(value(await called(outer)))
    assert threads != [threading.get_ident()]


async def test_threads_of_one_tool_may_call_at_the_same_time() -> None:
    """P8, G4: each gets its own result."""

    def outer(ctx: Context) -> list[int]:
        """Call."""
        found = dict[int, int]()

        def one(n: int) -> None:
            found[n] = ctx.call("add", {"a": n, "b": n})["sum"]

        threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found[n] for n in range(8)]

    assert value(await called(outer)) == {"result": [0, 2, 4, 6, 8, 10, 12, 14]}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_failed_call_raises_with_its_category(is_async: bool) -> None:
    """P8, E1: in the tool, where it may be caught; uncaught it is the tool's own failure."""
    caught = list[ToolError]()

    async def outer(ctx: Context) -> str:
        """Call."""
        try:
            await ctx.call("fail", {"how": "crash"})
        except ToolError as error:
            caught.append(error)
        return str(await ctx.call("fail", {"how": "limit"}))

    def plain(ctx: Context) -> str:
        """Call."""
        try:
            ctx.call("fail", {"how": "crash"})
        except ToolError as error:
            caught.append(error)
        return str(ctx.call("fail", {"how": "limit"}))

    call = await called(outer if is_async else plain)
    assert call.end and call.end.failure
    assert (call.end.failure.category, call.end.failure.retry_after_s) == ("rate_limit", 7.0)
    assert [(error.category, "ValueError: boom" in error.message) for error in caught] == [("internal", True)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_arguments_that_do_not_fit_are_told_by_field(is_async: bool) -> None:
    """E4: as for any caller."""

    async def outer(ctx: Context) -> str:
        """Call."""
        return str(await ctx.call("add", {"a": "x"}))

    def plain(ctx: Context) -> str:
        """Call."""
        return str(ctx.call("add", {"a": "x"}))

    call = await called(outer if is_async else plain)
    assert call.end and call.end.failure and call.end.failure.category == "validation"
    assert "add: " in call.end.failure.message and "a:" in call.end.failure.message


async def test_an_unknown_tool_lists_the_nearest() -> None:
    """E5: in the tool that called it."""
    caught = list[UnknownName]()

    def outer(ctx: Context) -> str:
        """Call."""
        try:
            return str(ctx.call("shuot"))
        except UnknownName as error:
            caught.append(error)
            return "none"

    await called(outer)
    assert caught[0].nearest == ["shout"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_cancelling_a_tool_cancels_what_it_called(is_async: bool) -> None:
    """X1, P8: the thread that waits is told, and the call below ends first."""

    async def outer(ctx: Context) -> str:
        """Call."""
        return str(await ctx.call("sleep"))

    def plain(ctx: Context) -> str:
        """Call."""
        return str(ctx.call("sleep"))

    async with Gateway(afoot.tool(outer if is_async else plain), sleep) as gateway:
        call_id = gateway.submit(gateway.tools()[0].name)
        await until(lambda: any(live.tool.name == "sleep" for live in gateway.engine.calls()))
        below = gateway.engine.calls()[-1]
        gateway.cancel(call_id, "enough")
        call = await gateway.result(call_id)
        await until(lambda: below.call.end is not None)
        await until(lambda: not gateway.engine.calls())
    assert call.end and below.call.end and below.call.cancel
    assert (call.end.outcome, below.call.end.outcome, below.call.cancel.by) == (
        "cancelled",
        "cancelled",
        "parent",
    )


async def test_a_call_below_is_a_call_of_the_same_caller_with_its_parent_and_weight() -> None:
    """P8, S3: its history says whose child it is."""
    seen = list[Call]()

    async def outer(ctx: Context) -> str:
        """Call."""
        await ctx.call("shout", {"word": "x"}, weight=2.5)
        return "done"

    async with Gateway(afoot.tool(outer), shout) as gateway:
        engine = gateway.engine
        with Watcher(engine.watchers, lambda: seen.extend(live.call for live in engine.calls())):
            above = await gateway.result(gateway.submit("outer", caller="me"))
    below = next(call for call in seen if call.opened.tool == "shout")
    assert (below.opened.parent, below.opened.weight, below.opened.caller) == (above.id, 2.5, "me")
