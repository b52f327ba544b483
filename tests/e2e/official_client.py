"""The official Python client, kept open on a loop of its own for a whole module of tests."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.session import ClientRequestContext

from tests.e2e.gateway import Gateway

ERAS: Final = ("2026-07-28", "legacy")
PERSON_S: Final = 0.06  # to read a form: what comes within 50 ms is taken for no person's answer (A8)
WAIT_S: Final = 12.0
T = TypeVar("T")
Reply = Callable[[str], types.ElicitResult]
Seen = list[tuple[float, float | None, str | None]]


def accept(**content: Any) -> types.ElicitResult:
    """A form that was filled in."""
    return types.ElicitResult(action="accept", content=content)


class Peer:
    """One client and what it was asked."""

    def __init__(self, portal: BlockingPortal, gateway: Gateway, transport: str, era: str) -> None:
        self._portal = portal
        self.gateway = gateway
        self.era = era
        self.reply: Reply = lambda message: types.ElicitResult(action="decline")
        self.asked: list[str] = []
        self.wait_s = WAIT_S
        command, *arguments = gateway.bridge() if transport == "connect" else gateway.command("--stdio")
        server = (
            gateway.url
            if transport == "http"
            else StdioServerParameters(command=command, args=arguments, env=gateway.environment)
        )
        self.client = Client(
            server,
            mode="legacy" if era == "legacy" else "2026-07-28",
            elicitation_callback=self._elicited,
            sampling_callback=_sampled,
            list_roots_callback=_rooted,
        )

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something on the client's loop, and not for ever."""

        async def limited() -> T:
            return await asyncio.wait_for(work(), self.wait_s)

        return self._portal.call(limited)

    def call(self, tool: str, seen: Seen | None = None, **arguments: Any) -> types.CallToolResult:
        """Call a tool; its progress is added to `seen`."""

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            assert seen is not None
            seen.append((progress, total, message))

        self.asked = []
        return self.run(
            lambda: self.client.call_tool(tool, arguments, progress_callback=None if seen is None else noted)
        )

    async def _elicited(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(params.message)
        await asyncio.sleep(PERSON_S)
        return self.reply(params.message)


class Peers:
    """The peers of a module, each opened when it is first needed."""

    def __init__(self, gateways: dict[str, Gateway], stack: ExitStack) -> None:
        self._gateways = gateways
        self._stack = stack
        self._portal = stack.enter_context(start_blocking_portal())
        self._peers: dict[tuple[str, str], Peer] = {}

    def __call__(self, transport: str, era: str) -> Peer:
        """The client for this transport and era."""
        if (transport, era) not in self._peers:
            place = transport if transport == "http" else f"{transport} {era}"
            peer = Peer(self._portal, self._gateways[place], transport, era)
            self._stack.enter_context(self._portal.wrap_async_context_manager(peer.client))
            peer.run(peer.client.list_tools)  # its gateway has started, so that no test's clock counts that
            self._peers[transport, era] = peer
        return self._peers[transport, era]


@contextmanager
def peers(gateways: dict[str, Gateway]) -> Iterator[Peers]:
    """Clients for these gateways, closed at the end."""
    with ExitStack() as stack:
        yield Peers(gateways, stack)


def text(result: types.CallToolResult) -> str:
    """The first text of a result."""
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def failure(result: types.CallToolResult) -> dict[str, Any]:
    """What a result says for programs of a failure."""
    assert result.is_error and result.meta is not None
    found: dict[str, Any] = result.meta["dev.afoot/error"]
    return found


async def _sampled(
    context: ClientRequestContext, params: types.CreateMessageRequestParams
) -> types.CreateMessageResult:
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="Paris"), model="m"
    )


async def _rooted(context: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///srv-me"})])
