"""Dependencies of tools: functions that fill parameters, and clean up after the call."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Annotated, Any

import msgspec
import pytest
from pydantic import Field

import afoot
from afoot import Context, Depends, Partial, ToolError
from afoot.core.facts import Finished, Reading
from afoot.providers.functions.tool import FunctionProvider
from afoot.testing import try_tool
from tests.providers.fake_run import ScriptedRun

story: list[str] = []


@pytest.fixture(autouse=True)
def empty_story() -> None:
    story.clear()


def plain() -> str:
    story.append("plain")
    return "plain"


async def awaited(inner: Annotated[str, Depends(plain)]) -> str:
    await asyncio.sleep(0)
    story.append("awaited")
    return f"awaited({inner})"


def opened(ctx: Context, inner: str = Depends(plain)) -> Iterator[str]:
    story.append("open")
    try:
        yield f"opened({inner}) in {ctx.id[:0]}call"
    except BaseException as error:
        story.append(type(error).__name__)
        raise
    finally:
        story.append("close")


async def opened_async(inner: Annotated[str, Depends(opened)]) -> AsyncIterator[str]:
    story.append("open async")
    try:
        yield f"async({inner})"
    except BaseException as error:
        story.append(f"async {type(error).__name__}")
        raise
    finally:
        await asyncio.sleep(0)
        story.append("close async")


@contextlib.contextmanager
def managed() -> Iterator[str]:
    yield "managed"
    story.append("close managed")


class Counter:
    def __init__(self, start: Annotated[str, Depends(plain)], step: int = 2) -> None:
        self.text = f"{start} {step}"


def make(kind: str, body: Callable[[str, str], Any]) -> Callable[..., Any]:
    """A tool that runs in this way: on the engine's loop, on a loop of its own, or in a thread."""
    if kind == "thread":

        def tool(
            x: int, a: Annotated[str, Depends(awaited)], b: Annotated[str, Depends(opened_async)]
        ) -> str:
            """Use both."""
            return body(a, b)

    else:

        async def tool(
            x: int, a: Annotated[str, Depends(awaited)], b: Annotated[str, Depends(opened_async)]
        ) -> str:
            """Use both."""
            await asyncio.sleep(0)
            return body(a, b)

    return afoot.tool(own_loop=kind == "own loop")(tool)


kinds = pytest.mark.parametrize("kind", ["loop", "own loop", "thread"])


@kinds
def test_functions_fill_parameters_once_a_call_and_clean_up_in_reverse(kind: str) -> None:
    """F4: nested, sync and async, cached; the value of `plain` is made once for three that need it."""

    def body(a: str, b: str) -> str:
        story.append("body")
        return f"{a} {b}"

    outcome = try_tool(make(kind, body), x=1)
    assert outcome.result == "awaited(plain) async(opened(plain) in call)", outcome.failure
    assert story == ["plain", "awaited", "open", "open async", "body", "close async", "close"]


@kinds
def test_dependencies_are_not_in_the_schema_and_no_caller_sets_them(kind: str) -> None:
    """F4, E4: an argument of that name is refused."""
    tool = make(kind, str.__add__)
    provider = FunctionProvider([tool])
    definition = msgspec.json.decode(provider.tools()[0].definition)
    assert definition["inputSchema"]["properties"].keys() == {"x"}
    failure = try_tool(tool, x=1, a="mine").failure
    assert failure and "arguments.a: unknown argument" in failure.message and not story


@kinds
def test_an_error_of_the_tool_is_seen_by_its_dependencies_and_stays_its_error(kind: str) -> None:
    """F4: the generators may roll back."""

    def body(a: str, b: str) -> str:
        raise ToolError.not_found("no such page")

    failure = try_tool(make(kind, body), x=1).failure
    assert failure and failure.category == "not_found"
    assert story[-4:] == ["async ToolError", "close async", "ToolError", "close"]


@pytest.mark.parametrize("kind", ["loop", "own loop"])
async def test_a_cancelled_call_cleans_up(kind: str) -> None:
    """F4, X1: in its grace."""

    @afoot.tool(own_loop=kind == "own loop")
    async def wait(ctx: Context, a: Annotated[str, Depends(opened_async)]) -> None:
        """Wait."""
        story.append("waits")
        ctx.report(1)
        await asyncio.sleep(100)

    async with afoot.Gateway(wait) as gateway:
        call = gateway.submit("wait")
        async for item in gateway.follow(call):
            if isinstance(item, Reading):
                gateway.cancel(call)
            assert not isinstance(item, Finished) or item.outcome == "cancelled"
    assert story[-5:] == ["waits", "async CancelledError", "close async", "CancelledError", "close"]


