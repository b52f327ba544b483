"""Somebody's MCP server as a provider of tools, and of everything else it has."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import msgspec
from msgspec import Raw

from afoot.config import Server
from afoot.core.facts import Limits, Result
from afoot.core.ports import Run, Start, Tool, Work
from afoot.errors import RunnerDied, ToolError, UnknownName
from afoot.providers.arguments import check
from afoot.providers.upstream.carrier import Order
from afoot.providers.upstream.carriers import Options, carrier_for
from afoot.providers.upstream.connection import Connection
from afoot.providers.upstream.errand import Errand
from afoot.providers.upstream.lists import Items, Lists
from afoot.providers.upstream.negotiation import negotiate
from afoot.providers.upstream.offering import Callback, Offering
from afoot.providers.upstream.peer import Peer
from afoot.providers.upstream.plain import Ask, Plain
from afoot.providers.upstream.record import Record
from afoot.providers.upstream.subscriptions import Subscriptions
from afoot.providers.upstream.tools import Offer, limits_of
from afoot.wire import client, client_reading
from afoot.wire.client import Tongue
from afoot.wire.client_questions import tool_error
from afoot.wire.jsonrpc import Fault

MAIN: Final = ""  # the connection that is nobody's own
CALLERS: Final = 64  # connections of callers' own; beyond it the one longest unused is closed
CLOSING_S: Final = 10.0
CHANGES: Final = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}


class Upstream:
    """One server: opened when it is needed and again when it died; one connection, or one for each caller."""

    def __init__(
        self, name: str, server: Server, limits: Limits = Limits(), options: Options = Options()  # noqa: B008
    ) -> None:  # fmt: skip
        self.server = server
        self.limits = limits_of(server, limits)
        self._name = name
        self._options = options
        self._record = Record(name, options.clean)
        self._offering = Offering(server, self.limits, self._record)
        self._peers: dict[str, Peer] = {}
        self._known: Connection | None = None  # the last one that greeted us
        self._subscriptions = Subscriptions(self._offering.renew)
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self._name

    @property
    def state(self) -> str:
        """idle, starting, ready, failed or stopped."""
        return self._peer(MAIN).state

    @property
    def error(self) -> str:
        """Why it failed or died, if it did."""
        return self._peer(MAIN).error

    @property
    def era(self) -> str:
        """The version of the protocol that it was last spoken to in."""
        return self._known.tongue.version if self._known else ""

    @property
    def info(self) -> dict[str, Any]:
        """Who it says it is."""
        return self._known.info if self._known else {}

    @property
    def instructions(self) -> str:
        """What it tells models of itself."""
        return self._known.instructions if self._known else ""

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it says it can do."""
        return self._known.capabilities if self._known else {}

    @property
    def pid(self) -> int | None:
        """Its process, if it is a child of ours."""
        connection = self._peer(MAIN).ready
        return connection.carrier.pid if connection else None

    @property
    def logs(self) -> deque[tuple[float, str]]:
        """Its last words on stderr and in log messages, with the time."""
        return self._record.logs

    @property
    def counted(self) -> dict[str, int]:
        """How often it did what it should not."""
        return self._record.counted

    @property
    def resources(self) -> Items:
        """Its resources, as it lists them."""
        return self.lists.resources

    @property
    def templates(self) -> Items:
        """Its resource templates, as it lists them."""
        return self.lists.templates

    @property
    def prompts(self) -> Items:
        """Its prompts, as it lists them."""
        return self.lists.prompts

    @property
    def lists(self) -> Lists:
        """All of these, and the tools, as the server said them: to be kept, and given to `remember`."""
        return self._offering.lists

    def tools(self) -> Sequence[Tool]:
        """What can be called."""
        return tuple(offer.tool for offer in self._offering.tools.values())

    def start(self, tool: str, caller: str) -> Start | None:
        """What must be up before a call: the server, for this caller if each has its own."""
        peer = self._peer(caller)
        return None if peer.ready else Start(f"starting server {self._name}", partial(self._up, peer))

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one attempt; raises UnknownName, or ToolError.validation naming the fields."""
        offer = self._offering.tools.get(tool)
        if offer is None:
            raise UnknownName("tool", tool, self._offering.tools)
        check(offer.schema, arguments)
        return partial(self._work, offer, arguments if arguments else Raw(b"{}"))

    async def open(self) -> None:
        """Connect if needed, and learn everything that it offers; raises ToolError."""
        peer = self._peer(MAIN)
        if peer.state == "stopped":
            peer.state = "idle"
        was_ready = peer.ready is not None
        connection = await peer.up()
        # One that was just opened is being asked for its lists already.
        listing = None if was_ready else self._offering.listing
        error = await asyncio.shield(listing or self._offering.refresh(connection))
        if error is not None:
            raise error if isinstance(error, ToolError) else ToolError.unavailable(str(error))

    async def close(self) -> None:
        """End all connections; calls in flight are told."""
        await self._subscriptions.close()
        peers = list(self._peers.values())
        await asyncio.gather(*(peer.close() for peer in peers))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_S)

    async def forget(self, caller: str) -> None:
        """A caller is gone: its own connection goes too."""
        peer = self._peers.pop(caller, None) if caller != MAIN else None
        if peer is not None:
            await peer.close()

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, caller: str = "", ask: Ask | None = None
    ) -> dict[str, Any]:
        """Anything but a tool call; the result as it came. Raises Fault, RunnerDied, ToolError."""
        order = Order(method, params or {}, Plain(caller, ask) if ask else None)
        try:
            result = await (await self._peer(caller).up()).request(order)
        except RunnerDied as died:
            if died.began:
                raise
            result = await (await self._peer(caller).up()).request(order)  # it had not even begun
        try:
            return msgspec.json.decode(result, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            what = f"server {self._name} answered {method} with something that is no result"
            raise ToolError.internal(what, code="protocol") from None

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Be told what changed: `tools`, `resources`, `prompts`, or one `resource`, with its address."""
        return self._offering.listen(callback)

    async def subscribe(self, uri: str) -> None:
        """Be told when this resource changes; raises Fault, ToolError."""
        await self._subscriptions.add(await self._peer(MAIN).up(), uri)

    async def unsubscribe(self, uri: str) -> None:
        """Be told no more; raises Fault, ToolError. A server that is not up has nothing to be told."""
        await self._subscriptions.remove(self._peer(MAIN).ready, uri)

    def remember(self, lists: Lists) -> None:
        """What it offers, just heard or known from before; whoever listens is told what is new."""
        self._offering.remember(lists)

    def _peer(self, caller: str) -> Peer:
        key = caller if self.server.per_caller else MAIN
        peer = self._peers.pop(key, None)
        if peer is None:
            self._make_room()
            peer = Peer(
                self._name, partial(self._connect, key), self.limits.start_s, self._options.restart_limit
            )
        self._peers[key] = peer  # the newest stands last
        return peer

    def _make_room(self) -> None:
        """Close the one longest unused, if there are many; one that is used is never closed for another."""
        own = [key for key in self._peers if key != MAIN]
        unused = (key for key in own if not self._peers[key].is_used)
        if len(own) >= CALLERS and (oldest := next(unused, None)) is not None:
            self._spawn(self._peers.pop(oldest).close())

    async def _up(self, peer: Peer) -> None:
        await peer.up()

    async def _work(self, offer: Offer, arguments: Raw, run: Run) -> Result:
        peer = self._peer(run.caller)
        return await Errand(offer, arguments, run, peer.ready or await peer.up()).work()

    async def _connect(self, key: str) -> Connection:
        carrier = carrier_for(self.server, self._record, self._options)
        tongue = Tongue(client.HANDSHAKE, _about_us())
        connection = Connection(carrier, tongue, self._record, self._noticed)
        connection.is_shared = key == MAIN
        try:
            await carrier.open(connection.receive, connection.die)
            await negotiate(connection, self.server.era, self._options.probe_s)
        except Fault as fault:
            self._spawn(connection.close())
            raise tool_error(fault, self._name) from None
        except BaseException:
            self._spawn(connection.close())
            raise
        self._known = connection
        if key == MAIN:
            self._offering.refresh(connection)
            self._spawn(self._subscriptions.attach(connection))
        return connection

    def _noticed(self, method: str, params: Raw) -> None:
        connection = self._peer(MAIN).ready
        if method in CHANGES and connection is not None:
            self._offering.renew(connection)
        elif method == "notifications/resources/updated":
            self._offering.tell("resource", client_reading.named(params)[0])

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@lru_cache(maxsize=1)
def _about_us() -> Raw:
    with suppress(PackageNotFoundError):
        return Raw(msgspec.json.encode({"name": "afoot", "version": version("afoot")}))
    return Raw(b'{"name":"afoot","version":"0"}')
