"""A browser reached by CDP, as a carrier of the same frames as the extension's (B5)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from hashlib import blake2s
from itertools import count
from typing import Self

import msgspec
from msgspec import Struct

from afoot.config import home
from afoot.providers.browser.carrier import Audience
from afoot.providers.browser.cdp.address import parse
from afoot.providers.browser.cdp.connection import Connection, Message, Refusal
from afoot.providers.browser.cdp.events import Version, read
from afoot.providers.browser.cdp.rooms import Rooms
from afoot.providers.browser.cdp.scripts import Names
from afoot.providers.browser.cdp.setup import Setup
from afoot.providers.browser.cdp.speech import Speech
from afoot.providers.browser.cdp.targets import Parts, Targets
from afoot.providers.browser.cdp.wires import Wire
from afoot.providers.browser.cdp.worlds import Worlds
from afoot.wire import link

log = logging.getLogger("afoot")

FIRST_S = 1.0
LONGEST_S = 10.0
Dial = Callable[[], Awaitable[Wire]]


class State(Struct, frozen=True):
    """How it stands with a browser, for people."""

    address: str
    connected: bool = False
    browser: str = ""
    error: str = ""
    dropped: dict[str, int] = {}  # what could not be read or believed


def reach(text: str, audience: Audience, store: str = "") -> "Cdp":
    """A carrier to the browser whose debugging port is at an address; raises ConfigError."""
    address = parse(text)
    # The same for the same gateway after a restart, so that it finds its relays in open tabs again. Nobody
    # else has its history meanwhile, so another gateway here has another mark.
    mark = blake2s(f"{home()} {store}".encode(), digest_size=4).hexdigest()
    return Cdp(str(address), address.dial, audience, mark)


class Cdp:
    """One browser; open it with `async with`. It keeps trying, and says so in `state`."""

    def __init__(self, address: str, dial: Dial, audience: Audience, mark: str = "") -> None:
        """`dial` gives a wire, and raises ConnectionError. `mark` tells two gateways at one browser apart."""
        self._address, self._dial, self._audience = address, dial, audience
        self._names = Names(mark)
        self._numbers = count(1)  # of rooms: no two of this carrier have one
        self._counts: Counter[str] = Counter()
        self._targets: Targets | None = None
        self._rooms: Rooms | None = None
        self._state = State(address)
        self._early: list[link.FromBrowser] = []  # what was said before the browser was introduced
        self._task: asyncio.Task[None] | None = None
        self.joined = asyncio.Event()  # set while a browser is there

    @property
    def name(self) -> str:
        """Which browser this is, for people."""
        return "cdp"

    @property
    def state(self) -> State:
        """How it stands now."""
        return msgspec.structs.replace(self._state, dropped=dict(self._counts))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep(self) -> None:
        """Connect, stay until it is gone, and again."""
        wait_s = FIRST_S
        while True:
            try:
                wire = await self._dial()
            except ConnectionError as error:
                self._failed(str(error))
            else:
                wait_s = FIRST_S
                await self._stay(wire)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_S)

    def _failed(self, error: str) -> None:
        if error != self._state.error:  # once, not every ten seconds
            log.warning("%s; trying again", error)
        self._state = State(self._address, error=error)

    async def _stay(self, wire: Wire) -> None:
        """One connection, from its begin to its end."""
        connection = Connection(wire, self._hear)
        running = asyncio.create_task(connection.run())
        targets = self._assemble(connection)
        try:
            await self._begin(connection, targets)
            await asyncio.wait([running])
            self._failed(f"the browser at {self._address} is gone")
        except (Refusal, ConnectionError, TimeoutError, msgspec.DecodeError) as error:
            self._failed(f"{self._address}: {error}")
        finally:
            running.cancel()
            await asyncio.wait([running])  # the browser forgets what we told it when the socket closes
            await targets.end()
            self._targets = self._rooms = None
            self._early.clear()
            self._counts["garbage"] += connection.garbage
            if self.joined.is_set():
                self.joined.clear()
                self._audience.left(self, self._state.error or "the gateway is shutting down", 0.0)

    def _assemble(self, connection: Connection) -> Targets:
        setup = Setup(connection, self._names)
        rooms = Rooms(connection, self._tell, self._counts)
        speech = Speech(setup, rooms, self._counts, self._numbers)
        parts = Parts(setup, rooms, speech, Worlds(setup, rooms, speech), self._tell)
        self._rooms, self._targets = rooms, Targets(connection, parts)
        return self._targets

    async def _begin(self, connection: Connection, targets: Targets) -> None:
        product = read(Version, await connection.ask("Browser.getVersion")).product
        hello = link.Hello(product, self._address, tabs=await targets.discover(), label=f"{product} (cdp)")
        await targets.begin()
        self._state = State(self._address, connected=True, browser=product)
        welcome = self._audience.joined(self, hello)
        self.joined.set()
        targets.worlds.adopt(welcome.plugins, targets.sessions())
        for message in self._early:
            self._tell(message)
        self._early.clear()

    def _hear(self, message: Message) -> None:
        if self._targets is None:
            return
        try:
            self._targets.hear(message)
        except msgspec.DecodeError as error:
            self._counts["garbage"] += 1
            log.debug("%s from a browser: %s", message.method, error)
        except Exception:  # what one page says must not end what others run
            self._counts["faults of ours"] += 1
            log.exception("%s from a browser could not be taken in", message.method)

    def _tell(self, message: link.FromBrowser) -> None:
        if self.joined.is_set():
            self._audience.told(self, message)
        else:
            self._early.append(message)

    def send(self, message: link.ToBrowser) -> bool:
        """Send a frame, never waiting; False if the browser cannot be reached now."""
        if self._targets is None or self._rooms is None or not self.joined.is_set():
            return False
        match message:
            case link.Dispatch(room, run, tool, arguments):
                return self._rooms.send(room, "tool.dispatch", {"run": run, "tool": tool, "input": arguments})
            case link.Cancel(room, run, reason):
                return self._rooms.send(room, "tool.cancel", {"run": run, "reason": reason})
            case link.Settled(room, run):
                return self._rooms.send(room, "tool.settled", {"run": run})
            case link.Plugins(plugins):
                self._targets.worlds.adopt(plugins, self._targets.sessions())
                return True
            case link.TabReload(tab):
                return self._targets.reload(tab)
            case _:
                return True  # what only an extension has: a panel, a worker
