"""MCP over stdin and stdout: one client, a line a message; what tools print goes to stderr."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from msgspec import UNSET

from afoot.engine.bell import Bell
from afoot.errors import AfootError
from afoot.pipes import TooLong, line
from afoot.serve import tasks
from afoot.serve.conversation import Conversation
from afoot.serve.guard import PIPE
from afoot.serve.handshake import Session
from afoot.serve.listing import answer_plain, ear_for, listen, relay
from afoot.serve.modern import Modern, again
from afoot.serve.shelf_lookup import answer_modern, hold, look_up
from afoot.serve.site import Site
from afoot.serve.tasks_news import watched
from afoot.wire import jsonrpc, mcp, messages
from afoot.wire import mcp_2025 as handshake
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, Envelope, Fault, Id
from afoot.wire.shelf import LOOKUPS
from afoot.wire.tasks import METHODS

log = logging.getLogger("afoot.serve")

CALLER = PIPE
PARTING_S = 1.0  # how long calls may go on after the end of the input


class Line:
    """An outlet on the pipe that all requests share."""

    __slots__ = ("_stuck_s", "_writer", "gone", "streaming")

    def __init__(self, writer: asyncio.StreamWriter, stuck_s: float) -> None:
        self._writer = writer
        self._stuck_s = stuck_s
        self.gone = False
        self.streaming = True

    def watch(self, ring: Callable[[], object]) -> None:
        """Nothing: the end of the pipe is seen by whoever reads it."""

    async def send(self, frames: Sequence[bytes]) -> None:
        """Write frames as lines, waiting while the pipe is full."""
        try:
            async with asyncio.timeout(self._stuck_s):
                self._writer.write(b"".join([frame + b"\n" for frame in frames]))
                await self._writer.drain()
        except (TimeoutError, ConnectionError):
            self.gone = True

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Write the last frames of a request."""
        if not self.gone and (frames or last is not None):
            await self.send([*frames] if last is None else [*frames, last])

    async def keep_alive(self) -> None:
        """Nothing: a pipe needs none."""


