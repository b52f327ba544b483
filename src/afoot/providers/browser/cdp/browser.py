"""`CdpBrowser` is the carrier of a browser that is connected by CDP; its frames are the extension's (B5)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import blake2s
from itertools import count
from typing import Self

import msgspec
from msgspec import Struct

from afoot.config.settings import home
from afoot.providers.browser.cdp.connection import (
    CdpConnection,
    CdpMessage,
    CdpTransport,
    CommandError,
    parse_address,
)
from afoot.providers.browser.cdp.contexts import CdpContexts, WorldNames
from afoot.providers.browser.cdp.events import VersionAnswer, decode_params
from afoot.providers.browser.cdp.injection import BindingListener, Injector
from afoot.providers.browser.cdp.targets import ConnectionParts, Targets
from afoot.providers.browser.cdp.world_tracker import WorldTracker
from afoot.providers.browser.profiles import BrowserListener
from afoot.wire import extension

log = logging.getLogger("afoot")

FIRST_RETRY_S = 1.0
MAX_RETRY_S = 10.0
OpenTransport = Callable[[], Awaitable[CdpTransport]]


class CdpState(Struct, frozen=True):
    """The state of the connection to a browser, for people."""

    address: str
    connected: bool = False
    browser: str = ""
    error: str = ""
    dropped: dict[str, int] = {}  # how often a message could not be read or believed, by kind


def make_cdp_browser(text: str, listener: BrowserListener, store: str = "") -> "CdpBrowser":
    """Make the carrier for a browser with a debugging port at this address; raises ConfigError."""
    address = parse_address(text)
    # The mark stays the same over restarts of a gateway, so that it finds its relays in open tabs again. Two
    # gateways never share a history, so the path of the history tells them apart.
    mark = blake2s(f"{home()} {store}".encode(), digest_size=4).hexdigest()
    return CdpBrowser(str(address), address.dial, listener, mark)


class CdpBrowser:
    """One browser; open it with `async with`. It connects again and again; `state` says how that goes."""

    def __init__(self, address: str, dial: OpenTransport, listener: BrowserListener, mark: str = "") -> None:
        """`dial` opens a transport, or raises ConnectionError. `mark` is unique to this gateway."""
        self._address = address
        self._dial = dial
        self._listener = listener
        self._names = WorldNames(mark)
        self._numbers = count(1)  # for the ids of page contexts, unique in this carrier
        self._counts: Counter[str] = Counter()
        self._targets: Targets | None = None
        self._contexts: CdpContexts | None = None
        self._state = CdpState(address)
        self._held_frames: list[
            extension.FromBrowser
        ] = []  # frames that came before the browser was introduced
        self._task: asyncio.Task[None] | None = None
        self.joined = asyncio.Event()  # set while a browser is connected and introduced

    @property
    def name(self) -> str:
        """The browser's name, for people."""
        return "cdp"

    @property
    def state(self) -> CdpState:
        """The state of the connection now."""
        return msgspec.structs.replace(self._state, dropped=dict(self._counts))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep_connected())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep_connected(self) -> None:
        """Connect, run the connection until the browser is gone, and start again."""
        wait_s = FIRST_RETRY_S
        while True:
            try:
                transport = await self._dial()
            except ConnectionError as error:
                self._note_failure(str(error))
            else:
                wait_s = FIRST_RETRY_S
                await self._run_connection(transport)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, MAX_RETRY_S)

    def _note_failure(self, error: str) -> None:
        if error != self._state.error:  # log it once, not at every retry
            log.warning("%s; trying again", error)
        self._state = CdpState(self._address, error=error)

    async def _run_connection(self, transport: CdpTransport) -> None:
        """Run one connection until it ends."""
        connection = CdpConnection(transport, self._on_event)
        running = asyncio.create_task(connection.run())
        targets = self._assemble(connection)
        try:
            await self._introduce(connection, targets)
            await asyncio.wait([running])
            self._note_failure(f"the browser at {self._address} is gone")
        except (CommandError, ConnectionError, TimeoutError, msgspec.DecodeError) as error:
            self._note_failure(f"{self._address}: {error}")
        finally:
            running.cancel()
            await asyncio.wait([running])  # the browser undoes our settings when the socket closes
            await targets.close()
            self._targets = self._contexts = None
            self._held_frames.clear()
            self._counts["garbage"] += connection.unreadable
            if self.joined.is_set():
                self.joined.clear()
                self._listener.on_disconnect(self, self._state.error or "the gateway is shutting down", 0.0)

    def _assemble(self, connection: CdpConnection) -> Targets:
        setup = Injector(connection, self._names)
        contexts = CdpContexts(connection, self._forward, self._counts)
        speech = BindingListener(setup, contexts, self._counts, self._numbers)
        parts = ConnectionParts(setup, contexts, speech, WorldTracker(setup, contexts, speech), self._forward)
        self._contexts = contexts
        self._targets = Targets(connection, parts)
        return self._targets

    async def _introduce(self, connection: CdpConnection, targets: Targets) -> None:
        product = decode_params(VersionAnswer, await connection.call_raw("Browser.getVersion")).product
        hello = extension.LinkHello(
            product, self._address, tabs=await targets.discover(), label=f"{product} (cdp)"
        )
        await targets.attach()
        self._state = CdpState(self._address, connected=True, browser=product)
        welcome = self._listener.on_connect(self, hello)
        self.joined.set()
        targets.worlds.set_plugins(welcome.plugins, targets.sessions())
        for message in self._held_frames:
            self._forward(message)
        self._held_frames.clear()

    def _on_event(self, message: CdpMessage) -> None:
        if self._targets is None:
            return
        try:
            self._targets.on_event(message)
        except msgspec.DecodeError as error:
            self._counts["garbage"] += 1
            log.debug("%s from a browser: %s", message.method, error)
        except Exception:  # an event of one page must not end the runs in others
            self._counts["faults of ours"] += 1
            log.exception("%s from a browser could not be taken in", message.method)

    def _forward(self, message: extension.FromBrowser) -> None:
        if self.joined.is_set():
            self._listener.on_frame(self, message)
        else:
            self._held_frames.append(message)

    def send(self, message: extension.ToBrowser) -> bool:
        """Send a frame, never waiting; False if the browser cannot be reached now."""
        if self._targets is None or self._contexts is None or not self.joined.is_set():
            return False
        match message:
            case extension.RunDispatch(context, run, tool, arguments):
                return self._contexts.send(
                    context, "tool.dispatch", {"run": run, "tool": tool, "input": arguments}
                )
            case extension.RunCancel(context, run, reason):
                return self._contexts.send(context, "tool.cancel", {"run": run, "reason": reason})
            case extension.RunResultAck(context, run):
                return self._contexts.send(context, "tool.settled", {"run": run})
            case extension.PluginSync(plugins):
                self._targets.worlds.set_plugins(plugins, self._targets.sessions())
                return True
            case extension.TabReload(tab):
                return self._targets.reload(tab)
            case _:
                return True  # a frame for the extension alone: its panel, its worker
