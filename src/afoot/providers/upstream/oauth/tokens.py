"""`TokenSource` has the login to one server: its tokens, sent along with requests and renewed in time (U7).

`LoginStore` keeps logins, with our registration as a client, in the state folder (S4). Nobody is asked for
anything here; that is `login`. The SDK's own provider is not used for requests: it makes them wait
for each other until their answers begin, and after a restart it knows neither when a token expires nor
where to renew it.
"""

import asyncio
import base64
import logging
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from afoot.config import state_folder
from afoot.config.settings import home
from afoot.errors import CallerError, ToolError

RENEW_EARLY_S: Final = 10.0  # a token that expires so soon is renewed first
RENEW_TIMEOUT_S: Final = 30.0
MAX_TOKEN_BYTES: Final = 1024 * 1024  # of the answer to a renewal
RETRY_S: Final = 5.0  # between renewals that fail, or do not help
RETRY_STATUSES: Final = (408, 425, 429)  # statuses below 500 that mean "later"

FileStamp = tuple[int, ...]

log = logging.getLogger("afoot.servers")


class OAuthClient(Struct, frozen=True, omit_defaults=True):
    """Our client at an authorization server: registered by us, or named in the settings."""

    id: str
    secret: str = ""
    method: str = ""  # how it authenticates: none, client_secret_basic, client_secret_post
    redirect: str = ""  # the redirect URI that it was registered with
    issuer: str = ""  # the only authorization server that knows it

    def __repr__(self) -> str:
        return f"OAuthClient({self.id!r})"


class StoredLogin(Struct, frozen=True, omit_defaults=True):
    """A login to the server at one address.

    Without an access token it has expired, and must be made again.
    """

    url: str
    access: str = ""
    refresh: str = ""
    until: float | None = None  # wall-clock time
    scope: str = ""
    token_url: str = ""
    resource: str = ""
    client: OAuthClient | None = None
    header: str = ""  # WWW-Authenticate of the refusal that led to it

    def secrets(self) -> tuple[str, ...]:
        """The tokens, and the secret of our client."""
        return self.access, self.refresh, "" if self.client is None else self.client.secret

    def __repr__(self) -> str:
        return f"StoredLogin({self.url!r})"  # never its tokens: it may stand in a traceback


class AuthChallenge(Struct, frozen=True):
    """The refusal with which a server asked for a login, or for more than this login allows."""

    status: int
    header: str = ""  # WWW-Authenticate

    @property
    def is_step(self) -> bool:
        """Whether there is a login whose scope is too small."""
        return self.status == 403


class _TokenResponse(Struct):
    access_token: str
    expires_in: float | None = None
    refresh_token: str = ""
    scope: str = ""


class _ErrorResponse(Struct):
    error: str = ""


