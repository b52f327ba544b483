"""`HttpTransport` carries messages over Streamable HTTP: one POST, and its stream, for each request.

`HttpEndpoint` is one address and its connections: redirects within its origin, and the meaning of refusals.
`BearerAuth` sends the token of a login along with each request (U7). Importing httpx2 is slow: this module
is imported only where a server has a `url`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import httpx2

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.content import clean_line
from afoot.providers.upstream.oauth.tokens import TokenSource, login_needed
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import SLICE_S, OnLost, PendingRequest, Receive
from afoot.wire.client import incoming, outgoing
from afoot.wire.framing import EventParser
from afoot.wire.jsonrpc import Envelope, Fault

CONNECT_S: Final = 10.0
MAX_REDIRECTS: Final = 5
DRAIN_S: Final = 1.0
REFUSAL_BYTES: Final = 1024 * 1024  # of a body that only says no
KEEPALIVE_S: Final = 3.0  # of an idle connection; many servers close theirs after five, and we must be first
SESSION_HEADER: Final = "mcp-session-id"
RETRY_S: Final = (1.0, 30.0)  # before a broken stream is resumed, where the server does not say
MAX_RETRY_AFTER_S: Final = 86_400.0  # a longer Retry-After would be no number that callers can read
# Bounds of the pause that a server may ask for: 0 would keep us busy for ever.
OWN_RETRY_S: Final = (0.1, 300.0)
MAX_RESUMES: Final = 5  # attempts in a row to resume the stream of a call
CLOSE_S: Final = 2.0  # for the DELETE of the session
REASON_CHARS: Final = 200
PIECE_BYTES: Final = 2 * 1024  # of a stream of events that are handled at once
BASE_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "accept-encoding": "identity",  # a compressed stream of events may wait for more of them
    "content-type": "application/json",
}
# Errors that show that a request never reached the server.
UNREACHED: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)


class ResponseTooLarge(Exception):
    """The body of a response is longer than allowed."""


class HttpTransport:
    """Messages to one URL.

    In 2025 there is a session, and a stream for messages that belong to no request.
    """

    has_streams: Final = True
    pid: Final[int | None] = None

    def __init__(
        self, server: Server, server_log: ServerLog, max_bytes: int, auth: httpx2.Auth | None
    ) -> None:
        self.version = ""
        self._endpoint = HttpEndpoint(server_log.server, server, auth)
        self._server_log = server_log
        self._max_bytes = max_bytes
        self._session = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sending: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._receive: Receive | None = None
        self._lost: OnLost | None = None

    @property
    def has_session(self) -> bool:
        """Whether the server has opened a session; a stateless one opens none."""
        return bool(self._session)

    async def open(self, receive: Receive, lost: OnLost) -> None:
        """Keep the callbacks; nothing is sent yet."""
        self._receive = receive
        self._lost = lost

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        """Post a request and read its stream, resumed if it breaks, until the answer is there."""
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        if pending.request.method == "initialize":
            self._session = ""
        try:
            await self._post(pending, body, headers)
        except ResponseTooLarge:
            raise ToolError.internal(
                f"server {self._server_log.server} sent more than {self._max_bytes} bytes", code="too_large"
            ) from None
        except asyncio.CancelledError:
            if self._is_closed and task.uncancel() == 0:  # `close` cancelled it, and nobody else
                raise RunnerDied(f"the connection to server {self._server_log.server} was closed") from None
            raise
        finally:
            self._sending.discard(task)

    async def tell(self, body: bytes) -> None:
        """Post a message that has no answer; raises ToolError, RunnerDied."""
        try:
            async with self._endpoint.stream("POST", self._headers(), body) as response:
                if response.status_code >= 300:
                    await self._endpoint.read_refusal(response)
        except httpx2.HTTPError as error:
            raise self._stream_broke(error) from None

    def send(self, body: bytes) -> None:
        """Post a message that has no answer, in a task; a failure is only logged."""
        self._spawn(self._tell_or_log(body))

    def listen(self) -> None:
        """Open the stream for messages that belong to no request."""
        self._spawn(self._read_notifications())

    async def close(self) -> None:
        """End the session; requests in flight fail."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in (*self._tasks, *self._sending):
            task.cancel()
        if self._session:
            with suppress(httpx2.HTTPError, TimeoutError, ToolError):
                async with asyncio.timeout(CLOSE_S), self._endpoint.stream("DELETE", self._headers()):
                    pass
        await self._endpoint.close()

    async def _post(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        parser = EventParser(self._max_bytes)
        error: Exception | None = None
        is_opening = pending.request.method == "initialize"  # it negotiates the version, and has none yet
        try:
            sent = headers if is_opening else {**self._headers(), **headers}
            async with self._endpoint.stream("POST", sent, body) as response:
                if is_opening and response.is_success:
                    self._session = response.headers.get(SESSION_HEADER, "")
                if response.is_success:
                    await self._read(pending, response, parser)
                else:
                    await self._refused(pending, response)
        except httpx2.HTTPError as broken:
            error = broken
        if not pending.answer.done():
            if not parser.last_id or self.version == outgoing.VERSION_2026:
                raise self._stream_broke(error)
            await self._resume(pending, parser)

    async def _resume(self, pending: PendingRequest, parser: EventParser) -> None:
        """Resume a broken stream behind the last event that came (2025 only)."""
        failures = 0
        while not pending.answer.done():
            if failures == MAX_RESUMES:
                raise self._resume_failed()
            await asyncio.sleep(_pause(parser, failures))
            failures += 1
            last, resumed = parser.last_id, EventParser(self._max_bytes)
            resumed.last_id = last
            resumed.retry_ms = parser.retry_ms
            try:
                async with self._endpoint.stream("GET", self._headers({"last-event-id": last})) as response:
                    if 400 <= response.status_code < 500:  # also where the server has forgotten the session
                        raise self._resume_failed(response.status_code)
                    await self._read(pending, response, resumed)
            except (httpx2.HTTPError, ToolError) as error:
                self._server_log.note(f"a stream could not be resumed: {error}")
            if resumed.last_id != last:
                failures = 0
            parser = resumed

    async def _read(self, pending: PendingRequest, response: httpx2.Response, parser: EventParser) -> None:
        """Receive everything on a request's own stream, up to its answer."""
        assert self._receive is not None
        media = media_type(response)
        if media == "text/event-stream":
            parts = response.aiter_bytes()
            async for piece in _pieces(parts):
                for event in parser.feed(piece):
                    if event.data:
                        self._receive(event.data.encode(), pending)
                if pending.answer.done():
                    self._endpoint.drain(response, parts)
                    return
                if parser.dropped:
                    raise ResponseTooLarge
        elif media == "application/json":
            self._receive(await read_body(response, self._max_bytes), pending)
            if not pending.answer.done():
                raise ToolError.internal(
                    f"server {self._server_log.server} gave no answer that could be read"
                )
        else:
            what = f"HTTP status {response.status_code} and {media or 'no body'}"
            raise ToolError.internal(f"server {self._server_log.server} answered a request with {what}")

    async def _refused(self, pending: PendingRequest, response: httpx2.Response) -> None:
        """Handle a refused request; raises ToolError, or RunnerDied where its session is over."""
        self._check_session(response, pending)
        try:
            message = await self._endpoint.read_refusal(response)
            why = incoming.read_error(message.error).message
        except ToolError as error:
            message, why = error, error.message
        # Servers made from the SDK's examples answer 400 instead of 404.
        if response.status_code == 400 and self._session and "session" in why.lower():
            raise self._session_ended()
        if isinstance(message, ToolError):
            raise message
        pending.answer.set_result(message)

    async def _read_notifications(self) -> None:
        """Read messages that belong to no request on a GET stream, opened again whenever it ends."""
        assert self._receive is not None
        failures, parser = 0, EventParser(self._max_bytes)
        while True:
            headers = self._headers({"last-event-id": parser.last_id} if parser.last_id else {})
            heard = 0
            try:
                async with self._endpoint.stream("GET", headers) as response:
                    self._check_session(response, None)
                    if response.status_code >= 500:
                        await self._endpoint.read_refusal(response)
                    if not response.is_success or media_type(response) != "text/event-stream":
                        return
                    async for piece in _pieces(response.aiter_bytes()):
                        for event in parser.feed(piece):
                            heard += 1
                            self._receive(event.data.encode(), None)
            except (httpx2.HTTPError, ToolError) as error:
                self._server_log.note(f"the stream beside the calls broke: {error}")
            except RunnerDied:
                return
            failures = 0 if heard else failures + 1
            await asyncio.sleep(_pause(parser, failures))

    def _check_session(self, response: httpx2.Response, pending: PendingRequest | None) -> None:
        """Raise RunnerDied if the server has forgotten the session: it did not look at the request."""
        is_opening = pending is not None and pending.request.method == "initialize"
        if response.status_code == 404 and self._session and not is_opening:
            raise self._session_ended()

    def _session_ended(self) -> RunnerDied:
        assert self._lost is not None
        self._session = ""
        self._lost(f"server {self._server_log.server} ended the session")
        return RunnerDied(f"server {self._server_log.server} ended the session", began=False)

    def _resume_failed(self, status: int | None = None) -> RunnerDied:
        why = f" (HTTP status {status})" if status else ""
        return RunnerDied(
            f"the stream of server {self._server_log.server} broke and could not be resumed{why}"
        )

    def _stream_broke(self, error: Exception | None) -> RunnerDied:
        name = self._server_log.server
        if isinstance(error, UNREACHED):
            assert self._lost is not None
            self._lost(f"server {name} cannot be reached: {error}")
            return RunnerDied(f"server {name} cannot be reached: {error}", began=False)
        how = f"broke: {error or type(error).__name__}" if error else "ended without an answer"
        return RunnerDied(f"the stream of server {name} {how}")

    def _headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        found = {SESSION_HEADER: self._session} if self._session else {}
        if self.version:
            found["mcp-protocol-version"] = self.version
        return {**found, **(more or {})}

    async def _tell_or_log(self, body: bytes) -> None:
        try:
            await self.tell(body)
        except (RunnerDied, ToolError) as error:
            self._server_log.note(f"a message was not taken: {error}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _pause(parser: EventParser, failures: int) -> float:
    """Return the seconds before a stream is asked for again: as the server says, or longer each time."""
    if parser.retry_ms is not None and failures <= 1:
        return min(max(parser.retry_ms / 1000, OWN_RETRY_S[0]), OWN_RETRY_S[1])
    return min(RETRY_S[0] * 2 ** max(0, failures - 1), RETRY_S[1])


class HttpEndpoint:
    """One address and the connections to it. Answers have no time limit here: the engine keeps the clocks."""

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
                limits=httpx2.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S),
            )
            httpx2.URL(server.url)
        except (httpx2.InvalidURL, ValueError, TypeError) as error:
            raise ToolError.validation(f"server {name}: {error}") from None

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and give its response, whose body is still to come; leaving cancels the request."""
        request = self._client.build_request(
            method, self._url, headers={**BASE_HEADERS, **headers}, content=body
        )
        response = await self._client.send(request, stream=True, follow_redirects=False)
        for _ in range(MAX_REDIRECTS):
            following = _same_origin_redirect(response)
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
        """Read the unneeded rest of a response, if it comes soon, so that the connection can be reused."""
        task = asyncio.get_running_loop().create_task(_drain(response, rest))
        self._draining[response] = task
        task.add_done_callback(lambda _: self._draining.pop(response, None))

    async def close(self) -> None:
        """Close all connections."""
        for task in tuple(self._draining.values()):
            task.cancel()
        await self._client.aclose()

    async def read_refusal(self, response: httpx2.Response) -> Envelope:
        """Return the JSON-RPC error in a refusal; raises ToolError where there is only a status."""
        status = response.status_code
        if status == 401 and self._has_login:
            raise login_needed(self.name)
        if status == 401:
            raise ToolError.auth(f"server {self.name} refuses the Authorization header of its settings")
        if status == 403 and "insufficient_scope" in response.headers.get("www-authenticate", ""):
            raise login_needed(self.name, "wants more than its login allows")
        text = b""
        with suppress(Fault, ResponseTooLarge):
            text = await read_body(response, REFUSAL_BYTES)
            message = incoming.read_message(text)
            if message.error:
                return message
        raise ToolError.from_status(status, self._reason(response, text), retry_after=_retry_after(response))

    def _reason(self, response: httpx2.Response, text: bytes) -> str:
        said = clean_line(text.decode("utf-8", "replace"), REASON_CHARS) or ""
        if response.next_request is not None:
            location = response.next_request.url.copy_with(userinfo=b"", query=None, fragment=None)
            said = f"a redirect to {location}, which is another place; use that address if it is meant"
        return f"server {self.name} answered with HTTP status {response.status_code}" + (said and f": {said}")


async def _pieces(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a stream in small pieces; between them, all others have their turn now and then.

    One read may become megabytes of events that are each a few bytes long, or many parts without a pause.
    """
    loop = asyncio.get_running_loop()
    size, until = 0, loop.time() + SLICE_S
    async for part in parts:
        for start in range(0, len(part), PIECE_BYTES):
            piece = part[start : start + PIECE_BYTES]
            yield piece
            size += len(piece)
            if size >= PIECE_BYTES:  # a stream that carries little pays for no clock
                size = 0
                if loop.time() > until:
                    await asyncio.sleep(0)
                    until = loop.time() + SLICE_S


