"""A server behind Streamable HTTP: one POST for each request, whose stream carries what belongs to it."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

import httpx2

from afoot.config import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.carrier import Exchange, Lost, Receive
from afoot.providers.upstream.record import Record
from afoot.providers.upstream.web import UNREACHED, TooLarge, Web, kind, whole
from afoot.wire import client, client_reading
from afoot.wire.sse import Parser

SESSION: Final = "mcp-session-id"
AGAIN_S: Final = (1.0, 30.0)  # before a broken stream is taken up again, where the server does not say
RESUMES: Final = 5  # attempts in a row to take up a call's stream
MOMENT_S: Final = 2.0  # for what is told at the end


class Http:
    """Carries messages to a URL. In the handshake era there is a session, and a stream beside the calls."""

    has_streams: Final = True
    pid: Final[int | None] = None

    def __init__(self, server: Server, record: Record, max_bytes: int, auth: httpx2.Auth | None) -> None:
        self.version = ""
        self._web = Web(record.server, server, auth)
        self._record = record
        self._max_bytes = max_bytes
        self._session = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._carrying: set[asyncio.Task[Any]] = set()
        self._is_closed = False
        self._receive: Receive | None = None
        self._lost: Lost | None = None

    async def open(self, receive: Receive, lost: Lost) -> None:
        """Nothing is sent yet."""
        self._receive, self._lost = receive, lost

    async def carry(self, exchange: Exchange, body: bytes, headers: Mapping[str, str]) -> None:
        """Post a request and read its stream, taken up again if it breaks, until the answer is there."""
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        if exchange.method == "initialize":
            self._session = ""
        try:
            await self._post(exchange, body, headers)
        except TooLarge:
            raise ToolError.internal(
                f"server {self._record.server} sent more than {self._max_bytes} bytes", code="too_large"
            ) from None
        except asyncio.CancelledError:
            if self._is_closed and task.uncancel() == 0:  # it was `close` who cancelled, and nobody else
                raise RunnerDied(f"the connection to server {self._record.server} was closed") from None
            raise
        finally:
            self._carrying.discard(task)

    async def tell(self, body: bytes) -> None:
        """Post what has no answer; raises ToolError, RunnerDied."""
        try:
            async with self._web.stream("POST", self._headers(), body) as response:
                if response.status_code >= 300:
                    await self._web.refused(response)
        except httpx2.HTTPError as error:
            raise self._died(error) from None

    def send(self, body: bytes) -> None:
        """Post what has no answer; what goes wrong is noted."""
        self._spawn(self._tell_or_note(body))

    def listen(self) -> None:
        """Open the stream for what belongs to no request."""
        self._spawn(self._hear())

    async def close(self) -> None:
        """End the session; requests under way end too."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in (*self._tasks, *self._carrying):
            task.cancel()
        if self._session:
            with suppress(httpx2.HTTPError, TimeoutError, ToolError):
                async with asyncio.timeout(MOMENT_S), self._web.stream("DELETE", self._headers()):
                    pass
        await self._web.close()

    async def _post(self, exchange: Exchange, body: bytes, headers: Mapping[str, str]) -> None:
        parser = Parser(self._max_bytes)
        error: Exception | None = None
        is_opening = exchange.method == "initialize"  # it settles the version, and has none yet
        try:
            sent = headers if is_opening else {**self._headers(), **headers}
            async with self._web.stream("POST", sent, body) as response:
                if is_opening and response.is_success:
                    self._session = response.headers.get(SESSION, "")
                if response.is_success:
                    await self._read(exchange, response, parser)
                else:
                    await self._refused(exchange, response)
        except httpx2.HTTPError as broken:
            error = broken
        if not exchange.answer.done():
            if not parser.last_id or self.version == client.MODERN:
                raise self._died(error)
            await self._resume(exchange, parser)

    async def _resume(self, exchange: Exchange, parser: Parser) -> None:
        """Take up a broken stream behind the last event that came; only the handshake era can."""
        failures = 0
        while not exchange.answer.done():
            if failures == RESUMES:
                raise self._unresumed()
            await asyncio.sleep(_pause(parser, failures))
            failures += 1
            last, resumed = parser.last_id, Parser(self._max_bytes)
            resumed.last_id, resumed.retry_ms = last, parser.retry_ms
            try:
                async with self._web.stream("GET", self._headers({"last-event-id": last})) as response:
                    if 400 <= response.status_code < 500:  # also where it has forgotten the session
                        raise self._unresumed(response.status_code)
                    await self._read(exchange, response, resumed)
            except (httpx2.HTTPError, ToolError) as error:
                self._record.say(f"a stream could not be resumed: {error}")
            if resumed.last_id != last:
                failures = 0
            parser = resumed

    async def _read(self, exchange: Exchange, response: httpx2.Response, parser: Parser) -> None:
        """All that comes on a request's own stream, up to its answer."""
        assert self._receive is not None
        media = kind(response)
        if media == "text/event-stream":
            parts = response.aiter_bytes()
            async for part in parts:
                for event in parser.feed(part):
                    if event.data:
                        self._receive(event.data.encode(), exchange)
                if exchange.answer.done():
                    self._web.drain(response, parts)
                    return
                if parser.dropped:
                    raise TooLarge
        elif media == "application/json":
            self._receive(await whole(response, self._max_bytes), exchange)
            if not exchange.answer.done():
                raise ToolError.internal(f"server {self._record.server} gave no answer that could be read")
        else:
            what = f"HTTP status {response.status_code} and {media or 'no body'}"
            raise ToolError.internal(f"server {self._record.server} answered a request with {what}")

    async def _refused(self, exchange: Exchange, response: httpx2.Response) -> None:
        """A request was not taken; raises ToolError, or RunnerDied where it was for an older session."""
        self._check_session(response, exchange)
        try:
            message = await self._web.refused(response)
            why = client_reading.fault(message.error).message
        except ToolError as error:
            message, why = error, error.message
        # Servers made from the examples do not say 404.
        if response.status_code == 400 and self._session and "session" in why.lower():
            raise self._forgotten()
        if isinstance(message, ToolError):
            raise message
        exchange.answer.set_result(message)

    async def _hear(self) -> None:
        """The stream beside the calls: opened again whenever it ends, unless the server has none."""
        assert self._receive is not None
        failures, parser = 0, Parser(self._max_bytes)
        while True:
            headers = self._headers({"last-event-id": parser.last_id} if parser.last_id else {})
            heard = 0
            try:
                async with self._web.stream("GET", headers) as response:
                    self._check_session(response, None)
                    if response.status_code >= 500:
                        await self._web.refused(response)
                    if not response.is_success or kind(response) != "text/event-stream":
                        return
                    async for part in response.aiter_bytes():
                        for event in parser.feed(part):
                            heard += 1
                            self._receive(event.data.encode(), None)
            except (httpx2.HTTPError, ToolError) as error:
                self._record.say(f"the stream beside the calls broke: {error}")
            except RunnerDied:
                return
            failures = 0 if heard else failures + 1
            await asyncio.sleep(_pause(parser, failures))

    def _check_session(self, response: httpx2.Response, exchange: Exchange | None) -> None:
        """Raises RunnerDied if the server has forgotten the session: the request was not looked at."""
        is_opening = exchange is not None and exchange.method == "initialize"
        if response.status_code == 404 and self._session and not is_opening:
            raise self._forgotten()

    def _forgotten(self) -> RunnerDied:
        assert self._lost is not None
        self._session = ""
        self._lost(f"server {self._record.server} ended the session")
        return RunnerDied(f"server {self._record.server} ended the session", began=False)

    def _unresumed(self, status: int | None = None) -> RunnerDied:
        why = f" (HTTP status {status})" if status else ""
        return RunnerDied(f"the stream of server {self._record.server} broke and could not be resumed{why}")

    def _died(self, error: Exception | None) -> RunnerDied:
        name = self._record.server
        if isinstance(error, UNREACHED):
            assert self._lost is not None
            self._lost(f"server {name} cannot be reached: {error}")
            return RunnerDied(f"server {name} cannot be reached: {error}", began=False)
        how = f"broke: {error or type(error).__name__}" if error else "ended without an answer"
        return RunnerDied(f"the stream of server {name} {how}")

    def _headers(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        found = {SESSION: self._session} if self._session else {}
        if self.version:
            found["mcp-protocol-version"] = self.version
        return {**found, **(more or {})}

    async def _tell_or_note(self, body: bytes) -> None:
        try:
            await self.tell(body)
        except (RunnerDied, ToolError) as error:
            self._record.say(f"a message was not taken: {error}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _pause(parser: Parser, failures: int) -> float:
    """How long to wait before a stream is asked for again: as the server says, or longer each time."""
    if parser.retry_ms is not None and failures <= 1:
        return parser.retry_ms / 1000
    return min(AGAIN_S[0] * 2 ** max(0, failures - 1), AGAIN_S[1])