def test_a_thread_that_is_cancelled_cleans_up() -> None:
    """F4, X1: also what is async, though its call is over by then."""

    @afoot.tool
    def wait(ctx: Context, a: Annotated[str, Depends(opened_async)]) -> None:
        """Wait."""
        ctx.ask("sure?")

    assert try_tool(wait, cancel_after=5).outcome == "cancelled"
    assert story[-4:] == ["async ToolError", "close async", "ToolError", "close"]


def test_a_call_that_times_out_cleans_up() -> None:
    """F4, C7: at the idle limit."""

    @afoot.tool(idle=3)
    async def wait(a: Annotated[str, Depends(opened)]) -> None:
        """Wait."""
        await asyncio.sleep(100)

    assert try_tool(wait).outcome == "timed_out"
    assert story == ["plain", "open", "CancelledError", "close"]


def test_generators_keep_their_dependencies_to_their_end() -> None:
    """F4, P11: of both kinds."""

    @afoot.tool
    async def pages(a: Annotated[str, Depends(opened)]) -> AsyncIterator[Partial | str]:
        """Give pages."""
        yield Partial("one")
        story.append("second")
        yield a

    @afoot.tool
    def lines(a: Annotated[str, Depends(opened)]) -> Iterator[Partial | str]:
        """Give lines."""
        yield Partial("one")
        story.append("second")
        yield a

    for tool in (pages, lines):
        story.clear()
        outcome = try_tool(tool)
        assert outcome.partials == ["one"] and outcome.outcome == "ok"
        assert story == ["plain", "open", "second", "close"]


