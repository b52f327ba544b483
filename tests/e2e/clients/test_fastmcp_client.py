"""FastMCP's client, on HTTP and on stdio, in both eras: own tools, and those of a server behind."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError

from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import EVERY, Front, fronting, python

MODES: Final = ("2026-07-28", "legacy")
RUN_S: Final = 20.0
Reports = list[tuple[float, float | None, str | None]]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway on HTTP in front of a server of the SDK."""
    folder = tmp_path_factory.mktemp("shop")
    with fronting(folder, {"shop": python("tests.e2e.sdk_server", E2E_MARKS=str(folder))}, EVERY) as front:
        yield front


@pytest.fixture(params=[(way, mode) for way in ("http", "stdio") for mode in MODES], ids=" ".join)
def visit(request: pytest.FixtureRequest, shop: Front, tmp_path_factory: pytest.TempPathFactory) -> "Visit":
    """One of the four; on stdio the client starts a gateway of its own."""
    way, mode = request.param
    if way == "http":
        return Visit(shop, StreamableHttpTransport(shop.url), mode)
    folder = tmp_path_factory.mktemp("stdio")
    own = Front(folder, {"shop": python("tests.e2e.sdk_server", E2E_MARKS=str(folder))}, EVERY)
    command, *arguments = own.command("--stdio")
    return Visit(own, StdioTransport(command, arguments, own.environment, keep_alive=False), mode)


class Visit:
    """A client, its gateway, and what it was asked."""

    def __init__(self, front: Front, transport: StdioTransport | StreamableHttpTransport, mode: str) -> None:
        self.front = front
        self.asked: list[str] = []
        self.client: Client[Any] = Client(transport, elicitation_handler=self._elicited, mode=mode)

    def run(self, work: Callable[[], Any]) -> Any:
        """Do something with the client connected, and not for ever."""

        async def connected() -> Any:
            async with asyncio.timeout(RUN_S), self.client:
                await self._until_listed()
                return await work()

        return asyncio.run(connected())

    async def call(self, tool: str, reports: Reports | None = None, **arguments: Any) -> str:
        """The text of a call's result."""

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            assert reports is not None
            reports.append((progress, total, message))

        handler = None if reports is None else noted
        result = await self.client.call_tool(tool, arguments, progress_handler=handler)
        return str(getattr(result.content[0], "text", result))

    async def _until_listed(self) -> None:
        """A server behind is opened in the background."""
        while "wrap" not in [tool.name for tool in await self.client.list_tools()]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    async def _elicited(self, message: str, kind: type | None, params: Any, context: Any) -> Any:
        self.asked.append(message)
        return ElicitResult(
            action="accept", content={"colour": "red"} if "colour" in message else {"name": "Ada"}
        )


def test_everything_a_fastmcp_client_does(visit: Visit, fresh: Callable[[], str]) -> None:
    """P6, Q1, Q3, U5, E1: lists, progress in order, answers, errors: of own tools and of the server's."""
    tag = fresh()
    own: Reports = []
    behind: Reports = []

    async def use() -> None:
        assert await visit.call("count_up", own, n=4) == "counted to 4"
        assert await visit.call("wrap", behind, n=4) == "wrapped 4"
        assert "Ada" in await visit.call("ask_name", tag=tag)
        assert await visit.call("paint") == "painted red"
        with pytest.raises(ToolError, match="too many requests"):
            await visit.call("fail", how="explained")
        await asyncio.to_thread(until, lambda: len(own) + len(behind) >= 8, "all reports")

    visit.run(use)
    assert own == [(n, 4, f"step {n}") for n in range(1, 5)]
    assert behind == [(n, 4, f"present {n}") for n in range(1, 5)]
    assert visit.asked == ["What is your name?", "Which colour?"] and visit.front.marks(tag).count("ran") == 1


def test_a_cancel_of_a_fastmcp_client_reaches_the_tools(visit: Visit, fresh: Callable[[], str]) -> None:
    """X1: both an own function and a tool of the server behind are stopped."""
    tags = {"linger": fresh(), "dawdle": fresh()}

    async def give_up() -> None:
        calls = [asyncio.create_task(visit.call(tool, tag=tag)) for tool, tag in tags.items()]
        for tag in tags.values():
            await asyncio.to_thread(visit.front.until_marked, tag, "started")
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        for tag in tags.values():
            await asyncio.to_thread(visit.front.until_marked, tag, "cancelled: ")

    visit.run(give_up)