async def _drain(response: httpx2.Response, rest: AsyncIterator[bytes]) -> None:
    try:
        with suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(DRAIN_S):
                async for _ in _pieces(rest):
                    pass
    finally:
        await response.aclose()


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """Return the whole body of a response; raises ResponseTooLarge."""
    parts: list[bytes] = []
    size = 0
    is_packed = "content-encoding" in response.headers
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise ResponseTooLarge
        if is_packed:
            await asyncio.sleep(0)  # one read may become 64 MB in small parts, while nothing else runs
    return b"".join(parts)


def media_type(response: httpx2.Response) -> str:
    """Return the media type of a response."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _same_origin_redirect(response: httpx2.Response) -> httpx2.Request | None:
    """Return the request that a redirect asks for, if it is the same message to the same origin."""
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
    return min(float(seconds), MAX_RETRY_AFTER_S) if seconds.isascii() and seconds.isdigit() else None


class BearerAuth(httpx2.Auth):
    """Adds the token of a login to each request; a refused one is sent again with another token."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        sent = await self._tokens.token()
        if sent:
            request.headers["authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code == 401 and sent and (other := await self._tokens.replacement(sent)):
            request.headers["authorization"] = f"Bearer {other}"
            response = yield request
        self._tokens.note_response(response.status_code, response.headers.get("www-authenticate", ""))