def test_classes_and_context_managers_are_dependencies_too() -> None:
    """F4: as their authors have them."""

    @afoot.tool
    async def use(a: Annotated[Counter, Depends(Counter)], b: Annotated[str, Depends(managed)]) -> str:
        """Use them."""
        return f"{a.text} {b}"

    assert try_tool(use).result == "plain 2 managed" and story == ["plain", "close managed"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_clean_up_that_fails_fails_the_call_and_the_others_clean_up(is_async: bool) -> None:
    """F4: a commit that failed is no success."""

    def commits(inner: Annotated[str, Depends(opened)]) -> Iterator[str]:
        yield inner
        raise ToolError.unavailable("the disk is full")

    async def body(a: str = Depends(commits)) -> str:
        """Use it."""
        return a

    def sync_body(a: str = Depends(commits)) -> str:
        """Use it."""
        return a

    outcome = try_tool(afoot.tool(body if is_async else sync_body))
    assert outcome.failure and "the disk is full" in outcome.failure.message
    assert story[-2:] == ["ToolError", "close"]


@pytest.mark.parametrize("times", [0, 2])
def test_a_generator_that_does_not_yield_once_is_named(times: int) -> None:
    """F4: whose fault it is."""

    def odd() -> Iterator[int]:
        yield from range(times)

    @afoot.tool
    async def use(a: Annotated[int, Depends(odd)]) -> int:
        """Use it."""
        return a

    failure = try_tool(use).failure
    assert failure and "the dependency odd" in failure.message


def test_a_test_puts_other_functions_in_their_place() -> None:
    """F4: also below others; the fake may be of another kind."""

    async def fake() -> AsyncIterator[str]:
        yield "fake"
        story.append("close fake")

    for kind in ("loop", "thread"):
        story.clear()
        outcome = try_tool(make(kind, lambda a, b: f"{a} {b}"), overrides={plain: fake}, x=1)
        assert outcome.result == "awaited(fake) async(opened(fake) in call)"
        assert story[-1] == "close fake" and "plain" not in story


def test_the_function_itself_is_called_as_ever() -> None:
    """P2: its author passes what a call would have filled."""
    assert make("thread", str.__add__)(1, "a", b="b") == "ab"


def first(a: "Annotated[str, Depends(second)]") -> str:
    return a


def second(a: "Annotated[str, Depends(third)]") -> str:
    return a


def third(a: "Annotated[str, Depends(first)]") -> str:
    return a


def unfilled(path: str) -> str:
    return path


def a_cycle(a: Annotated[str, Depends(first)]) -> str:
    """Turn."""
    return a


def without_a_value(a: Annotated[str, Depends(unfilled)]) -> str:
    """Miss."""
    return a


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (a_cycle, "its dependencies form a cycle: first → second → third → first"),
        (without_a_value, "the dependency unfilled has a parameter path: annotate it"),
    ],
)
async def test_a_bad_dependency_leaves_its_tool_out_and_the_rest_is_served(
    function: Callable[..., Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """F4, E4: the log and every call say what is wrong and where."""

    async def good() -> str:
        """Work."""
        return "good"

    caplog.set_level(logging.ERROR)
    async with afoot.Gateway(function, good) as gateway:
        assert [one.name for one in gateway.tools()] == ["good"]
        assert (await gateway.call("good")).end.outcome == "ok"  # pyrefly: ignore
        failed = await gateway.call(function.__name__, {})
        assert failed.end and failed.end.failure and message in failed.end.failure.message
        assert failed.end.failure.code == "bad_tool" and not failed.end.failure.retryable
    assert message in caplog.text and "test_dependencies.py:" in caplog.text


def _foreign(module: str, name: str) -> Any:
    return type(name, (), {"__module__": module})


@pytest.mark.parametrize(
    ("annotation", "default", "message"),
    [
        (
            _foreign("fastmcp.server.context", "Context"),
            None,
            "takes the Context of FastMCP; use afoot.Context",
        ),
        (
            _foreign("mcp.server.mcpserver", "Context"),
            None,
            "takes the Context of the mcp SDK; use afoot.Con",
        ),
        (_foreign("fastmcp", "Context") | None, None, "takes the Context of FastMCP; use afoot.Context"),
        (str, _foreign("fastapi.params", "Depends")(), "has a dependency of FastAPI; use afoot.Depends"),
        (Annotated[str, _foreign("fastapi.params", "Depends")()], None, "has a dependency of FastAPI"),
    ],
)
def test_what_belongs_to_another_framework_is_told_with_the_name_of_ours(
    annotation: Any, default: Any, message: str
) -> None:
    """F4: a tool that was moved here."""

    def moved(a: str = default) -> str:
        """Move."""
        return a

    moved.__annotations__["a"] = annotation
    failure = try_tool(afoot.tool(moved)).failure
    assert failure and f"parameter a {message}" in failure.message


def test_the_real_things_of_other_frameworks_are_known() -> None:
    """F4: FastMCP's and the SDK's own, where they are installed."""
    fastmcp: ModuleType = pytest.importorskip("fastmcp")
    dependencies = pytest.importorskip("fastmcp.dependencies")
    server = pytest.importorskip("mcp.server.mcpserver")

    def one(ctx: Any) -> None: ...
    def two(ctx: Any) -> None: ...
    def three(a: Any) -> None: ...
    def four(a: Any) -> None: ...

    three.__defaults__ = (dependencies.Depends(plain),)
    four.__defaults__ = (dependencies.CurrentContext(),)
    one.__annotations__["ctx"] = fastmcp.Context
    two.__annotations__["ctx"] = server.Context
    for tool, ours in ((one, "Context"), (two, "Context"), (three, "Depends"), (four, "Depends")):
        failure = try_tool(afoot.tool(tool)).failure
        assert failure and f"use afoot.{ours}" in failure.message, tool


def test_a_field_of_pydantic_is_no_dependency() -> None:
    """F4: it describes an argument, as before."""

    @afoot.tool
    def square(a: Annotated[int, Field(ge=0)] = 3, b: int = Field(2)) -> int:
        """Square."""
        return a * a + b

    assert try_tool(square, a=4).result == {"result": 18}


async def test_a_run_of_the_port_without_a_gateway_fills_them_too() -> None:
    """F4: the provider alone does it."""
    provider = FunctionProvider([make("loop", str.__add__)])
    result = await provider.prepare("tool", msgspec.Raw(b'{"x":1}'))(ScriptedRun())
    assert b"awaited(plain)" in bytes(result.content)


async def test_two_dependencies_and_the_caller_cost_little() -> None:
    """F1, F4: at most 10 µs of a call (2 µs measured; there is room for a busy machine)."""

    async def bare(n: int) -> int:
        return n

    def doubled() -> int:
        return 2

    def tripled(two: Annotated[int, Depends(doubled)]) -> int:
        return two + 1

    async def full(
        n: int, ctx: Context, two: Annotated[int, Depends(doubled)], three: Annotated[int, Depends(tripled)]
    ) -> int:
        return n * two * three * len(ctx.caller.id)

    provider = FunctionProvider([bare, full])
    turns = [(await _cost(provider, "bare"), await _cost(provider, "full")) for _ in range(50)]
    without, with_them = map(min, zip(*turns, strict=True))
    assert with_them - without < 10e-6


async def _cost(provider: FunctionProvider, tool: str, calls: int = 50) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        await provider.prepare(tool, msgspec.Raw(b'{"n":1}'))(ScriptedRun())
    return (time.perf_counter() - began) / calls
