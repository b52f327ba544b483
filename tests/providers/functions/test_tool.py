"""The decorator and the provider."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import mcp_types
import pytest
from msgspec import Raw
from pydantic import BaseModel

from afoot.core.facts import Limits
from afoot.errors import BadTool, ToolError
from afoot.providers.content import Content, ToolResult
from afoot.providers.functions.context import Context, current_context
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider, FunctionTool, tool
from tests.providers.fake_run import ScriptedRun, accept, call, decoded, text_of, until


@tool
async def export(pages: int, ctx: Context | None = None) -> dict[str, int]:
    """Export pages.

    Args:
        pages: how many pages
    """
    for n in range(pages):
        if ctx:
            ctx.report(n + 1, pages, f"page {n + 1}")
    return {"pages": pages}


async def test_a_decorated_function_is_itself() -> None:
    """P2: called directly, it works without a context."""
    assert await export(2) == {"pages": 2}
    assert isinstance(export.__dict__["__afoot_tool__"], FunctionTool)


async def test_the_readme_tool_runs() -> None:
    """P1, P6: reports, then the result in both forms."""
    run = ScriptedRun()
    result = await call(export, {"pages": 2}, run)
    assert run.readings == [(1, 2, "page 1"), (2, 2, "page 2")]
    assert decoded(result.structured) == {"pages": 2}
    assert text_of(result) == '{"pages":2}'


@tool(
    name="x.y",
    title="X",
    description="Does x",
    idle=5.0,
    ceiling=60.0,
    concurrency=4,
    queue=16,
    idempotent=True,
    read_only=True,
    destructive=False,
    open_world=False,
    icon="https://example.org/i.png",
    requires={"sampling": {}},
    lifecycle="stages",
)
def anything(n: int = 1) -> list[int]:
    """Not this."""
    return [n]


def test_a_definition_has_what_the_author_said() -> None:
    """C3: everything in its place, checked by the protocol's own types."""
    definition = decoded(FunctionProvider([anything]).tools()[0].definition)
    mcp_types.Tool.model_validate(definition)
    assert (definition["title"], definition["description"]) == ("X", "Does x")
    assert definition["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert definition["icons"] == [{"src": "https://example.org/i.png"}]
    assert definition["outputSchema"]["properties"]["result"]["type"] == "array"


def test_an_offer_has_the_limits_that_the_author_set() -> None:
    """C3: the rest comes from the settings."""
    (offer,) = FunctionProvider([anything], name="mine").tools()
    assert (offer.name, offer.server, offer.concurrency, offer.queue) == ("x.y", "mine", 4, 16)
    assert (offer.limits.idle_s, offer.limits.ceiling_s, offer.limits.answer_s) == (5.0, 60.0, 600.0)
    assert (offer.read_only, offer.idempotent, offer.destructive) == (True, True, False)
    assert (offer.lifecycle, offer.requires) == ("stages", {"sampling": {}})


def test_what_was_not_said_is_not_shown() -> None:
    """A1: a missing hint is no hint."""

    def bare() -> None: ...

    (offer,) = FunctionProvider([bare], settings=FunctionSettings(limits=Limits(idle_s=7.0), queue=3)).tools()
    assert decoded(offer.definition) == {
        "name": "bare",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    assert (offer.limits.idle_s, offer.queue) == (7.0, 3)


def test_silence_may_be_allowed() -> None:
    """C3: `idle=None` is said, not left out."""

    @tool(idle=None)
    def quiet() -> None: ...

    assert FunctionProvider([quiet]).tools()[0].limits.idle_s is None


def test_a_changed_definition_has_another_digest() -> None:
    """A4: approvals are bound to it."""

    def one(a: int) -> None: ...

    def two(a: str) -> None: ...

    digests = {FunctionProvider([tool(name="t")(function)]).tools()[0].digest for function in (one, two)}
    assert len(digests) == 2


def test_two_tools_of_one_name_are_refused() -> None:
    """U3: the author is told which two."""

    def same() -> None: ...

    def other() -> None: ...

    with pytest.raises(BadTool, match=r"named same: .*test_tool\.py:\d+ and .*test_tool\.py:\d+; give"):
        FunctionProvider([same, tool(name="same")(other)])
    assert len(FunctionProvider([export, export]).tools()) == 1


def test_bad_names_and_signatures_name_their_place() -> None:
    """E4: file and line, when the tool is loaded."""

    def bad(*all: int) -> None: ...

    with pytest.raises(BadTool, match=r"test_tool\.py:\d+: 'a b' is no tool name"):
        tool(name="a b")(bad)
    with pytest.raises(BadTool, match=r"tool bad \(.*test_tool\.py:\d+\): \*all"):
        FunctionProvider([bad])


async def test_a_tool_that_cancels_itself_has_failed() -> None:
    """E3: it is not taken for somebody's cancel."""

    async def gives_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ToolError, match="cancelled itself"):
        await call(gives_up)


async def test_a_tool_that_exits_does_not_end_the_gateway() -> None:
    """E3: SystemExit stops at the tool."""

    async def leaves() -> None:
        raise SystemExit("bye")

    with pytest.raises(ToolError, match=r"exit\('bye'\)"):
        await call(leaves)


async def test_what_a_cancelled_tool_returns_counts() -> None:
    """X2: a partial result instead of nothing."""

    async def stubborn(ctx: Context) -> str:
        ctx.report()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return f"so far: {ctx.cancelled}"
        return "never"

    run = ScriptedRun()
    task = asyncio.create_task(call(stubborn, run=run))
    await until(lambda: run.readings)
    run.cancelled = "enough"
    task.cancel()
    assert text_of(await task) == "so far: enough"


async def test_an_async_function_hidden_by_a_decorator_still_runs() -> None:
    """G4: its coroutine is awaited on the loop."""

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **named: Any) -> Any:
            return function(*args, **named)

        return wrapper

    @logged
    async def hidden(n: int, ctx: Context) -> str:
        ctx.report(n)
        return str((await ctx.ask("m?", int)).content)

    run = ScriptedRun(answers=[accept({"value": 4})])
    assert text_of(await call(hidden, {"n": 3}, run)) == "4"
    assert run.readings == [(3, None, None)]


