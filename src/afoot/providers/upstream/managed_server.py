"""`ManagedServer` is a server by its name: its settings and its connection, which may be replaced.

It is the provider of its tools, and the same object over all its connections: the catalog, `serve` and
those who listen to changes keep it. `ServerConnection` is the port to one connection; `provider.Upstream`
implements it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import Answer, Limits, Question, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import AfootError, RunnerDied, ToolError, UnknownName
from afoot.providers.upstream.configured_servers import ServerEntry
from afoot.providers.upstream.oauth.tokens import TokenSource
from afoot.providers.upstream.server_lists import OnChange, ServerLists
from afoot.wire.jsonrpc import Fault

KINDS = ("tools", "resources", "prompts")

StopListening = Callable[[], None]
Ask = Callable[[Question], Awaitable[Answer]]

log = logging.getLogger("afoot.servers")


class ServerConnection(Protocol):
    """A connection to one server with one set of settings.

    It is opened when it is needed, and again when it died.
    """

    @property
    def state(self) -> str:
        """idle, starting, ready, failed or stopped."""
        ...

    @property
    def error(self) -> str: ...
    @property
    def era(self) -> str: ...
    @property
    def info(self) -> Mapping[str, Any]: ...
    @property
    def instructions(self) -> str: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def starts(self) -> int: ...
    @property
    def up_since(self) -> float | None: ...
    @property
    def logs(self) -> Sequence[tuple[float, str]]: ...
    @property
    def counted(self) -> Mapping[str, int]: ...

    @property
    def refused(self) -> Sequence[str]:
        """Tools of its list that cannot be offered, and why."""
        ...

    @property
    def lists(self) -> ServerLists:
        """The lists of everything that the server offers; they stay known while the server is down."""
        ...

    def tools(self) -> Sequence[Tool]: ...
    def digest(self, tool: str) -> str:
        """The digest of a tool's definition, as it is known now; empty if there is none."""
        ...

    def prepare(self, tool: str, arguments: Raw) -> Work: ...
    def start(self, tool: str, caller: str) -> RunnerStart | None: ...
    def remember(self, lists: ServerLists) -> None: ...
    def listen(self, callback: OnChange) -> StopListening: ...
    def open(self) -> Awaitable[None]: ...
    def close(self) -> Awaitable[None]: ...
    def forget(self, caller: str) -> Awaitable[None]: ...
    def request(
        self, method: str, params: dict[str, Any], caller: str = "", ask: Ask | None = None
    ) -> Awaitable[dict[str, Any]]: ...
    def subscribe(self, uri: str) -> Awaitable[None]: ...
    def unsubscribe(self, uri: str) -> Awaitable[None]: ...
    def renew_log_level(self) -> Awaitable[None]: ...
    def tell_roots_changed(self, caller: str) -> None: ...


