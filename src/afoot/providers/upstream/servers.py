"""`Servers` has all servers of the gateway, by name: opened when needed, replaced during calls (U1)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from afoot.config.redactor import add_server_secrets
from afoot.config.tables import BUILT_IN_SERVERS, Server
from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import AfootError, CallerError, UnknownName
from afoot.hosts.secrets_file import environment, read_all
from afoot.providers.upstream.configured_servers import (
    FoundServer,
    KnownServers,
    Roster,
    ServerEntry,
    settings_digest,
)
from afoot.providers.upstream.managed_server import ConnectionLease, ManagedServer, ServerConnection
from afoot.providers.upstream.oauth.logins import LoginAttempt, Logins
from afoot.providers.upstream.provider import ServerOptions, Upstream
from afoot.providers.upstream.reachable_clients import ReachableClients

MAX_OPENING = 4  # servers that are opened at once in the background
START_FACTOR = 3  # times start_s: a connection keeps its own limit, this one is for when that fails
AT_RUN_TIME = "added while it ran"  # the origin of a server that no file names

MakeConnection = Callable[[ManagedServer, ServerEntry, Limits], ServerConnection]

log = logging.getLogger("afoot.servers")


class Servers:
    """All servers. A server whose lists are stored is opened when it is used, others in the background."""

    def __init__(
        self, catalog: Catalog, limits: Limits, known: KnownServers, make: MakeConnection | None = None
    ) -> None:
        self.catalog = catalog
        self.limits = limits
        self.problems: list[str] = []
        self.files: list[Path] = []  # that servers were read from, besides the config
        self.restart_limit = 3
        self.logins = Logins(self._recall)
        self.clients = ReachableClients()  # that servers reach outside calls
        self._known = known
        self._make = make or self._make_upstream
        self._servers: dict[str, ManagedServer] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._retired: set[ConnectionLease] = set()  # closed when their last call is over
        self._turns = asyncio.Semaphore(MAX_OPENING)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection, also those that are still used."""
        for lease in self._retired:
            lease.free.set()
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._tasks, *self._opening.values(), return_exceptions=True)
        leases = [one.lease for one in self._servers.values() if one.lease is not None]
        await asyncio.gather(*(self._close(lease) for lease in leases))
        await self.logins.close()

    def follow(self, roster: Roster) -> None:
        """Have the servers of this roster and no others, except those that were added at run time."""
        self.problems = roster.problems
        self.files = roster.files
        for name in [name for name, one in self._servers.items() if one.entry.origin != AT_RUN_TIME]:
            if name not in roster.entries:
                self._drop(name)
        for name, entry in roster.entries.items():
            before = self._servers.get(name)
            if before is not None and before.entry.reaches(entry):
                before.entry = entry  # other limits need no other connection
            else:
                self._set_entry(name, entry)
        for one in self._servers.values():
            one.limits = self.limits
        self._update_settings()
        self.catalog.renew()

    def list(self) -> list[ManagedServer]:
        """Return every server, in the order of their names."""
        return sorted(self._servers.values(), key=lambda one: one.name)

    def get(self, name: str) -> ManagedServer:
        """Return a server by its name; raises UnknownName with the nearest (E5)."""
        try:
            return self._servers[name]
        except KeyError:
            raise UnknownName("server", name, self._servers) from None

    async def add(self, name: str, server: Server) -> ManagedServer:
        """Add a server until the gateway ends; raises CallerError. It is not written to any file."""
        if not name.strip() or not name.isprintable():
            raise CallerError(f"{name!r} is no name for a server")
        if name in self._servers or name in BUILT_IN_SERVERS:
            raise CallerError(f"server {name} is there already; remove it first")
        if not server.way():
            raise CallerError(f"server {name} needs one of command, url, module")
        managed = self._set_entry(name, ServerEntry(server, AT_RUN_TIME))
        await self._wait_for_opening(name)
        return managed

    async def reload(self, name: str) -> ManagedServer:
        """Connect anew and list everything again; calls in flight finish on the old connection."""
        managed = self._set_entry(name, self.get(name).entry, anew=True)
        await self._wait_for_opening(name)
        return managed

    async def remove(self, name: str) -> None:
        """Remove a server; its running calls finish. One of a config file returns when that is read again."""
        self.get(name)
        self._drop(name)

    async def login(self, name: str, port: int = 0) -> LoginAttempt:
        """Begin to log in to a server, which is connected anew when that is done. Raises CallerError."""
        managed = self.get(name)
        await self._wait_for_opening(name)
        tokens = managed.tokens
        if tokens is None or (tokens.challenge is None and tokens.login is None):
            await self.reload(name)  # the refusal of a request says which login the server wants
        if managed.lease is None:
            raise CallerError(f"server {name} is {managed.state}{managed.why and f': {managed.why}'}")

        async def reconnect() -> str:
            again = await self.reload(name)
            return "" if again.state == "ready" else f"logged in, but {again.error or again.state}"

        server = managed.entry.server.expanded(environment())
        return await self.logins.begin(name, server, port, reconnect)

    async def clear_tokens(self, name: str) -> bool:
        """Log out of a server, also one that was removed; True if there was a login."""
        had = self.logins.clear(name)
        if name in self._servers:
            await self.reload(name)
        elif not had:
            raise UnknownName("server", name, self._servers)
        return had

    async def clear_all_tokens(self) -> tuple[str, ...]:
        """Log out of all servers, also of those that were removed; return the names of those with a login."""
        logged_in = [
            one.name for one in self.list() if one.tokens is not None and one.tokens.login is not None
        ]
        cleared = self.logins.clear_all()
        await asyncio.gather(*(self.reload(name) for name in logged_in))
        return tuple(dict.fromkeys((*logged_in, *cleared)))

    async def forget(self, caller: str) -> None:
        """Close the connections of this caller alone, because the caller has left."""
        for managed in self.list():
            if managed.lease is not None and managed.entry.server.per_caller:
                await managed.lease.connection.forget(caller)

    async def renew_log_levels(self) -> None:
        """Tell every server that is connected the level of logs that its clients want now."""
        await asyncio.gather(*(one.renew_log_level() for one in self._connections()))

    def tell_roots_changed(self, caller: str) -> None:
        """Tell the servers that have asked for roots that those of this caller have changed."""
        for connection in self._connections():
            connection.tell_roots_changed(caller)

    async def wait_until_opened(self, timeout_s: float) -> None:
        """Wait until every server that is being opened is open or has failed, at most so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._opening and (left_s := until - loop.time()) > 0:  # a replaced one is opened again
            await asyncio.wait(list(self._opening.values()), timeout=left_s)

    def _connections(self) -> Sequence[ServerConnection]:
        return [one.lease.connection for one in self.list() if one.lease is not None]

    def _set_entry(self, name: str, entry: ServerEntry, *, anew: bool = False) -> ManagedServer:
        """Give a server a new connection, or none; the old one is closed when its last call is over."""
        managed = self._servers.get(name)
        if managed is None:
            managed = self._servers[name] = ManagedServer(name, entry)
            managed.listen(lambda kind, _: self._on_change(managed, kind))
        managed.entry = entry
        self._cancel_opening(name)
        connection = self._make_connection(managed)
        is_known = connection is not None and self._restore_lists(managed, connection)
        self._retire(name, managed.connect(connection))
        self._publish(managed)
        if connection is not None and (anew or not is_known):
            self._start_opening(managed)
        return managed

    def _make_connection(self, managed: ManagedServer) -> ServerConnection | None:
        """Make a connection, not yet open; None where there can be none, and `why` says so."""
        entry = managed.entry
        managed.why = entry.why
        if entry.why or entry.server.disabled:
            return None
        try:
            server = entry.server.expanded(environment())
        except KeyError as missing:
            managed.why = f"{missing.args[0]} is not set, and its settings use it"
            return None
        redactor = self.catalog.effective_settings.redactor
        add_server_secrets(redactor, server)
        redactor.add_secrets(read_all().values())
        managed.tokens = self.logins.tokens(managed.name, server)
        return self._make(managed, replace(entry, server=server), self.limits)

    def _make_upstream(self, managed: ManagedServer, entry: ServerEntry, limits: Limits) -> ServerConnection:
        options = ServerOptions(
            restart_limit=self.restart_limit,
            target=entry.target.take() if isinstance(entry.target, FoundServer) else entry.target,
            tokens=managed.tokens,
            clean=self._clean,
            clients=self.clients,
        )
        return Upstream(managed.name, entry.server, limits, options)

    def _clean(self, text: str) -> str:
        """Text without secrets, by the rules of today (S7)."""
        return self.catalog.effective_settings.redactor.text_of_any_call(text)

    def _recall(self, secrets: Iterable[str]) -> None:
        self.catalog.effective_settings.redactor.add_secrets(secrets)

    def _restore_lists(self, managed: ManagedServer, connection: ServerConnection) -> bool:
        """Give a connection the lists that were stored for the same settings; False if there are none."""
        if managed.entry.target is not None:  # it is here, and may offer anything: it is asked
            return False
        lists = self._known.read(managed.name, settings_digest(managed.entry.server))
        if lists is not None:
            connection.remember(lists)
        return lists is not None

    def _save_lists(self, managed: ManagedServer) -> None:
        if managed.entry.target is None:
            self._known.write(managed.name, settings_digest(managed.entry.server), managed.lists)

    def _update_settings(self) -> None:
        """Make the settings of each server count for its tools, whichever file it is from."""
        settings = self.catalog.effective_settings
        own = {name: server for name, server in settings.servers.items() if name in BUILT_IN_SERVERS}
        tables = {name: one.entry.server for name, one in self._servers.items()}
        self.catalog.effective_settings = replace(settings, servers={**own, **tables})

    def _publish(self, managed: ManagedServer) -> None:
        self._update_settings()
        if managed.lease is not None:
            self.catalog.put(managed)
        else:
            self._withdraw(managed.name)

    def _withdraw(self, name: str) -> None:
        with suppress(UnknownName):
            self.catalog.remove(name)

    def _on_change(self, managed: ManagedServer, kind: str) -> None:
        """Offer the changed lists of a server, and store them for the next start of the gateway."""
        if managed.lease is None or self._servers.get(managed.name) is not managed:
            return
        if kind == "tools":
            self.catalog.put(managed)
        if kind != "resource" and managed.state == "ready":
            managed.why = ""
            self._save_lists(managed)

    def _drop(self, name: str) -> None:
        managed = self._servers.pop(name)
        self._cancel_opening(name)
        self._withdraw(name)
        self._retire(name, managed.connect(None))
        self._known.forget(name)

    def _cancel_opening(self, name: str) -> None:
        opening = self._opening.pop(name, None)
        if opening is not None:
            opening.cancel()

    def _start_opening(self, managed: ManagedServer) -> None:
        task = asyncio.create_task(self._open(managed), name=f"open {managed.name}")
        self._opening[managed.name] = task
        task.add_done_callback(lambda done: self._on_opening_done(managed, done))

    async def _open(self, managed: ManagedServer) -> None:
        async with self._turns:
            start_s = managed.entry.server.limits().get("start_s", self.limits.start_s)
            connection = managed.connection
            try:
                async with asyncio.timeout(START_FACTOR * start_s):
                    await connection.open()
                    await managed.resubscribe()
            except (AfootError, TimeoutError, OSError) as error:
                managed.why = self._clean(str(error)) or f"did not start within {start_s:g} s (start_s)"
                log.warning("server %s: %s", managed.name, managed.error)
            else:
                managed.why = ""
                self._save_lists(managed)
                self.catalog.put(managed)

    async def _wait_for_opening(self, name: str) -> None:
        opening = self._opening.get(name)
        if opening is not None:
            await asyncio.wait([opening])

    def _on_opening_done(self, managed: ManagedServer, task: "asyncio.Task[None]") -> None:
        if self._opening.get(managed.name) is task:
            del self._opening[managed.name]
        if not task.cancelled() and (error := task.exception()) is not None:
            managed.why = "could not be opened; the gateway's log says more"
            log.error("server %s could not be opened", managed.name, exc_info=error)

    def _retire(self, name: str, lease: ConnectionLease | None) -> None:
        if lease is not None:
            self._retired.add(lease)
            self._spawn(self._close_when_free(name, lease))

    async def _close_when_free(self, name: str, lease: ConnectionLease) -> None:
        if lease.users:
            log.info("server %s: %d calls finish on the old connection", name, lease.users)
        await lease.free.wait()
        await self._close(lease)
        self._retired.discard(lease)

    async def _close(self, lease: ConnectionLease) -> None:
        try:
            await lease.connection.close()
        except Exception:
            log.exception("a connection could not be closed")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
