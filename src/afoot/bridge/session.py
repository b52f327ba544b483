"""A session of the handshake era as the bridge remembers it, so that it can be opened again elsewhere."""

from msgspec import Raw, Struct, json

from afoot.bridge.http import Answer, Broken
from afoot.bridge.link import Link
from afoot.wire import mcp_2025
from afoot.wire.jsonrpc import Envelope

_KEPT = ("logging/setLevel", "resources/subscribe")  # what a client told once, and a new session must know


class _Welcome(Struct):
    protocolVersion: str = mcp_2025.LATEST
    capabilities: dict[str, Raw] = {}


class Session:
    """What was said at the beginning, and what the gateway made of it."""

    def __init__(self) -> None:
        self.id = ""
        self.version = mcp_2025.LATEST
        self.is_open = False
        self._hello = Raw()
        self._kept: dict[tuple[str, bytes], bytes] = {}
        self._number = 0

    def heard(self, line: bytes, message: Envelope) -> None:
        """Remember what of this request must be said again to another gateway."""
        method, params = str(message.method), bytes(message.params)
        if method == "initialize":
            self._hello = Raw(params)
        elif method in _KEPT:
            self._kept[method, params if method == "resources/subscribe" else b""] = line
        elif method == "resources/unsubscribe":
            self._kept.pop(("resources/subscribe", params), None)

    def welcomed(self, answer: Answer, result: Raw) -> list[bytes]:
        """Take the gateway's answer to `initialize`; gives the changes of lists that it promised to tell."""
        self.id = answer.headers.get("mcp-session-id", self.id)
        self.is_open = bool(self.id)
        welcome = json.decode(result, type=_Welcome)
        self.version = welcome.protocolVersion
        told = [kind for kind, raw in welcome.capabilities.items() if b'"listChanged":true' in bytes(raw)]
        return [
            json.encode({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}) for kind in told
        ]

    async def post(self, link: Link, line: bytes) -> Answer:
        """Send a message of this session; raises Unreachable, Broken."""
        return await link.in_session("POST", line, self.id, self.version)

    async def listen(self, link: Link) -> Answer:
        """The stream for what belongs to no request; raises Unreachable, Broken."""
        return await link.in_session("GET", b"", self.id, self.version)

    async def end(self, link: Link) -> None:
        """The client has gone: its calls end with it; raises Unreachable, Broken."""
        (await link.in_session("DELETE", b"", self.id, self.version)).close()

    async def renew(self, link: Link) -> list[bytes]:
        """Open it again, unseen by the client; gives the notices that anything may have changed."""
        self.id = ""
        changes = list[bytes]()
        self._number += 1
        hello = {"jsonrpc": "2.0", "id": f"afoot-connect-{self._number}", "method": "initialize"}
        answer = await link.in_session("POST", json.encode({**hello, "params": self._hello}), "", "")
        try:
            async for frames in answer.messages():
                for frame in frames:
                    changes = self.welcomed(answer, json.decode(frame, type=Envelope).result)
        except ValueError as error:
            raise Broken(f"it does not answer initialize: {error}") from None
        finally:
            answer.close()
        if not self.id:
            raise Broken("it opens no session")
        for line in (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', *self._kept.values()):
            (await self.post(link, line)).close()
        return changes
