"""Requests over HTTP to one address: redirects within its origin, and what its refusals mean."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import httpx2

from afoot.config import Server
from afoot.errors import ToolError
from afoot.providers.hygiene import line
from afoot.providers.upstream.oauth_store import login_needed
from afoot.wire import client_reading
from afoot.wire.jsonrpc import Envelope, Fault

CONNECT_S: Final = 10.0
REDIRECTS: Final = 5
DRAIN_S: Final = 1.0
REFUSAL_BYTES: Final = 1024 * 1024  # of a body that only says no
KEPT_S: Final = 3.0  # an idle connection; many servers close theirs after five, and we must be first
ACCEPT: Final = {
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",  # a compressed stream of events may wait for more of them
    "content-type": "application/json",
}
# What shows that a request never reached the server.
UNREACHED: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)


class TooLarge(Exception):
    """An answer is longer than is taken."""


class Web:
    """One address and the connections to it. No answer is too late here: the engine has the clocks."""

    def __init__(self, name: str, server: Server, auth: httpx2.Auth | None) -> None:
        self.name = name
        self._url = server.url
        self._has_login = auth is not None or not any(
            key.lower() == "authorization" for key in server.headers
        )
        self._draining: dict[httpx2.Response, asyncio.Task[None]] = {}
        try:
            self._client = httpx2.AsyncClient(
                auth=auth,
                headers=server.headers,
                timeout=httpx2.Timeout(None, connect=CONNECT_S),
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEPT_S),
            )
            httpx2.URL(server.url)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise ToolError.validation(f"server {name}: {error}") from None

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """A response whose body is still to come; leaving closes it, and so calls the request off."""
        request = self._client.build_request(method, self._url, headers={**ACCEPT, **headers}, content=body)
        response = await self._client.send(request, stream=True, follow_redirects=False)
        for _ in range(REDIRECTS):
            following = _within_origin(response)
            if following is None:
                break
            await response.aclose()
            response = await self._client.send(following, stream=True, follow_redirects=False)
        try:
            yield response
        finally:
            if response not in self._draining:
                await response.aclose()

    def drain(self, response: httpx2.Response, rest: AsyncIterator[bytes]) -> None:
        """Nothing more is wanted of this one; its end is read, if it comes soon, to keep the connection."""
        task = asyncio.get_running_loop().create_task(_drained(response, rest))
        self._draining[response] = task
        task.add_done_callback(lambda _: self._draining.pop(response, None))

    async def close(self) -> None:
        """Close all connections."""
        for task in tuple(self._draining.values()):
            task.cancel()
        await self._client.aclose()

    async def refused(self, response: httpx2.Response) -> Envelope:
        """The protocol's error in a refusal; raises ToolError where there is only a status."""
        status = response.status_code
        if status == 401 and self._has_login:
            raise login_needed(self.name)
        if status == 401:
            raise ToolError.auth(f"server {self.name} refuses the Authorization header of its settings")
        if status == 403 and "insufficient_scope" in response.headers.get("www-authenticate", ""):
            raise login_needed(self.name, "wants more than its login allows")
        text = b""
        with suppress(Fault, TooLarge):
            text = await whole(response, REFUSAL_BYTES)
            message = client_reading.read(text)
            if message.error:
                return message
        raise ToolError.from_status(status, self._reason(response, text), retry_after=_retry_after(response))

    def _reason(self, response: httpx2.Response, text: bytes) -> str:
        said = line(text.decode("utf-8", "replace"), 200) or ""
        if response.next_request is not None:
            location = response.next_request.url.copy_with(userinfo=b"", query=None, fragment=None)
            said = f"a redirect to {location}, which is another place; use that address if it is meant"
        return f"server {self.name} answered with HTTP status {response.status_code}" + (said and f": {said}")


async def _drained(response: httpx2.Response, rest: AsyncIterator[bytes]) -> None:
    try:
        with suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(DRAIN_S):
                async for _ in rest:
                    pass
    finally:
        await response.aclose()


async def whole(response: httpx2.Response, limit: int) -> bytes:
    """A body that is read to its end; raises TooLarge."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLarge
    return b"".join(parts)


def kind(response: httpx2.Response) -> str:
    """The media type of a body."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _within_origin(response: httpx2.Response) -> httpx2.Request | None:
    """Where a redirect leads, if it is the same message to the same origin."""
    following, sent = response.next_request, response.request
    if following is None or following.method != sent.method:
        return None
    there, here = following.url, sent.url
    if there.userinfo and there.userinfo != here.userinfo:
        return None
    is_same = (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)
    is_safer = (here.scheme, there.scheme, here.port, there.port) == ("http", "https", None, None)
    return following if is_same or (is_safer and there.host == here.host) else None


def _retry_after(response: httpx2.Response) -> float | None:
    seconds = response.headers.get("retry-after", "")
    return float(seconds) if seconds.isascii() and seconds.isdigit() else None
