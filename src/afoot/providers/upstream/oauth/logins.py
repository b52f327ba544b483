"""`Logins` has the logins to all servers: a `TokenSource` for each, and the attempts to log in (U7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from importlib import import_module

from afoot.config.tables import Server
from afoot.errors import AfootError, CallerError
from afoot.providers.upstream.oauth.tokens import AuthChallenge, LoginStore, TokenSource

log = logging.getLogger("afoot.servers")

AfterLogin = Callable[[], Awaitable[str]]  # is run after a login; returns what is wrong even so, or nothing


class LoginAttempt:
    """A login under way: the address that the person has to visit, and how it ended."""

    def __init__(self) -> None:
        self.url = ""
        self.error = ""
        self._is_shown = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """waiting, done or failed."""
        if self._task is not None and not self._task.done():
            return "waiting"
        return "failed" if self.error else "done"

    async def begin(self, work: Awaitable[None]) -> None:
        """Start to log in; return when the address is known or it is over. It goes on by itself."""
        self._task = asyncio.create_task(self._run(work), name="log in")
        self._task.add_done_callback(lambda _: self._is_shown.set())
        await self._is_shown.wait()

    def show(self, url: str) -> None:
        """Set the address that the person has to visit."""
        self.url = url
        self._is_shown.set()

    async def ended(self, timeout_s: float | None = None) -> None:
        """Wait until this login is over, for at most these seconds."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout_s)

    async def stop(self) -> None:
        """Cancel this login: a new one has begun, or the gateway ends."""
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
    """The stored logins of all servers, and the attempts to log in."""

    def __init__(self, recall: Callable[[Iterable[str]], None] = lambda _: None) -> None:
        self._recall = recall  # is told each secret of a login, so that nothing shows it (S7)
        self._store = LoginStore()
        self._tokens: dict[str, TokenSource] = {}
        self._attempts: dict[str, LoginAttempt] = {}

    def tokens(self, name: str, server: Server) -> TokenSource | None:
        """Return the tokens of a server, shared by all its connections; None where it takes no login."""
        has_header = any(key.lower() == "authorization" for key in server.headers)
        if not server.url or (has_header and server.auth != "oauth"):
            return None
        found = self._tokens.get(name)
        if found is None or found.url != server.url:
            found = self._tokens[name] = TokenSource(name, server.url, self._store, self._recall)
        found.auth_hosts = server.auth_hosts
        return found

    def require_tokens(self, name: str, server: Server) -> TokenSource:
        """Return the tokens of a server; raises CallerError where it takes no login."""
        found = self.tokens(name, server)
        if found is None:
            why = "its settings have an Authorization header" if server.url else "it has no url"
            raise CallerError(f"server {name} takes no login: {why}")
        return found

    def attempt(self, name: str) -> LoginAttempt:
        """Return the last attempt to log in to a server; raises CallerError."""
        try:
            return self._attempts[name]
        except KeyError:
            raise CallerError(f"nobody is logging in to server {name}") from None

    async def begin(self, name: str, server: Server, port: int, then: AfterLogin) -> LoginAttempt:
        """Begin to log in; the attempt has the address to visit, or why it failed. Raises CallerError."""
        tokens = self.require_tokens(name, server)
        before = self._attempts.get(name)
        attempt = self._attempts[name] = LoginAttempt()
        if before is not None:
            await before.stop()
        # The SDK takes a second or two to import: in a thread, where nothing waits for it.
        await asyncio.to_thread(import_module, "afoot.providers.upstream.oauth.login")
        from afoot.providers.upstream.oauth.login import OAuthLoginRequest, log_in

        login, challenge = tokens.login, tokens.challenge
        if challenge is None and login is not None:
            challenge = AuthChallenge(401, login.header)
        login_request = OAuthLoginRequest(name, server, challenge, login, port)

        async def work() -> None:
            self._store.write(name, await log_in(login_request, attempt.show))
            attempt.error = await then()

        await attempt.begin(work())
        return attempt

    def clear(self, name: str) -> bool:
        """Delete tokens and registration of a server, configured or not; True if there was something."""
        return self._store.clear(name)

    def clear_all(self) -> list[str]:
        """Delete tokens and registrations of all servers, configured or not; return the servers' names."""
        return self._store.clear_all()

    async def close(self) -> None:
        """Stop attempts, and wait for renewals of tokens."""
        for attempt in self._attempts.values():
            await attempt.stop()
        await asyncio.gather(*(tokens.close() for tokens in self._tokens.values()))