async def test_the_current_call_is_set_only_while_it_runs() -> None:
    """P10: what bars and prints are counted for."""
    seen: list[Any] = []

    async def look(ctx: Context) -> None:
        seen.append(current_context.get() is ctx)
        await asyncio.sleep(0)

    def look_in_thread(ctx: Context) -> None:
        seen.append(current_context.get() is ctx)

    await call(look)
    await call(look_in_thread)
    assert seen == [True, True]
    assert current_context.get() is None


async def test_results_are_what_the_protocol_expects() -> None:
    """C7: checked by its own types."""

    class Page(BaseModel):
        n: int

    def full() -> ToolResult:
        return ToolResult([Content.image(b"x"), Content.link("file:///a", "a")], {"n": 1})

    def model() -> Page:
        return Page(n=1)

    for function in (full, model):
        result = await call(function)
        wire = {
            "content": decoded(result.content),
            "structuredContent": decoded(result.structured),
            "resultType": "complete",
        }
        assert mcp_types.CallToolResult.model_validate(wire).structured_content == {"n": 1}


async def test_a_provider_outlives_its_loop() -> None:
    """C8: tests and reloads use one provider on several loops."""

    def sync(ctx: Context) -> str:
        ctx.report(1)
        return "ok"

    provider = FunctionProvider([sync])

    def once() -> str:
        async def go() -> str:
            return text_of(await provider.prepare("sync", Raw(b"{}"))(ScriptedRun()))

        return asyncio.run(go())

    assert [await asyncio.to_thread(once) for _ in range(2)] == ["ok", "ok"]


@pytest.mark.parametrize("option", ["task", "on_disconnect", "join"])
def test_what_a_tool_says_of_lasting_calls_is_checked(option: str) -> None:
    """H3, X3: a word that means nothing is told when the tool is offered."""

    def work() -> str:
        return ""

    said: Any = {option: "perhaps"}
    with pytest.raises(BadTool, match=f"tool work .*{option} must be one of"):
        FunctionProvider([tool(**said)(work)])