class ConnectionLease:
    """A connection, and how many calls use it.

    A replaced connection is closed when its last call has finished.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.users = 0
        self.free = asyncio.Event()
        self.free.set()

    def __enter__(self) -> ServerConnection:
        self.users += 1
        self.free.clear()
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        if not self.users:
            self.free.set()


class ManagedServer:
    """One server of the gateway, under its name; its connection may be replaced."""

    def __init__(self, name: str, entry: ServerEntry) -> None:
        self.name = name
        self.entry = entry
        self.why = entry.why  # why it cannot be used, or did not open
        self.limits: Limits | None = None  # of its tools, where nothing nearer is set
        self.lease: ConnectionLease | None = None  # None: it is disabled or cannot be used
        self.tokens: TokenSource | None = None  # the login to it, if it can have one
        self._listeners: list[OnChange] = []
        self._stop_listening: StopListening | None = None
        self._subscribed: set[str] = set()

    @property
    def connection(self) -> ServerConnection:
        """Its connection; raises ToolError where it has none."""
        if self.lease is None:
            raise self._unavailable()
        return self.lease.connection

    @property
    def state(self) -> str:
        """disabled or unusable; else that of its connection: idle, starting, ready, failed or stopped."""
        if self.lease is not None:
            return self.lease.connection.state
        return "unusable" if self.why else "disabled"

    @property
    def error(self) -> str:
        """The reason why the server is not ready; empty if it is."""
        if self.lease is None:
            return self.why
        connection = self.lease.connection
        if connection.state == "ready":
            return ""
        return (connection.error or self.why).removeprefix(f"server {self.name}: ")

    @property
    def login(self) -> str:
        """needed or logged in; nothing for a server that asked for no login."""
        return self.tokens.state if self.tokens is not None else ""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Its capabilities; empty until they are known."""
        return self.lease.connection.capabilities if self.lease else {}

    @property
    def instructions(self) -> str:
        """Its instructions for models."""
        return self.lease.connection.instructions if self.lease else ""

    @property
    def lists(self) -> ServerLists:
        """The lists of everything that the server offers, as far as they are known."""
        return self.lease.connection.lists if self.lease else ServerLists()

    @property
    def resources(self) -> Sequence[dict[str, Any]]:
        """Its resources."""
        return self.lists.resources

    @property
    def templates(self) -> Sequence[dict[str, Any]]:
        """Its resource templates."""
        return self.lists.templates

    @property
    def prompts(self) -> Sequence[dict[str, Any]]:
        """Its prompts."""
        return self.lists.prompts

    def tools(self) -> Sequence[Tool]:
        """Return its tools, as far as they are known, with the limits that are set today."""
        found = self.lease.connection.tools() if self.lease else ()
        if self.limits is None or all(tool.limits == self.limits for tool in found):
            return found
        return [replace(tool, limits=self.limits) for tool in found]

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """Return what must be up before a tool of it can run, None if it is."""
        lease = self.lease
        if lease is None:
            raise self._unavailable()
        start = lease.connection.start(tool, caller)
        return None if start is None else RunnerStart(start.what, partial(self._wait_until_up, tool, caller))

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """Return the work of one call, which runs on the new connection if this one is replaced before."""
        lease = self.lease
        if lease is None:
            raise self._unavailable()
        work = lease.connection.prepare(tool, arguments)
        return partial(self._run, tool, arguments, lease, work, lease.connection.digest(tool))

    async def request(
        self, method: str, params: dict[str, Any], caller: str = "", ask: Ask | None = None
    ) -> dict[str, Any]:
        """Send a request that is no tool call, and return its result as it came."""
        lease = self.lease
        if lease is None:
            raise self._unavailable()
        with lease as connection:
            return await connection.request(method, params, caller, ask)

    def listen(self, callback: OnChange) -> StopListening:
        """Call back when its lists or resources change, on any connection; the result stops that."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    async def subscribe(self, uri: str) -> None:
        """Be told of changes of a resource, also on later connections."""
        await self.connection.subscribe(uri)
        self._subscribed.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """Be told of changes of a resource no more."""
        self._subscribed.discard(uri)
        await self.connection.unsubscribe(uri)

    def connect(self, connection: ServerConnection | None) -> ConnectionLease | None:
        """Use this connection from now on; returns the one before, which calls may still use."""
        before = self.lease
        self.lease = None if connection is None else ConnectionLease(connection)
        if self._stop_listening is not None:
            self._stop_listening()
        self._stop_listening = None if connection is None else connection.listen(self._tell)
        if before is not None:
            for kind in KINDS:
                self._tell(kind, None)
        return before

    async def resubscribe(self) -> None:
        """Subscribe on a new connection to all that the old one was subscribed to."""
        for uri in sorted(self._subscribed):
            try:
                await self.connection.subscribe(uri)
            except (AfootError, Fault) as error:
                log.warning("server %s: no more news of %s: %s", self.name, uri, error)

    def _tell(self, kind: str, uri: str | None) -> None:
        for listener in list(self._listeners):
            listener(kind, uri)

    async def _run(
        self, tool: str, arguments: Raw, prepared_on: ConnectionLease, work: Work, digest: str, run: Run
    ) -> Result:
        lease = self.lease
        if lease is None:
            raise self._removed()
        with lease as connection:
            if lease is not prepared_on:
                work = await self._prepare_again(connection, tool, arguments)
                if connection.digest(tool) != digest:  # another tool than was asked about and checked (A7)
                    raise RunnerDied(f"server {self.name} has changed its tool {tool}", began=False)
            return await work(run)

    async def _prepare_again(self, connection: ServerConnection, tool: str, arguments: Raw) -> Work:
        """Prepare a call for another connection, which may have to be opened before its tools are known."""
        try:
            return connection.prepare(tool, arguments)
        except UnknownName:
            await connection.open()
        try:
            return connection.prepare(tool, arguments)
        except UnknownName:
            raise ToolError.not_found(f"server {self.name} has no tool {tool} any more") from None

    async def _wait_until_up(self, tool: str, caller: str) -> None:
        """Wait until its connection is up; if it is replaced meanwhile, wait for the new one."""
        while (lease := self.lease) is not None:
            start = lease.connection.start(tool, caller)
            try:
                if start is not None:
                    await start.done()
            except ToolError:
                if self.lease is lease:
                    raise
            if self.lease is lease:
                return
        raise self._removed()

    def _unavailable(self) -> ToolError:
        return ToolError.unavailable(f"server {self.name} is {self.state}{self.why and f': {self.why}'}")

    def _removed(self) -> ToolError:
        return ToolError.unavailable(f"server {self.name} was removed")