class TokenSource:
    """The login to one server at one address, for all its connections."""

    def __init__(
        self,
        name: str,
        url: str,
        store: "LoginStore",
        recall: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.url = url
        self.auth_hosts: Sequence[str] = ()  # hosts that a renewal may go to wherever they are
        self.challenge: AuthChallenge | None = None  # the last refusal, until a request succeeds
        self._store = store
        self._recall = recall
        self._stamp: FileStamp | None = None
        self._known: StoredLogin | None = None
        self._renewal: asyncio.Task[StoredLogin] | None = None
        self._not_before = 0.0
        self._fresh_until = 0.0

    @property
    def login(self) -> StoredLogin | None:
        """The stored login; also one that another process has just written."""
        stamp = self._store.stamp(self.name, self.url)
        if stamp != self._stamp:
            self._known = self._store.read(self.name, self.url)
            if self._known is not None:
                self._recall(self._known.secrets())
            self._stamp = stamp
            self.challenge = None
            self._not_before = 0.0
        return self._known

    @property
    def state(self) -> str:
        """needed, logged in; nothing for a server that never asked for a login."""
        login = self.login
        if self.challenge is not None or (login is not None and not login.access):
            return "needed"
        return "logged in" if login is not None else ""

    async def token(self) -> str:
        """Return the token to send; nothing if nobody has logged in.

        Raises ToolError if the login has expired.
        """
        login = self.login
        if login is None:
            return ""
        if not login.access:
            raise login_needed(self.name, "wants a new login, the last one is over")
        now = time.time()
        if not login.refresh or login.until is None or now < login.until - RENEW_EARLY_S:
            return login.access
        try:
            return (await self._renew_once(login)).access
        except ToolError as error:
            if error.retryable and now < login.until:
                return login.access  # it is still valid
            raise

    async def replacement(self, refused: str) -> str:
        """Return the token to send instead of a refused one; nothing if there is none. Raises ToolError."""
        login = self.login
        if login is None or not login.access:
            return ""
        if login.access != refused:
            return login.access  # it was renewed meanwhile
        if not login.refresh or time.monotonic() < self._fresh_until:
            return ""  # a server that refuses what was just renewed refuses the next one, too
        return (await self._renew_once(login)).access

    def note_response(self, status: int, header: str) -> None:
        """Keep or clear the challenge after an answer.

        One for more scope stays until there is another login.
        """
        if status == 401 or (status == 403 and "insufficient_scope" in header):
            self.challenge = AuthChallenge(status, header)
        elif status < 400 and self.challenge is not None and not self.challenge.is_step:
            self.challenge = None

    async def close(self) -> None:
        """Wait for a renewal: the old token may be invalid already, and the new one is not stored yet."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal], timeout=RENEW_TIMEOUT_S)

    async def _renew_once(self, login: StoredLogin) -> StoredLogin:
        """Renew the tokens, once for all who wait; the renewal goes on when they are cancelled."""
        if self._renewal is None:
            if time.monotonic() < self._not_before:
                raise self._renewal_failed("it failed a moment ago")
            self._renewal = asyncio.get_running_loop().create_task(self._renew(login))
            self._renewal.add_done_callback(self._on_renewal_done)
        return await asyncio.shield(self._renewal)

    def _on_renewal_done(self, task: "asyncio.Task[StoredLogin]") -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # retrieved: perhaps nobody waits any more

    async def _renew(self, login: StoredLogin) -> StoredLogin:
        import httpx2  # slow to import, and imported already when a token is renewed

        from afoot.providers.upstream.oauth.endpoint_guard import (
            EndpointGuard,
            GuardedTransport,
            UnsafeEndpoint,
        )
        from afoot.providers.upstream.transport.http import ResponseTooLarge, read_body

        form = {"grant_type": "refresh_token", "refresh_token": login.refresh}
        if login.resource:
            form["resource"] = login.resource
        headers = {"accept": "application/json", **_client_authentication(login.client, form)}
        try:
            transport = GuardedTransport(EndpointGuard(self.url, self.auth_hosts))
            async with (
                asyncio.timeout(RENEW_TIMEOUT_S),
                httpx2.AsyncClient(timeout=RENEW_TIMEOUT_S, transport=transport) as web,
                web.stream("POST", login.token_url, data=form, headers=headers) as response,
            ):
                body = await read_body(response, MAX_TOKEN_BYTES)
        except (httpx2.HTTPError, httpx2.InvalidURL, ResponseTooLarge, TimeoutError) as error:
            self._not_before = time.monotonic() + RETRY_S
            why = str(error) if isinstance(error, UnsafeEndpoint) else type(error).__name__
            raise self._renewal_failed(why) from None
        if response.status_code != 200:
            return self._on_refusal(login, response.status_code, body)
        try:
            token = json.decode(body, type=_TokenResponse, strict=False)
        except (DecodeError, UnicodeDecodeError):
            raise self._renewal_failed("the answer is no token") from None
        self._fresh_until = time.monotonic() + RETRY_S
        until = None if token.expires_in is None else time.time() + token.expires_in
        fresh = replace(login, access=token.access_token, until=until, scope=token.scope or login.scope)
        self._keep(replace(fresh, refresh=token.refresh_token or login.refresh), login)
        return self._known or fresh

    def _on_refusal(self, login: StoredLogin, status: int, body: bytes) -> StoredLogin:
        if status < 400 or status >= 500 or status in RETRY_STATUSES:
            self._not_before = time.monotonic() + RETRY_S
            raise self._renewal_failed(f"HTTP status {status}")
        now = self.login
        if now is not None and now.access and now.refresh != login.refresh:
            return now  # another process renewed it first, which made our refresh token invalid
        try:
            why = json.decode(body, type=_ErrorResponse).error
        except (DecodeError, UnicodeDecodeError):
            why = ""
        log.warning("server %s: its login is over (%s)", self.name, why or f"HTTP status {status}")
        client = None if why in ("invalid_client", "unauthorized_client") else login.client
        self._keep(StoredLogin(login.url, scope=login.scope, client=client, header=login.header), login)
        raise login_needed(self.name, "wants a new login, the last one is over")

    def _keep(self, login: StoredLogin, before: StoredLogin) -> None:
        """Store a renewed login, unless somebody has logged in or out meanwhile."""
        now = self.login
        if now is None or (now.access, now.refresh) != (before.access, before.refresh):
            return
        try:
            self._store.write(self.name, login)
        except CallerError as error:
            log.warning("server %s: its login is renewed, but not kept: %s", self.name, error)
        self._stamp = self._store.stamp(self.name, self.url)
        self._known = login
        self._recall(login.secrets())

    def _renewal_failed(self, why: str) -> ToolError:
        return ToolError.unavailable(f"server {self.name}: its login could not be renewed now: {why}")


def login_needed(name: str, why: str = "wants a login") -> ToolError:
    """Return the error of a call that needs a login first."""
    return ToolError.auth(f"server {name} {why}: run `afoot servers login {shlex.quote(name)}`")


class LoginStore:
    """One file for each server and address, readable by its owner alone.

    Other processes may change it, too.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or home() / "logins"

    def stamp(self, name: str, url: str) -> FileStamp:
        """Return a value that changes with the file, which is never written in place; () if there is none."""
        try:
            found = self._file(name, url).stat()
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self, name: str, url: str) -> StoredLogin | None:
        """Return the login to a server at this address; never one that belongs to another address."""
        try:
            login = json.decode(self._file(name, url).read_bytes(), type=StoredLogin)
        except FileNotFoundError:
            return None
        except (OSError, DecodeError, UnicodeDecodeError):
            log.warning("server %s: its login cannot be read: %s", name, self._file(name, url))
            return None
        return login if login.url == url else None

    def write(self, name: str, login: StoredLogin) -> None:
        """Store a login instead of the one before; raises CallerError."""
        state_folder.write_private(self._file(name, login.url), json.encode(login))

    def clear(self, name: str) -> bool:
        """Delete the logins of a server at any address; True if there was one."""
        found = list(self._folder.glob(f"{_file_prefix(name)}-*.json"))
        for file in found:
            file.unlink(missing_ok=True)
        return bool(found)

    def clear_all(self) -> list[str]:
        """Delete all logins; return the names of their servers, very long ones shortened."""
        found = sorted(self._folder.glob("*-*-*.json"))
        for file in found:
            file.unlink(missing_ok=True)
        return list(dict.fromkeys(unquote(file.stem.rsplit("-", 2)[0]) for file in found))

    def _file(self, name: str, url: str) -> Path:
        return self._folder / f"{_file_prefix(name)}-{_digest(url)}.json"


def _client_authentication(client: OAuthClient | None, form: dict[str, str]) -> dict[str, str]:
    """Return the headers that authenticate our client, or add it to the form (RFC 6749, 2.3.1)."""
    if client is None:
        return {}
    if client.method == "client_secret_basic" and client.secret:
        words = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        form["client_id"] = client.id
        return {"authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    form["client_id"] = client.id
    if client.method == "client_secret_post" and client.secret:
        form["client_secret"] = client.secret
    return {}


def _file_prefix(name: str) -> str:
    """Return a file name for a server: a long name is shortened, and stays unique by its digest."""
    return f"{quote(name, safe='')[:80]}-{_digest(name)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
