"""Generator tools."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from afoot.errors import ToolError
from afoot.providers.content import Content, Partial
from afoot.providers.functions.context import Context
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of, until


async def both(run: ScriptedRun, values: list[Any]) -> list[Any]:
    """What an async and a sync generator of these values give."""

    async def over_time() -> AsyncIterator[Any]:
        for value in values:
            yield value

    def at_once() -> Iterator[Any]:
        yield from values

    return [await call(over_time, run=run), await call(at_once, run=run)]


async def test_partials_are_passed_on_and_the_other_value_is_the_result() -> None:
    """P11: in order, each as content."""
    run = ScriptedRun()
    for result in await both(run, [Partial("a"), {"n": 1}, Partial([Content.text("b")])]):
        assert decoded(result.structured) == {"n": 1}
    assert [decoded(report.partial)[0]["text"] for report in run.contents] == ["a", "b"] * 2


async def test_without_a_value_the_partials_are_the_result() -> None:
    """P11: joined."""
    for result in await both(ScriptedRun(), [Partial("a"), Partial("b")]):
        assert text_of(result) == "ab"
        assert decoded(result.structured) is None
    for result in await both(ScriptedRun(), []):
        assert decoded(result.content) == []


async def test_a_second_value_is_an_error() -> None:
    """P11: only one is the result."""

    async def twice() -> AsyncIterator[int]:
        yield 1
        yield 2

    def returned() -> Generator[int, None, int]:
        yield 1
        return 2

    for function in (twice, returned):
        with pytest.raises(ToolError, match=r"second result: .* as afoot\.Partial\(part\)"):
            await call(function)


async def test_what_a_sync_generator_returns_counts() -> None:
    """P11: and None is nothing."""

    def returned() -> Generator[Partial, None, int]:
        yield Partial("a")
        return 2

    def nothing() -> Generator[Partial, None, None]:
        yield Partial("a")

    assert decoded((await call(returned)).structured) == {"result": 2}
    assert text_of(await call(nothing)) == "a"


async def test_generators_are_closed_on_cancel() -> None:
    """X1, X2: their clean-up runs, and what it says is heard."""
    closed: list[str] = []

    async def over_time(ctx: Context) -> AsyncIterator[Partial]:
        try:
            yield Partial("a")
            await asyncio.Event().wait()
        finally:
            ctx.report(message="cleaned")
            closed.append("async")

    def at_once(ctx: Context) -> Iterator[Partial]:
        try:
            while True:
                yield Partial("a")
        finally:
            closed.append("sync")

    for function in (over_time, at_once):
        run = ScriptedRun()
        task = asyncio.create_task(call(function, run=run))
        await until(lambda run=run: run.contents)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if function is over_time:
            assert run.readings == [(None, None, "cleaned")]
    await until(lambda: closed == ["async", "sync"])


async def test_a_partial_that_cannot_be_encoded_fails_the_call() -> None:
    """E3: cleanly."""
    with pytest.raises(ToolError, match="cannot be encoded"):
        await both(ScriptedRun(), [Partial(object())])
