"""The login to a server: kept, sent along with requests, and renewed when it is over (U7).

Nobody is asked for anything here. The SDK's own provider is not used for requests: it makes them wait for
each other until their answers begin, and after a restart it does not know when a token ends, nor where to
renew it.
"""

import asyncio
import base64
import logging
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from afoot.errors import CallerError, ToolError
from afoot.providers.upstream.oauth_store import Client, Login, Stamp, Store, login_needed

if TYPE_CHECKING:
    import httpx2

EARLY_S: Final = 10.0  # a token that ends so soon is renewed first
RENEW_S: Final = 30.0
AGAIN_S: Final = 5.0  # between renewals that fail, or do not help
BUSY: Final = (408, 425, 429)  # what says "later", unlike other answers below 500

log = logging.getLogger("afoot.servers")


class Challenge(Struct, frozen=True):
    """How a server said that it wants a login, or more than this login gives."""

    status: int
    header: str = ""  # WWW-Authenticate

    @property
    def is_step(self) -> bool:
        """Whether there is a login that only reaches too little."""
        return self.status == 403


class _Token(Struct):
    access_token: str
    expires_in: float | None = None
    refresh_token: str = ""
    scope: str = ""


class _Refusal(Struct):
    error: str = ""


class Access:
    """The login to one server at one address, for all its connections."""

    def __init__(self, name: str, url: str, store: Store) -> None:
        self.name, self.url = name, url
        self.challenge: Challenge | None = None  # what it wanted last, and did not get
        self._store = store
        self._stamp: Stamp | None = None
        self._known: Login | None = None
        self._renewal: asyncio.Task[Login] | None = None
        self._not_before = 0.0
        self._fresh_until = 0.0

    @property
    def login(self) -> Login | None:
        """What is kept; also what another process has just written."""
        stamp = self._store.stamp(self.name, self.url)
        if stamp != self._stamp:
            self._known, self._stamp = self._store.read(self.name, self.url), stamp
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
        """What to send along; nothing if nobody has logged in. Raises ToolError if that login is over."""
        login = self.login
        if login is None:
            return ""
        if not login.access:
            raise login_needed(self.name, "wants a new login, the last one is over")
        now = time.time()
        if not login.refresh or login.until is None or now < login.until - EARLY_S:
            return login.access
        try:
            return (await self._renewed(login)).access
        except ToolError as error:
            if error.retryable and now < login.until:
                return login.access  # it still counts
            raise

    async def another(self, refused: str) -> str:
        """What to send instead of a token that was refused; nothing if there is none. Raises ToolError."""
        login = self.login
        if login is None or not login.access:
            return ""
        if login.access != refused:
            return login.access  # somebody has renewed it meanwhile
        if not login.refresh or time.monotonic() < self._fresh_until:
            return ""  # a server that refuses what was just renewed refuses the next one, too
        return (await self._renewed(login)).access

    def heard(self, status: int, header: str) -> None:
        """The server has answered. What it wants beyond this login stays wanted until there is another."""
        if status == 401 or (status == 403 and "insufficient_scope" in header):
            self.challenge = Challenge(status, header)
        elif status < 400 and self.challenge is not None and not self.challenge.is_step:
            self.challenge = None

    async def close(self) -> None:
        """Let a renewal come to its end: the old token may count no more, and the new one is not yet kept."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal], timeout=RENEW_S)

    async def _renewed(self, login: Login) -> Login:
        """One renewal for all who wait; it goes on when they are cancelled."""
        if self._renewal is None:
            if time.monotonic() < self._not_before:
                raise self._unrenewed("it failed a moment ago")
            self._renewal = asyncio.get_running_loop().create_task(self._renew(login))
            self._renewal.add_done_callback(self._is_renewed)
        return await asyncio.shield(self._renewal)

    def _is_renewed(self, task: "asyncio.Task[Login]") -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # looked at: perhaps nobody waits any more

    async def _renew(self, login: Login) -> Login:
        import httpx2  # slow, and long there when it is needed

        form = {"grant_type": "refresh_token", "refresh_token": login.refresh}
        if login.resource:
            form["resource"] = login.resource
        headers = {"accept": "application/json", **_shown(login.client, form)}
        try:
            async with asyncio.timeout(RENEW_S), httpx2.AsyncClient(timeout=RENEW_S) as web:
                response = await web.post(login.token_url, data=form, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            self._not_before = time.monotonic() + AGAIN_S
            raise self._unrenewed(type(error).__name__) from None
        if response.status_code != 200:
            return self._refused(login, response)
        try:
            token = json.decode(response.content, type=_Token, strict=False)
        except (DecodeError, UnicodeDecodeError):
            raise self._unrenewed("the answer is no token") from None
        self._fresh_until = time.monotonic() + AGAIN_S
        until = None if token.expires_in is None else time.time() + token.expires_in
        fresh = replace(login, access=token.access_token, until=until, scope=token.scope or login.scope)
        self._keep(replace(fresh, refresh=token.refresh_token or login.refresh), login)
        return self._known or fresh

    def _refused(self, login: Login, response: "httpx2.Response") -> Login:
        status = response.status_code
        if status < 400 or status >= 500 or status in BUSY:
            self._not_before = time.monotonic() + AGAIN_S
            raise self._unrenewed(f"HTTP status {status}")
        now = self.login
        if now is not None and now.access and now.refresh != login.refresh:
            return now  # another process was faster, and has made this one invalid
        try:
            why = json.decode(response.content, type=_Refusal).error
        except (DecodeError, UnicodeDecodeError):
            why = ""
        log.warning("server %s: its login is over (%s)", self.name, why or f"HTTP status {status}")
        client = None if why in ("invalid_client", "unauthorized_client") else login.client
        self._keep(Login(login.url, scope=login.scope, client=client, header=login.header), login)
        raise login_needed(self.name, "wants a new login, the last one is over")

    def _keep(self, login: Login, before: Login) -> None:
        """Unless somebody has logged in, or out, meanwhile: that counts, and this does not."""
        now = self.login
        if now is None or (now.access, now.refresh) != (before.access, before.refresh):
            return
        try:
            self._store.write(self.name, login)
        except CallerError as error:
            log.warning("server %s: its login is renewed, but not kept: %s", self.name, error)
        self._known, self._stamp = login, self._store.stamp(self.name, self.url)

    def _unrenewed(self, why: str) -> ToolError:
        return ToolError.unavailable(f"server {self.name}: its login could not be renewed now: {why}")


def _shown(client: Client | None, form: dict[str, str]) -> dict[str, str]:
    """The headers that say who asks; where the form says it, it is put there (RFC 6749, 2.3.1)."""
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
