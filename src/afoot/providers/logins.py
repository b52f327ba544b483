"""Logins to servers: one way in for each of them, and those that somebody is just making (U7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib import import_module

from afoot.errors import AfootError, CallerError
from afoot.providers.upstream.oauth_access import Access, Challenge
from afoot.providers.upstream.oauth_store import Store
from afoot.tables import Server

log = logging.getLogger("afoot.servers")

Then = Callable[[], Awaitable[str]]  # what to do after a login; what is wrong even so, or nothing


class Attempt:
    """A login under way: where the person has to go, and how it ended."""

    def __init__(self) -> None:
        self.url = ""
        self.error = ""
        self._shown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """waiting, done or failed."""
        if self._task is not None and not self._task.done():
            return "waiting"
        return "failed" if self.error else "done"

    async def begin(self, work: Awaitable[None]) -> None:
        """Run until the address is known, or it is over; it goes on by itself."""
        self._task = asyncio.create_task(self._run(work), name="log in")
        self._task.add_done_callback(lambda _: self._shown.set())
        await self._shown.wait()

    def show(self, url: str) -> None:
        """The person has to go there."""
        self.url = url
        self._shown.set()

    async def ended(self, timeout_s: float | None = None) -> None:
        """Wait for its end, at most so long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout_s)

    async def stop(self) -> None:
        """Somebody has begun anew, or the gateway ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.error = "it was begun anew"
            raise
        except AfootError as error:
            self.error = str(error)
        except Exception:
            self.error = "the login failed; the log says more"
            log.exception("a login failed")


class Logins:
    """What is kept of all logins, and the attempts to make one."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store or Store()
        self._accesses: dict[str, Access] = {}
        self._attempts: dict[str, Attempt] = {}

    def access(self, name: str, server: Server) -> Access | None:
        """The way into a server, the same for all its connections; None where no login can be."""
        has_header = any(key.lower() == "authorization" for key in server.headers)
        if not server.url or (has_header and server.auth != "oauth"):
            return None
        found = self._accesses.get(name)
        if found is None or found.url != server.url:
            found = self._accesses[name] = Access(name, server.url, self._store)
        return found

    def check(self, name: str, server: Server) -> Access:
        """The way into a server; raises CallerError where no login can be."""
        found = self.access(name, server)
        if found is None:
            why = "its settings have an Authorization header" if server.url else "it has no url"
            raise CallerError(f"server {name} takes no login: {why}")
        return found

    def attempt(self, name: str) -> Attempt:
        """The last attempt to log in to a server; raises CallerError."""
        try:
            return self._attempts[name]
        except KeyError:
            raise CallerError(f"nobody is logging in to server {name}") from None

    async def begin(self, name: str, server: Server, port: int, then: Then) -> Attempt:
        """Begin to log in: the attempt knows where to go, or why that failed. Raises CallerError."""
        access = self.check(name, server)
        before = self._attempts.get(name)
        attempt = self._attempts[name] = Attempt()
        if before is not None:
            await before.stop()
        # The SDK takes a second or two to import: in a thread, where nothing waits for it.
        await asyncio.to_thread(import_module, "afoot.providers.upstream.oauth_login")
        from afoot.providers.upstream.oauth_login import Order, log_in

        login, challenge = access.login, access.challenge
        if challenge is None and login is not None:
            challenge = Challenge(401, login.header)
        order = Order(name, server, challenge, login, port)

        async def work() -> None:
            self._store.write(name, await log_in(order, attempt.show))
            attempt.error = await then()

        await attempt.begin(work())
        return attempt

    def clear(self, name: str) -> bool:
        """Forget tokens and registration of a server, known or not; True if there was something."""
        return self._store.clear(name)

    async def close(self) -> None:
        """Stop attempts; renewals come to their end."""
        for attempt in self._attempts.values():
            await attempt.stop()
        await asyncio.gather(*(access.close() for access in self._accesses.values()))