class ModernSession:
    """A 2026-07-28 client on a pipe."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._manner = Modern(cancels=True, capped=False)
        self._talks: dict[Id, Conversation] = {}
        self._listening: dict[Id, Bell] = {}  # also what is looked up: requests without a call

    async def request(self, message: Envelope, outlet: Line) -> None:
        """Answer one request; raises Fault."""
        request = message.id
        assert isinstance(request, int | str)
        if request in self._talks or request in self._listening:
            raise Fault(INVALID_REQUEST, f"id: {request!r} is the id of a request that still runs")
        if message.method == "initialize":
            raise mcp.unsupported(handshake.read_hello(message).protocolVersion)
        if message.method == "tools/call":
            await self._call(message, request, outlet)
        elif message.method == "subscriptions/listen":
            await self._listen(message, request, outlet)
        elif message.method in LOOKUPS:
            await self._look_up(message, request, outlet)
        elif message.method in METHODS:
            await outlet.finish((), await tasks.answer(self._site, message, None, CALLER))
        else:
            mcp.read_plain(message, None)
            await self._site.settled()
            await outlet.finish((), answer_plain(self._site, message))

    def notified(self, message: Envelope) -> None:
        """Take a cancel; other notifications are dropped."""
        if message.method != "notifications/cancelled":
            return
        cancelled = handshake.read_cancelled(message)
        request = cancelled.requestId
        if request in self._talks:
            self._talks[request].cancel("caller", cancelled.reason or "the caller cancelled it")
        elif request in self._listening:
            self._listening.pop(request).crack()

    def responded(self, message: Envelope) -> None:
        """This era has no requests of ours, so nothing to answer."""
        self._site.count("answers to nothing")

    def close(self, reason: str) -> None:
        """The client has gone."""
        for talk in list(self._talks.values()):
            talk.cancel("disconnect", reason)
        for bell in self._listening.values():
            bell.crack()
        self._listening.clear()

    async def _call(self, message: Envelope, request: Id, outlet: Line) -> None:
        want = mcp.read_call(message, None)
        if want.name not in self._site.engine.catalog.known:
            bell = self._listening[request] = Bell()
            try:
                await self._site.settled()
            finally:
                self._listening.pop(request, None)
            if bell.cracked:
                return  # cancelled before there was a call (X1)
        if want.token is not UNSET and any(talk.want.token == want.token for talk in self._talks.values()):
            self._site.count("tokens used twice")
            want.token = UNSET
        talk = Conversation(self._site, want, CALLER, outlet, self._manner)
        if want.state is not None or want.key:
            await self._join(talk, request)
        else:
            talk.open()
        self._talks[request] = talk
        try:
            await talk.hold()
        finally:
            del self._talks[request]

    async def _join(self, talk: Conversation, request: Id) -> None:
        """Find the call that a request means again; a cancel that comes meanwhile counts (X1)."""
        bell = self._listening[request] = Bell()
        try:
            await again(talk)
        finally:
            self._listening.pop(request, None)
        if bell.cracked:
            talk.cancel("caller", "the caller cancelled it")

    async def _listen(self, message: Envelope, request: Id, outlet: Line) -> None:
        wanted = mcp.read_listen(message, None)
        bell = self._listening[request] = Bell()
        try:
            with await watched(self._site, message, wanted, CALLER, bell) as carried:
                ear = ear_for(wanted, bell)
                await listen(self._site, request, wanted, carried.over(outlet), ear)
        finally:
            self._listening.pop(request, None)

    async def _look_up(self, message: Envelope, request: Id, outlet: Line) -> None:
        lookup = look_up(message, mcp.read_plain(message, None), CALLER)
        bell = self._listening[request] = Bell()
        try:
            await hold(self._site, request, outlet, bell, answer_modern(self._site, lookup))
        finally:
            self._listening.pop(request, None)


class Stdio:
    """The one connection of a process that was started by its client."""

    def __init__(self, site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._site = site
        self._reader = reader
        self._line = Line(writer, site.settings.stuck_s)
        self._session: Session | ModernSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._teller: list[asyncio.Task[None]] = []  # none, or one

    async def run(self) -> None:
        """Serve until the client closes its end."""
        while not self._line.gone:
            try:
                text = await line(self._reader)
            except TooLong:
                await self._too_long()
                continue
            if text is None:
                break
            if text.strip():
                await self._message(text)
        if self._tasks and not self._line.gone:  # whoever pipes requests in may still read their answers
            await asyncio.wait(self._tasks, timeout=PARTING_S)
        for teller in self._teller:
            teller.cancel()
        if self._session is not None:
            self._session.close("the client closed its end")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._site.settings.cancel_grace_s)

    async def _message(self, text: bytes) -> None:
        try:
            message = jsonrpc.read(text)
            if not message.is_request:
                self._heed(message)
                return
            task = asyncio.create_task(self._answer(self._lock(message), message))
        except Fault as fault:
            await self._line.send([messages.error(fault)])
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if message.method == "initialize":
            await task
        else:
            await asyncio.sleep(0)  # it begins now, so that a cancel right behind it finds it

    def _heed(self, message: Envelope) -> None:
        """Take a notification or an answer; nobody waits for one to these, so what is wrong is dropped."""
        if self._session is None:
            self._site.count("messages before the first request")
            return
        try:
            (self._session.responded if message.is_response else self._session.notified)(message)
        except Fault:
            pass
        except Exception:  # else it would be the end of everybody's requests
            log.exception("a message without an id failed")
        if message.method == "notifications/initialized" and isinstance(self._session, Session):
            self._tell(self._session)

    def _tell(self, session: Session) -> None:
        """From now on, this client of the handshake era is told of changes."""
        if not self._teller:
            outlet = session.watching.over(self._line)
            relayed = relay(self._site, session.ear, outlet, handshake.changed)
            self._teller.append(asyncio.create_task(relayed))

    def _lock(self, message: Envelope) -> Session | ModernSession:
        """The first request settles the era of the whole connection."""
        modern = message.method != "initialize" and mcp.is_modern(bytes(message.params))
        if self._session is None:
            self._session = ModernSession(self._site) if modern else Session(self._site, CALLER, dies=True)
        elif modern and isinstance(self._session, Session):
            fault = Fault(
                INVALID_REQUEST, "this connection began with initialize; it speaks the handshake era"
            )
            fault.id = message.id if isinstance(message.id, int | str) else None
            raise fault
        return self._session

    async def _answer(self, session: Session | ModernSession, message: Envelope) -> None:
        assert isinstance(message.id, int | str)
        try:
            await session.request(message, self._line)
        except Fault as fault:
            await self._line.send([messages.error(fault, message.id)])
        except Exception as error:  # else its client would wait for ever
            log.exception("request %s failed", message.id)
            text = str(error) if isinstance(error, AfootError) else "the gateway failed; its log says more"
            await self._line.send([messages.error(Fault(INTERNAL_ERROR, text), message.id)])

    async def _too_long(self) -> None:
        """A line that is too long was dropped; say so."""
        limit = self._site.settings.max_body_bytes
        await self._line.send(
            [messages.error(Fault(PARSE_ERROR, f"line over {limit} bytes (raise max_body_bytes)"))]
        )
