"""Calls from the official MCP client, each in the background, with what it heard on the way."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self

import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.session import ClientRequestContext

from tests.e2e.gateway import until
from tests.e2e.official_client import PERSON_S, failure, text

WAIT_S: Final = 30.0
Progress = tuple[float, float | None, str | None]


class Call:
    """One call under way, or over."""

    def __init__(self) -> None:
        self.seen: list[Progress] = []
        self.at: list[float] = []  # when each came
        self.future: Future[types.CallToolResult] = Future()

    async def noted(self, progress: float, total: float | None, message: str | None) -> None:
        """Keep what the client was told."""
        self.at.append(time.time())
        self.seen.append((progress, total, message))

    @property
    def messages(self) -> list[str]:
        """The messages that came."""
        return [message for _, _, message in list(self.seen) if message is not None]

    def until_said(self, words: str) -> Self:
        """Wait for a report with these words."""

        def said() -> bool:
            assert not self.future.done() or any(words in message for message in self.messages), (
                f"it ended before it said {words!r}: {self.future}, {self.messages[-5:]}"
            )
            return any(words in message for message in self.messages)

        until(said, f"the report {words!r}", WAIT_S)
        return self

    def result(self, limit_s: float = WAIT_S) -> types.CallToolResult:
        """How it ended."""
        return self.future.result(limit_s)

    def value(self, limit_s: float = WAIT_S) -> Any:
        """What the tool gave back, where it did not fail."""
        result = self.result(limit_s)
        assert not result.is_error, text(result)
        if result.structured_content is not None:
            return result.structured_content
        return text(result) if result.content else None

    def error(self, limit_s: float = WAIT_S) -> dict[str, Any]:
        """What is told of its failure, with the `text` beside it."""
        result = self.result(limit_s)
        return {**failure(result), "text": text(result)}

    def cancel(self) -> None:
        """Give it up, as a host's Stop does."""
        self.future.cancel()


class Caller:
    """One client of one gateway."""

    def __init__(self, portal: BlockingPortal, stack: ExitStack) -> None:
        self._portal, self._stack = portal, stack
        self.asked: list[str] = []
        self.reply = types.ElicitResult(action="decline")
        self.client: Client

    def move(self, url: str) -> None:
        """Be a client of the gateway at this address."""
        self.client = Client(url, mode="2026-07-28", elicitation_callback=self._elicited)
        self._stack.enter_context(self._portal.wrap_async_context_manager(self.client))

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **budget: float) -> Call:
        """Begin a call; the budget's idle_s and left_s lower its limits."""
        call = Call()
        meta: Any = {"dev.afoot/budget": budget} if budget else None

        async def work() -> types.CallToolResult:
            return await self.client.call_tool(tool, arguments or {}, progress_callback=call.noted, meta=meta)

        call.future = self._portal.start_task_soon(work)
        return call

    def tools(self) -> dict[str, types.Tool]:
        """What is offered now, by name."""

        async def work() -> types.ListToolsResult:
            return await asyncio.wait_for(self.client.list_tools(cache_mode="refresh"), WAIT_S)

        return {tool.name: tool for tool in self._portal.call(work).tools}

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(params.message)
        await asyncio.sleep(PERSON_S)
        return self.reply


@contextmanager
def calling(url: str) -> Iterator[Caller]:
    """A client that is open while the block lasts."""
    stack = ExitStack()
    with start_blocking_portal() as portal:
        caller = Caller(portal, stack)
        try:
            caller.move(url)
            yield caller
        finally:
            stack.close()  # it is told nothing of what went wrong, which it would wrap beyond recognition
