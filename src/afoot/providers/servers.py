"""The servers behind this gateway, by name: opened when they are needed, replaced while calls go on (U1)."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import AfootError, CallerError, UnknownName
from afoot.hosts.secrets import environment
from afoot.providers.known import Known, digest
from afoot.providers.listed import Hold, Line, Listed
from afoot.providers.logins import Attempt, Logins
from afoot.providers.roster import Roster, Wanted
from afoot.providers.upstream.carriers import Options
from afoot.providers.upstream.upstream import Upstream
from afoot.tables import BUILT_IN, Server

OPENING = 4  # servers that are opened at once in the background
SLACK = 3  # a connection has its own limit; this one is for when that fails
RUN_TIME = "added while it ran"

log = logging.getLogger("afoot.servers")

Make = Callable[[Listed, Wanted, Limits], Line]


class Servers:
    """All servers. A server that was known before is opened when it is used, any other in the background."""

    def __init__(self, catalog: Catalog, limits: Limits, known: Known, make: Make | None = None) -> None:
        self.catalog, self.limits = catalog, limits
        self.problems: list[str] = []
        self.files: list[Path] = []  # where servers were read from, besides the config
        self.restart_limit = 3
        self.logins = Logins()
        self._known = known
        self._make = make or self._upstream
        self._listed: dict[str, Listed] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._retired: set[Hold] = set()  # closed when their last call is over
        self._turns = asyncio.Semaphore(OPENING)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection, also those that are still used."""
        for hold in self._retired:
            hold.free.set()
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._tasks, *self._opening.values(), return_exceptions=True)
        closing = [self._close(hold) for one in self._listed.values() if (hold := one.hold) is not None]
        await asyncio.gather(*closing)
        await self.logins.close()

    def follow(self, roster: Roster) -> None:
        """Have these servers and no others, but for those that were added while it ran."""
        self.problems, self.files = roster.problems, roster.files
        for name in [name for name, one in self._listed.items() if one.wanted.origin != RUN_TIME]:
            if name not in roster.wanted:
                self._drop(name)
        for name, wanted in roster.wanted.items():
            before = self._listed.get(name)
            if before is not None and before.wanted.reaches(wanted):
                before.wanted = wanted  # other terms need no other connection
            else:
                self._put(name, wanted)
        for one in self._listed.values():
            one.limits = self.limits
        self._renew_terms()
        self.catalog.renew()

    def list(self) -> list[Listed]:
        """Every server, by name."""
        return sorted(self._listed.values(), key=lambda one: one.name)

    def get(self, name: str) -> Listed:
        """A server by its name; raises UnknownName with the nearest (E5)."""
        try:
            return self._listed[name]
        except KeyError:
            raise UnknownName("server", name, self._listed) from None

    async def add(self, name: str, server: Server) -> Listed:
        """Have one more server until the gateway ends; raises CallerError. It is not written anywhere."""
        if not name.strip() or not name.isprintable():
            raise CallerError(f"{name!r} is no name for a server")
        if name in self._listed or name in BUILT_IN:
            raise CallerError(f"server {name} is there already; remove it first")
        if not server.way():
            raise CallerError(f"server {name} needs one of command, url, module")
        listed = self._put(name, Wanted(server, RUN_TIME))
        await self._opened(name)
        return listed

    async def reload(self, name: str) -> Listed:
        """Connect anew and list everything again; calls in flight finish on the old connection."""
        listed = self._put(name, self.get(name).wanted, anew=True)
        await self._opened(name)
        return listed

    async def remove(self, name: str) -> None:
        """Have it no more; calls in flight finish. One of a config file is back when that is read again."""
        self.get(name)
        self._drop(name)

    async def login(self, name: str, port: int = 0) -> Attempt:
        """Begin to log in to a server; it is connected anew when that is done. Raises CallerError."""
        listed = self.get(name)
        await self._opened(name)
        access = listed.access
        if access is None or (access.challenge is None and access.login is None):
            await self.reload(name)  # it has to say what it wants
        if listed.hold is None:
            raise CallerError(f"server {name} is {listed.state}{listed.why and f': {listed.why}'}")

        async def then() -> str:
            again = await self.reload(name)
            return "" if again.state == "ready" else f"logged in, but {again.error or again.state}"

        server = listed.wanted.server.expanded(environment())
        return await self.logins.begin(name, server, port, then)

    async def clear_tokens(self, name: str) -> bool:
        """Log out of a server, also one that is here no more; True if there was a login."""
        had = self.logins.clear(name)
        if name in self._listed:
            await self.reload(name)
        elif not had:
            raise UnknownName("server", name, self._listed)
        return had

    async def forget(self, caller: str) -> None:
        """A caller is gone: the connections that were its own go, too."""
        for listed in self.list():
            if listed.hold is not None and listed.wanted.server.per_caller:
                await listed.hold.line.forget(caller)

    async def settled(self, timeout_s: float) -> None:
        """Wait until what is being opened in the background is open or has failed, or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while self._opening and (left_s := until - loop.time()) > 0:  # what is replaced is opened anew
            await asyncio.wait(list(self._opening.values()), timeout=left_s)

    def _put(self, name: str, wanted: Wanted, *, anew: bool = False) -> Listed:
        """Give a server a new connection, or none; the old one goes when its last call is over."""
        listed = self._listed.get(name)
        if listed is None:
            listed = self._listed[name] = Listed(name, wanted)
            listed.listen(lambda kind, _: self._changed(listed, kind))
        listed.wanted = wanted
        self._open_no_more(name)
        line = self._line(listed)
        is_known = line is not None and self._restored(listed, line)
        self._retire(name, listed.connect(line))
        self._offer(listed)
        if line is not None and (anew or not is_known):
            self._open(listed)
        return listed

    def _line(self, listed: Listed) -> Line | None:
        """A new connection, not yet open; None where there can be none, and why."""
        wanted = listed.wanted
        listed.why = wanted.why
        if wanted.why or wanted.server.disabled:
            return None
        try:
            server = wanted.server.expanded(environment())
        except KeyError as missing:
            listed.why = f"{missing.args[0]} is not set, and its settings use it"
            return None
        listed.access = self.logins.access(listed.name, server)
        return self._make(listed, replace(wanted, server=server), self.limits)

    def _upstream(self, listed: Listed, wanted: Wanted, limits: Limits) -> Line:
        redactor = self.catalog.terms.redactor
        redactor.know({**wanted.server.env, **wanted.server.headers})
        options = Options(
            restart_limit=self.restart_limit, target=wanted.target, access=listed.access,
            clean=lambda text: self.catalog.terms.redactor.text(text),
        )  # fmt: skip
        return Upstream(listed.name, wanted.server, limits, options)

    def _restored(self, listed: Listed, line: Line) -> bool:
        lists = self._known.read(listed.name, digest(listed.wanted.server))
        if lists is not None:
            line.remember(lists)
        return lists is not None

    def _renew_terms(self) -> None:
        """What is set for servers counts for their tools, wherever they are from."""
        terms = self.catalog.terms
        own = {name: server for name, server in terms.servers.items() if name in BUILT_IN}
        tables = {name: one.wanted.server for name, one in self._listed.items()}
        self.catalog.terms = replace(terms, servers={**own, **tables})

    def _offer(self, listed: Listed) -> None:
        self._renew_terms()
        if listed.hold is not None:
            self.catalog.put(listed)
        else:
            self._withdraw(listed.name)

    def _withdraw(self, name: str) -> None:
        with suppress(UnknownName):
            self.catalog.remove(name)

    def _changed(self, listed: Listed, kind: str) -> None:
        """Its lists are others now: offer them, and keep them for the next start."""
        if listed.hold is None or self._listed.get(listed.name) is not listed:
            return
        if kind == "tools":
            self.catalog.put(listed)
        if kind != "resource" and listed.state == "ready":
            listed.why = ""
            self._keep(listed)

    def _keep(self, listed: Listed) -> None:
        self._known.write(listed.name, digest(listed.wanted.server), listed.line.lists)

    def _drop(self, name: str) -> None:
        listed = self._listed.pop(name)
        self._open_no_more(name)
        self._withdraw(name)
        self._retire(name, listed.connect(None))
        self._known.forget(name)

    def _open_no_more(self, name: str) -> None:
        """What is being opened has been replaced, or removed."""
        opening = self._opening.pop(name, None)
        if opening is not None:
            opening.cancel()

    def _open(self, listed: Listed) -> None:
        task = asyncio.create_task(self._opens(listed), name=f"open {listed.name}")
        self._opening[listed.name] = task
        task.add_done_callback(lambda done: self._is_open(listed, done))

    async def _opens(self, listed: Listed) -> None:
        async with self._turns:
            line = listed.line
            try:
                async with asyncio.timeout(SLACK * self._start_s(listed)):
                    await line.open()
                    await listed.resubscribe()
            except (AfootError, TimeoutError, OSError) as error:
                listed.why = str(error) or f"did not start within {self._start_s(listed):g} s (start_s)"
                log.warning("server %s: %s", listed.name, listed.error)
            else:
                listed.why = ""
                self._keep(listed)
                self.catalog.put(listed)

    def _start_s(self, listed: Listed) -> float:
        return listed.wanted.server.limits().get("start_s", self.limits.start_s)

    async def _opened(self, name: str) -> None:
        opening = self._opening.get(name)
        if opening is not None:
            await asyncio.wait([opening])

    def _is_open(self, listed: Listed, task: "asyncio.Task[None]") -> None:
        if self._opening.get(listed.name) is task:
            del self._opening[listed.name]
        if not task.cancelled() and (error := task.exception()) is not None:
            listed.why = "could not be opened; the gateway's log says more"
            log.error("server %s could not be opened", listed.name, exc_info=error)

    def _retire(self, name: str, hold: Hold | None) -> None:
        if hold is not None:
            self._retired.add(hold)
            self._spawn(self._close_when_free(name, hold))

    async def _close_when_free(self, name: str, hold: Hold) -> None:
        if hold.users:
            log.info("server %s: %d calls finish on the old connection", name, hold.users)
        await hold.free.wait()
        await self._close(hold)
        self._retired.discard(hold)

    async def _close(self, hold: Hold) -> None:
        try:
            await hold.line.close()
        except Exception:
            log.exception("a connection could not be closed")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
