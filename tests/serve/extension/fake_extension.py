"""An extension by hand: what it proves and says, everything that it is sent, and when."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from afoot.config import state_folder
from afoot.providers.browser.extension import ExtensionLinks
from afoot.providers.browser.extension_files import shipped_manifest
from afoot.providers.browser.profiles import Carrier
from afoot.providers.browser.views import TabView
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.extension.socket import LinkApp
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import App, Scope
from afoot.wire.extension import SUBPROTOCOL, FromBrowser, LinkHello, LinkWelcome, ToBrowser
from tests.serve.fake_gateway import Message, now
from tests.serve.raw_transports import HOST

GRACE_S = 5.0
NONCE = "ab" * 32
_open: set["asyncio.Future[None]"] = set()


class Listener:
    """Hears browsers, and keeps what it heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, object]] = []
        self.busy = False
        self.breaks = False
        self.early: list[ToBrowser] = []  # what it has to say at once
        self.tabs: list[TabView] = []
        self.running: dict[str, str] = {}

    def on_connect(self, carrier: Carrier, hello: LinkHello) -> LinkWelcome:
        self.heard.append(("joined", carrier.name, hello))
        for message in self.early:
            assert carrier.send(message)
        return LinkWelcome("epoch", keep=[one.run for one in hello.running])

    def on_frame(self, carrier: Carrier, message: FromBrowser) -> None:
        if self.breaks:
            raise KeyError("a fault of ours")
        self.heard.append(("told", carrier.name, message))

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        self.heard.append(("left", why, grace_s))

    def is_busy(self, carrier: Carrier) -> bool:
        return self.busy

    def running_tabs(self, carrier: Carrier | None = None) -> dict[str, str]:
        return self.running

    def tab_views(self, carrier: Carrier | None = None) -> list[TabView]:
        return self.tabs


class Peer:
    """One WebSocket by hand; it takes nothing while `reads` is clear."""

    def __init__(self, links: App, **changed: Any) -> None:
        headers = {"host": HOST, "origin": shipped_manifest().origin, **changed.pop("headers", {})}
        self.scope: Scope = {
            "type": "websocket", "path": "/link", "subprotocols": [SUBPROTOCOL],
            "headers": [(key.encode(), value.encode()) for key, value in headers.items() if value], **changed,
        }  # fmt: skip
        self.accepted: str | None = None
        self.status = 0
        self.said: list[tuple[float, Message]] = []
        self.closed: tuple[float, int, str] | None = None
        self.reads = asyncio.Event()
        self.reads.set()
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._inbox.put_nowait({"type": "websocket.connect"})
        self._more = asyncio.Event()
        self.task = asyncio.ensure_future(links(self.scope, self._inbox.get, self._send))
        _open.add(self.task)
        self.task.add_done_callback(_open.discard)

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        match message["type"]:
            case "websocket.accept":
                self.accepted = message["subprotocol"]
            case "websocket.send":
                self.said.append((now(), json.loads(message["text"])))
            case "websocket.close":
                self.closed = (now(), message["code"], message["reason"])
            case "websocket.http.response.start" | "http.response.start":
                self.status = message["status"]
            case _:
                assert message["type"].endswith("http.response.body")
        self._more.set()

    def say(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a frame."""
        self.raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def raw(self, text: str) -> None:
        """Send anything."""
        self._inbox.put_nowait({"type": "websocket.receive", "text": text})

    def binary(self, data: bytes) -> None:
        """Send what is no text."""
        self._inbox.put_nowait({"type": "websocket.receive", "bytes": data})

    def leave(self, code: int = 1006) -> None:
        """Be gone."""
        self._inbox.put_nowait({"type": "websocket.disconnect", "code": code})

    async def got(self, method: str, number: int = 1) -> dict[str, Any]:
        """The params of the frame of this method that came as this number."""
        async with asyncio.timeout(100):
            while len(found := self.all(method)) < number:
                self._more.clear()
                await self._more.wait()
        return found[number - 1]

    def all(self, method: str) -> list[dict[str, Any]]:
        """The params of all frames of this method."""
        return [frame["params"] for _, frame in self.said if frame["method"] == method]

    async def prove(self, key: bytes | None = None) -> str:
        """Answer the challenge; gives the gateway's nonce."""
        nonce: str = (await self.got("link.challenge"))["nonce"]
        self.say("link.proof", {"nonce": NONCE, "mac": mac(key or state_folder.link_key(), b"ext", nonce)})
        return nonce

    async def join(self, profile: str = "p1", version: str = "", **more: object) -> "Peer":
        """Prove, and say hello."""
        await self.prove()
        await self.got("link.proof")
        self.say("link.hello", {"version": version or shipped_manifest().version, "profile": profile, **more})
        await self.got("link.welcome")
        return self

    async def end(self) -> "Peer":
        """Wait for the end."""
        async with asyncio.timeout(1000):
            await asyncio.shield(self.task)
        return self


def mac(key: bytes, label: bytes, nonce: str) -> str:
    """A proof, made as the extension makes it."""
    return hmac.new(key, label + bytes.fromhex(nonce) + bytes.fromhex(NONCE), hashlib.sha256).hexdigest()


@asynccontextmanager
async def linked(gateway: GatewayState) -> AsyncIterator[tuple[LinkApp, Listener]]:
    """The application of `/link`, and who hears what browsers say."""
    listener = Listener()
    guard = Guard(accepted_hosts(23668, []), frozenset())
    gateway.lines = ExtensionLinks(listener, lambda: GRACE_S)

    try:
        yield LinkApp(gateway, guard, gateway.lines), listener
    finally:
        gateway.lines.close(1001, "the gateway is stopping")
        if _open:
            await asyncio.wait(_open, timeout=100)
