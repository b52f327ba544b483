"""Carries messages between one client on a pipe and the gateway, whichever one that is at the time."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from afoot.bridge.finding import Finder, NoGateway
from afoot.bridge.http import Answer, Broken, Unreachable
from afoot.bridge.link import Link
from afoot.bridge.pending import Pending
from afoot.bridge.questions import Questions
from afoot.bridge.session import Session
from afoot.bridge.subscription import Subscription
from afoot.bridge.way import LOOK_S, Way
from afoot.errors import CallerError
from afoot.pipes import TooLong, line
from afoot.wire import jsonrpc, mcp, mcp_2025
from afoot.wire.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Envelope, Fault, Id
from afoot.wire.messages import error

LISTEN = "subscriptions/listen"
PARTING_S = 1.0  # how long calls may go on after the end of the input
TRIES = 4
Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Relay:
    """One client, from its first line to its last."""

    def __init__(self, finder: Finder, wire: Wire, limit: int) -> None:
        self._way = Way(finder, self._arrive)
        self._reader, self._writer = wire
        self._limit = limit
        self._session = Session()
        self._questions = Questions()
        self._renewing = asyncio.Lock()
        self._attending: asyncio.Task[None] | None = None
        self._modern: bool | None = None  # settled by the first request
        self._open: dict[Id, Pending] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = asyncio.Event()  # the client reads no more

    async def run(self, stop: asyncio.Event) -> None:
        """Carry until the client closes its end, or until `stop`; raises CallerError: no gateway."""
        ends = [asyncio.create_task(wait()) for wait in (stop.wait, self._left.wait)]
        reading = asyncio.create_task(self._read())
        await asyncio.wait([reading, *ends], return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            task.cancel()
        await self._close(is_patient=reading.done() and not self._left.is_set())
        if not reading.cancel():
            await reading

    async def _read(self) -> None:
        await self._way.get()  # a host sees at once that there is none, and can be made
        while True:
            try:
                text = await line(self._reader)
            except TooLong:
                fault = Fault(PARSE_ERROR, f"line over {self._limit} bytes (raise max_body_bytes)")
                await self._write([error(fault)])
                continue
            if text is None:
                return
            if text.strip():
                await self._take(text.strip())

    async def _take(self, text: bytes) -> None:
        try:
            message = jsonrpc.read(text)
            if not message.is_request:
                self._heed(text, message)
                return
            pending = Pending(text, message, modern=self._settle(message))
        except Fault as fault:
            await self._write([error(fault)])
            return
        self._open[pending.id] = pending
        if not pending.modern:
            self._session.heard(text, message)
        pending.task = self._spawn(self._answer(pending))
        pending.task.add_done_callback(lambda _: self._open.pop(pending.id))
        if pending.method == "initialize":  # clients may send the next line before its answer
            await asyncio.wait([pending.task])

    def _settle(self, message: Envelope) -> bool:
        """Whether this request is of 2026-07-28; the first one settles it for all. Raises Fault."""
        assert isinstance(message.id, int | str)
        modern = message.method != "initialize" and mcp.is_modern(bytes(message.params))
        if self._modern is None:
            self._modern = modern
        try:
            if message.id in self._open:
                raise Fault(INVALID_REQUEST, f"id: {message.id!r} is the id of a request that still runs")
            if self._modern and message.method == "initialize":
                raise mcp.unsupported(mcp_2025.read_hello(message).protocolVersion)
            if modern and not self._modern:
                text = "this connection began with initialize; it speaks the handshake era"
                raise Fault(INVALID_REQUEST, text)
        except Fault as fault:
            fault.id = message.id
            raise
        return self._modern

    def _heed(self, text: bytes, message: Envelope) -> None:
        """A notification, or an answer to a question; nobody waits for an answer to these."""
        cancelled = None
        if message.method == "notifications/cancelled":
            with suppress(Fault):
                cancelled = self._open.get(mcp_2025.read_cancelled(message).requestId or "")
        if cancelled is not None:
            cancelled.is_cancelled = True
        if message.is_response:
            answer = self._questions.answered(message, self._session.id)
            if answer is not None:
                self._spawn(self._tell(answer, None))
        elif not self._modern:
            self._spawn(self._tell(text, cancelled))
        elif cancelled is not None and cancelled.task is not None:
            cancelled.task.cancel()  # closing its connection is the cancel (X1)

    async def _tell(self, text: bytes, cancelled: Pending | None) -> None:
        link = self._way.link
        with suppress(Unreachable, Broken):
            if link is not None and self._session.id:
                (await self._session.post(link, text)).close()
        # Without a frame of it the request may yet be behind its cancel; a closed connection is one too.
        if cancelled is not None and cancelled.task is not None and not cancelled.is_streaming:
            cancelled.task.cancel()

    async def _answer(self, pending: Pending) -> None:
        """See a request to its end, and answer for the gateway if that could not."""
        is_listening = pending.modern and pending.method == LISTEN
        try:
            await (self._listen(pending) if is_listening else self._carry(pending))
            if not pending.is_over:
                raise Broken("the stream ended")
        except CallerError as why:
            await self._write([] if pending.is_cancelled else [pending.unreached(str(why))])
        except Broken:
            await self._write([] if pending.is_over else [*self._questions.lost(pending.id), pending.lost()])

    async def _carry(self, pending: Pending) -> None:
        """Send a request and pass on what comes; raises CallerError, Broken."""
        for _ in range(TRIES):
            link, session = await self._way.get(), self._session.id
            try:
                answer = await self._send(link, pending)
            except Unreachable:  # nothing was sent
                self._way.lose(link)
                continue
            except Broken:
                if not pending.is_safe:
                    raise
                await asyncio.sleep(LOOK_S)
                continue
            try:
                if not pending.modern and answer.status == 404 and self._session.is_open:
                    await self._renew(link, session)
                    continue
                await self._pass_on(answer, pending, session)
                return
            finally:
                answer.close()
        raise NoGateway("the gateway comes and goes; see gateway.log in the state folder")

    async def _send(self, link: Link, pending: Pending) -> Answer:
        if pending.modern:
            return await link.post(pending.line, method=pending.method, name=pending.name)
        return await self._session.post(link, pending.line)

    async def _pass_on(self, answer: Answer, pending: Pending, session: str) -> None:
        kind = answer.headers.get("content-type", "")
        if answer.status >= 500 and not kind.startswith("application/json"):
            await self._write([pending.failed(answer.status)])
            return
        async for frames in answer.messages():
            shown = pending.pass_on(frames)
            if not pending.modern:
                shown = self._questions.show(shown, session, pending.id)
            if pending.method == "initialize" and pending.last is not None and pending.last.result:
                self._session.welcomed(answer, pending.last.result)
                self._attend()
            await self._write(shown)

    async def _listen(self, pending: Pending) -> None:
        """A request for changes, repeated to every gateway that comes; raises CallerError."""
        await self._way.get()
        subscription = Subscription(pending)
        while not subscription.is_over:
            link = await self._way.found()
            with suppress(Unreachable, Broken):
                answer = await self._send(link, pending)
                try:
                    async for frames in answer.messages():
                        await self._write(subscription.show(frames))
                finally:
                    answer.close()
            if not subscription.is_over:
                await asyncio.sleep(LOOK_S)

    async def _arrive(self, link: Link) -> None:
        """A new gateway knows nothing of us: open the client's session there; raises Unreachable, Broken."""
        if self._session.is_open:
            self._spawn(self._write(await self._session.renew(link)))
            self._attend()

    async def _renew(self, link: Link, old: str) -> None:
        """The gateway has forgotten the session; another request may have renewed it already."""
        async with self._renewing:
            if self._session.id == old:
                self._spawn(self._write(await self._session.renew(link)))
                self._attend()

    def _attend(self) -> None:
        """Follow the session's own stream, and no longer that of the one before."""
        if self._attending is not None:
            self._attending.cancel()
        self._attending = self._spawn(self._follow())

    async def _follow(self) -> None:
        while True:
            link = await self._way.found()
            with suppress(Unreachable, Broken):
                answer = await self._session.listen(link)
                try:
                    if answer.status == 200:
                        async for frames in answer.messages():
                            await self._write(frames)
                finally:
                    answer.close()
            await asyncio.sleep(LOOK_S)

    async def _write(self, frames: list[bytes]) -> None:
        """Write lines, waiting while the pipe is full: so much is held back, and no more."""
        if not frames:
            return
        try:
            self._writer.write(b"".join([frame + b"\n" for frame in frames]))
            await self._writer.drain()
        except OSError:
            self._left.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _close(self, *, is_patient: bool) -> None:
        """End with the client: what it has open ends too (X1)."""
        open_now = [pending.task for pending in self._open.values() if pending.method != LISTEN]
        waited = [task for task in open_now if task is not None]
        if waited and is_patient:  # whoever pipes requests in may still read their answers
            await asyncio.wait(waited, timeout=PARTING_S)
        if self._session.is_open and self._way.link is not None:
            with suppress(Unreachable, Broken, TimeoutError):
                async with asyncio.timeout(PARTING_S):
                    await self._session.end(self._way.link)
        self._way.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
