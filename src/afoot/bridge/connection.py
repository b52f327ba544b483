"""`GatewayConnection` carries requests to one gateway.

A stream that stays open tells each that the other lives.
"""

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct, UnsetType, json

from afoot.bridge.http import (
    BrokenConnection,
    GatewayResponse,
    HttpTarget,
    NotProved,
    Unreachable,
    send_request,
)
from afoot.wire import mcp_2026
from afoot.wire.jsonrpc import Envelope

GREETING_S = 10.0  # how long a gateway may take to answer the first request
META_PREFIX = "io.modelcontextprotocol/"
_LISTEN: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": "afoot-connect",
    "method": "subscriptions/listen",
    "params": {
        "notifications": {},
        "_meta": {f"{META_PREFIX}protocolVersion": mcp_2026.VERSION, f"{META_PREFIX}clientCapabilities": {}},
    },
}
_MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class RefusedByGateway(Exception):
    """The gateway answers, and refuses this bridge."""


class BridgeIdentity(Struct, frozen=True):
    """The name of this bridge and its token; without a token it is an anonymous caller."""

    name: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        if not self.token:
            return {}
        return {"authorization": f"Bearer {self.token}", "afoot-caller": self.name}


class GatewayConnection:
    """One gateway, from its first answer to its end."""

    def __init__(self, to: HttpTarget, identity: BridgeIdentity) -> None:
        self._to = to
        self._identity = identity
        self._presence: GatewayResponse | None = None
        self._stream: AsyncIterator[list[bytes]] | None = None

    async def open(self) -> None:
        """Open the listen stream; raises Unreachable, BrokenConnection, RefusedByGateway."""
        try:
            async with asyncio.timeout(GREETING_S):
                self._presence = answer = await self.post(json.encode(_LISTEN), method="subscriptions/listen")
                if answer.status != 200:
                    raise RefusedByGateway(f"it answers {answer.status}: {_error_text(await answer.body())}")
                self._stream = answer.messages()
                first = await anext(self._stream, list[bytes]())
        except NotProved as error:
            raise RefusedByGateway(str(error)) from None
        except TimeoutError:
            self.close()
            raise Unreachable(f"it says nothing for {GREETING_S:g} s") from None
        except BaseException:
            self.close()
            raise
        if len(first) != 1:  # the stream's end came with its acknowledgement: the gateway is closing
            self.close()
            raise BrokenConnection("it is shutting down")

    async def wait_closed(self) -> None:
        """Wait until the gateway ends, or the connection to it."""
        assert self._stream is not None
        try:
            async for _ in self._stream:
                pass
        except BrokenConnection:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the listen stream."""
        if self._presence is not None:
            self._presence.close()

    async def post(self, body: bytes, *, method: str = "", name: str = "") -> GatewayResponse:
        """Send one message of 2026-07-28; raises Unreachable, BrokenConnection."""
        headers = {"mcp-protocol-version": mcp_2026.VERSION, "mcp-method": mcp_2026.encode_header(method)}
        if name:
            headers["mcp-name"] = mcp_2026.encode_header(name)
        return await self._send("POST", {**_MCP_HEADERS, **headers, **self._identity.headers}, body)

    async def send_in_session(self, method: str, body: bytes, session: str, version: str) -> GatewayResponse:
        """Send one message of the handshake era, or open its stream; raises Unreachable, BrokenConnection."""
        headers = {**_MCP_HEADERS, **self._identity.headers}
        if session:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": version}
        return await self._send(method, headers, body)

    async def _send(self, method: str, headers: dict[str, str], body: bytes) -> GatewayResponse:
        """Send a request to the gateway that has proved itself (S6).

        The gateway proves itself on the connection of the listen stream. As long as that is open, it listens
        at its port, and nobody else can.
        """
        presence = self._presence
        if presence is None:
            return await send_request(self._to, method, headers, body, self._identity.token)
        if presence.is_over:
            raise Unreachable("the gateway has ended")
        return await send_request(self._to, method, headers, body)


class _NamedParams(Struct):
    name: str | None = None
    uri: str | None = None
    taskId: str | None = None


def mcp_name(message: Envelope) -> str:
    """The value of `Mcp-Name` for this request; nothing if its params cannot be read."""
    key = None if isinstance(message.method, UnsetType) else mcp_2026.NAME_FIELDS.get(message.method)
    if key is None:
        return ""
    try:
        return getattr(json.decode(bytes(message.params), type=_NamedParams), key) or ""
    except (ValueError, RecursionError):
        return ""


def _error_text(body: bytes) -> str:
    try:
        return str(json.decode(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
