"""A gateway that was reached: requests go there, and a stream held open tells each that the other lives."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator

from msgspec import Struct, UnsetType, json

from afoot.bridge.http import Answer, Broken, Target, Unreachable, ask
from afoot.wire import mcp
from afoot.wire.jsonrpc import Envelope

GREETING_S = 10.0  # how long a gateway may take to say that it is there
PREFIX = "io.modelcontextprotocol/"
_LISTEN: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": "afoot-connect",
    "method": "subscriptions/listen",
    "params": {
        "notifications": {},
        "_meta": {f"{PREFIX}protocolVersion": mcp.VERSION, f"{PREFIX}clientCapabilities": {}},
    },
}
_PLAIN = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Turned(Exception):
    """The gateway is there, and will not have us."""


class Identity(Struct, frozen=True):
    """Who this bridge is, and what proves it; without a token it is nobody."""

    name: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        if not self.token:
            return {}
        return {"authorization": f"Bearer {self.token}", "afoot-caller": self.name}


class Link:
    """One gateway, from its greeting to its end."""

    def __init__(self, to: Target, identity: Identity) -> None:
        self._to = to
        self._identity = identity
        self._presence: Answer | None = None
        self._stream: AsyncIterator[list[bytes]] | None = None

    async def open(self) -> None:
        """Make ourselves known; raises Unreachable, Broken, Turned."""
        try:
            async with asyncio.timeout(GREETING_S):
                self._presence = answer = await self.post(json.encode(_LISTEN), method="subscriptions/listen")
                if answer.status != 200:
                    raise Turned(f"it answers {answer.status}: {_reason(await answer.body())}")
                self._stream = answer.messages()
                first = await anext(self._stream, list[bytes]())
        except TimeoutError:
            self.close()
            raise Unreachable(f"it says nothing for {GREETING_S:g} s") from None
        except BaseException:
            self.close()
            raise
        if len(first) != 1:  # its end came with its greeting: it is closing
            self.close()
            raise Broken("it is shutting down")

    async def gone(self) -> None:
        """Wait until the gateway ends, or the way to it."""
        assert self._stream is not None
        try:
            async for _ in self._stream:
                pass
        except Broken:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Let go."""
        if self._presence is not None:
            self._presence.close()

    async def post(self, body: bytes, *, method: str = "", name: str = "") -> Answer:
        """One message of 2026-07-28; raises Unreachable, Broken."""
        headers = {"mcp-protocol-version": mcp.VERSION, "mcp-method": wrapped(method)}
        if name:
            headers["mcp-name"] = wrapped(name)
        return await ask(self._to, "POST", {**_PLAIN, **headers, **self._identity.headers}, body)

    async def in_session(self, method: str, body: bytes, session: str, version: str) -> Answer:
        """One message of the handshake era, or its stream; raises Unreachable, Broken."""
        headers = {**_PLAIN, **self._identity.headers}
        if session:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": version}
        return await ask(self._to, method, headers, body)


class _Named(Struct):
    name: str | None = None
    uri: str | None = None
    taskId: str | None = None


def name_of(message: Envelope) -> str:
    """What `Mcp-Name` repeats of this request; nothing where its params are not as they should be."""
    key = None if isinstance(message.method, UnsetType) else mcp.NAMED.get(message.method)
    if key is None:
        return ""
    try:
        return getattr(json.decode(bytes(message.params), type=_Named), key) or ""
    except (ValueError, RecursionError):
        return ""


def wrapped(text: str) -> str:
    """Text as a header's value: in base64 unless it is printable ASCII with nothing around it."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'replace')).decode()}?="


def _reason(body: bytes) -> str:
    try:
        return str(json.decode(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
