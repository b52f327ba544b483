"""`Sessions2025` serves the handshake era over HTTP: sessions, their POSTs, and their streams.

A session's id is a sealed ticket that says whose it is, so a gateway that starts anew knows its clients
again; `EndedSessions` remembers those that were ended (D2). `resume_stream` goes on with the stream of a
request that broke (H2).
"""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from weakref import WeakValueDictionary

from afoot.core.facts import Asked
from afoot.core.names import lookup_method
from afoot.engine.engine import RETRY_HISTORY_S
from afoot.engine.live_call import LiveCall
from afoot.errors import AfootError, StoreError, UnknownName
from afoot.serve.access.guard import LOCAL_CALLER, is_bridge
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import HttpResponse, Receive, read_json
from afoot.serve.mcp.call_request import CallRequest
from afoot.serve.mcp.era_2025 import Era2025, ResumableStream
from afoot.serve.mcp.era_2026 import relay_changes
from afoot.serve.mcp.streams import ResponseStream, encode_envelope
from afoot.wire import jsonrpc, mcp_2025, tasks
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Envelope, Fault, Id
from afoot.wire.results import ErrorMeta, ToolCall
from afoot.wire.sealed_state import (
    ResumePosition,
    SessionTicket,
    read_resume_position,
    seal_session_ticket,
    unseal_session_ticket,
)

RESUMABLE = ("tools/call", "resources/read", "prompts/get")  # methods whose streams may go on after a break
ENDED_FOLDER = "ended"  # in the state folder
SESSION_MAX_AGE_S = 7 * 86_400.0  # how old a session may be that is known again
SESSION_IDLE_S = 1800.0  # after which a session is forgotten; its ticket lets its client in again
MAX_SESSIONS = 10_000  # at once
MAX_SESSIONS_PER_CALLER = 1000  # of these, where no quota says less
MAX_ENDED_BYTES = 2 * 1024 * 1024  # of one day's file: 60,000 sessions
MAX_ENDED_IN_MEMORY = 60_000
TASK_RETRY_S, TASK_TRIES = 0.1, 50  # to find a task that began at another gateway
SESSION_HEADER = "mcp-session-id"
_DAY_S = 86_400

Headers = Mapping[str, str]

log = logging.getLogger("afoot.serve")


class _EndedOnDay:
    """The sessions that were ended of those opened on one day, as far as their file was read."""

    __slots__ = ("_digests", "_size", "_stamp")

    def __init__(self) -> None:
        self._digests: set[str] = set()
        self._size = 0  # bytes of the file that were read
        self._stamp = (0, 0)

    def has(self, digest: str, file: Path) -> bool:
        """Whether the file names this session, or is full; raises OSError, UnicodeDecodeError.

        Only what was added since the last look is read: a client can have lines added as often as it asks.
        """
        with file.open("rb") as opened:
            found = os.fstat(opened.fileno())
            if found.st_size >= MAX_ENDED_BYTES:
                return True
            stamp = found.st_ino, found.st_mtime_ns
            if stamp[0] != self._stamp[0] or found.st_size < self._size:
                self._digests.clear()
                self._size = 0
            if stamp != self._stamp:
                opened.seek(self._size)
                added = opened.read(MAX_ENDED_BYTES)
                self._digests.update(added.decode("ascii").split())
                self._size += len(added)
                self._stamp = stamp
        return digest in self._digests


class EndedSessions:
    """The sessions that were ended: a line each, in a file for the day they were opened on.

    Without a folder, and where it cannot be written, they are known only as long as this lasts. A file has a
    bound: once it is full, no session of its day is known again, and its client begins a new one.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._in_memory: dict[str, None] = {}  # in their order
        self._days: dict[int, _EndedOnDay] = {}

    def add(self, key: str, issued: float, now: float) -> None:
        """Remember that this session is over for good."""
        digest = _digest(key)
        if self._folder is None:
            self._remember(digest)
            return
        try:
            file = self._folder / str(int(issued // _DAY_S))
            if not file.exists():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _delete_old_days(self._folder, now)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "w") as out:
                if os.fstat(descriptor).st_size < MAX_ENDED_BYTES:
                    out.write(f"{digest}\n")
        except OSError as error:
            self._remember(digest)
            log.warning("%s: a session that was ended may be known again after a restart", error)

    def has(self, key: str, issued: float) -> bool:
        """Whether this session was ended, here or at another gateway; True if that cannot be read."""
        digest, day = _digest(key), int(issued // _DAY_S)
        if self._folder is None or digest in self._in_memory:
            return digest in self._in_memory
        try:
            return self._days.setdefault(day, _EndedOnDay()).has(digest, self._folder / str(day))
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError) as error:
            log.warning("%s: sessions of an earlier gateway are not known again", error)
            return True

    def _remember(self, digest: str) -> None:
        self._in_memory[digest] = None
        if len(self._in_memory) > MAX_ENDED_IN_MEMORY:
            del self._in_memory[next(iter(self._in_memory))]


class HttpSession:
    """A session as the HTTP transport holds it. Only the caller `owner` may use it."""

    __slots__ = ("__weakref__", "busy", "era", "key", "owner", "seen", "streaming")

    def __init__(self, key: str, era: Era2025, now: float, owner: str) -> None:
        self.key = key
        self.era = era
        self.owner = owner
        self.seen = now  # when a request of it last began or ended
        self.busy = 0  # requests that are served now
        self.streaming = False


class Sessions2025:
    """Every session of the handshake era, by its id."""

    def __init__(self, gateway: GatewayState, ended: EndedSessions | None = None) -> None:
        self._gateway = gateway
        self._ended = ended or EndedSessions()
        self._held: dict[str, HttpSession] = {}
        self._by_digest = WeakValueDictionary[str, HttpSession]()  # in a cluster
        if gateway.cluster is not None:
            gateway.cluster.sessions.listen(self._take_passed_on)

    def anonymous(self) -> int:
        """The number of sessions whose callers have proved nothing of who they are."""
        self._expire()
        return sum(held.owner == LOCAL_CALLER for held in self._held.values())

    def serve(
        self, method: str, headers: Headers, receive: Receive, reply: HttpResponse, caller: str = LOCAL_CALLER
    ) -> Awaitable[None]:
        """Serve one HTTP request of this era; raises Fault when awaited.

        This is no coroutine, because every wait of a request would then pass through one frame more.
        """
        if method == "POST":
            return self._post(headers, receive, reply, caller)
        if method == "GET":
            return self._open_stream(headers, reply, caller)
        if method == "DELETE":
            return self._end(headers, reply, caller)
        return reply.json(405, b"", (b"allow", b"GET, POST, DELETE"))

    async def _post(self, headers: Headers, receive: Receive, reply: HttpResponse, caller: str) -> None:
        message = jsonrpc.read(await read_json(headers, receive, self._gateway.settings.max_body_bytes))
        if reply.denied:
            raise ConnectionResetError  # its token ended before it had said everything
        if message.is_request and message.method == "initialize" and SESSION_HEADER not in headers:
            await self._open(message, reply, caller)
            return
        held = await self._find(headers, caller)
        del headers  # a call may wait long, and they are 1.1 KB
        if not message.is_request:
            held.seen = self._gateway.engine.clock.now()
            await reply.json(202, b"")
            with suppress(Fault):  # nobody waits for an answer to these
                if not _tell(held.era, message) and held.era.tell_others is not None:
                    held.era.tell_others(encode_envelope(message))
            return
        await self._request(held, message, reply)

    async def _open(self, message: Envelope, reply: HttpResponse, caller: str) -> None:
        self._make_room(caller)
        key = self._key(message, caller)
        era = self._new_era(key, caller)
        # It is there before its client knows of it, and not at all if it was not welcome.
        self._hold(key, era, caller)
        reply.add((b"mcp-session-id", key.encode()))
        try:
            await self._serve_request(era, message, reply)
        except Fault:
            del self._held[key]
            reply.headers = reply.headers[:-1]
            raise

    def _key(self, message: Envelope, caller: str) -> str:
        """The id of a new session: a ticket that says whose it is, for a gateway after this one."""
        secret = secrets.token_hex(16)
        try:
            hello = mcp_2025.read_initialize(message)
        except Fault:
            return secret  # the answer says what is wrong
        able = hello.capabilities
        ticket = SessionTicket(
            secret,
            caller,
            self._gateway.engine.clock.now(),
            hello.version,
            hello.clientInfo.name,
            able.elicitation,
            able.sampling,
            able.roots,
            able.passed_extensions or None,
            hello.clientInfo.version_text,
        )
        sealing = self._gateway.sealing_key()
        return seal_session_ticket(ticket, sealing.secret, sealing.id)

    async def _request(self, held: HttpSession, message: Envelope, reply: HttpResponse) -> None:
        held.busy += 1
        try:
            stream = reply
            assert isinstance(message.id, int | str)
            if not is_bridge(held.owner):  # behind a bridge is a pipe: it gets none
                reply.unanswered_id = message.id
            if message.method in RESUMABLE and reply.unanswered_id is not None:
                stream = ResumableStream(self._gateway, reply, held.era.version)
            await self._serve_request(held.era, message, stream)
        finally:
            held.busy -= 1
            held.seen = self._gateway.engine.clock.now()

    async def _serve_request(self, era: Era2025, message: Envelope, stream: ResponseStream) -> None:
        try:
            await era.request(message, stream)
        except (Fault, AfootError) as error:
            fault = error if isinstance(error, Fault) else Fault(INTERNAL_ERROR, str(error))
            fault.id = message.id if isinstance(message.id, int | str) else None
            fault.status = 200  # clients of this era read no error from the body of any other
            raise fault from None

    async def _open_stream(self, headers: Headers, reply: HttpResponse, caller: str) -> None:
        """Serve the stream that tells of changes, or resume the stream of a request."""
        held = await self._find(headers, caller)
        held.seen = self._gateway.engine.clock.now()
        accept = headers.get("accept") or "*/*"
        if not any(kind in accept for kind in ("text/event-stream", "text/*", "*/*")):
            raise Fault(INVALID_REQUEST, "header accept: must have text/event-stream", status=406)
        last = headers.get("last-event-id")
        del headers
        if last is not None:
            await self._resume(held, last, reply)
            return
        if held.streaming:
            raise Fault(INVALID_REQUEST, "this session has its stream already", status=409)
        held.streaming = True
        gateway, listener = self._gateway, held.era.listener
        listener.origin = reply.origin
        reply.watch(listener.wakeup.wake)
        if gateway.cluster is not None:
            held.era.follow_tasks_of_others()
        try:
            await reply.keep_alive()
            await relay_changes(
                gateway, listener, held.era.task_watch.over(reply), mcp_2025.changed_notification
            )
            await reply.finish((), None)
        finally:
            held.streaming = False
            held.seen = gateway.engine.clock.now()

    async def _resume(self, held: HttpSession, last: str, reply: HttpResponse) -> None:
        """Go on with the stream of one request, which broke."""
        held.busy += 1
        try:
            await resume_stream(self._gateway, held.era, last, reply)
        finally:
            held.busy -= 1
            held.seen = self._gateway.engine.clock.now()

    async def _find(self, headers: Headers, caller: str) -> HttpSession:
        key = headers.get(SESSION_HEADER)
        if key is None:
            raise Fault(INVALID_REQUEST, "header mcp-session-id: missing; begin with initialize")
        held = self._held.get(key) or await self._restored(key, caller)
        if held is None or held.owner != caller:
            raise Fault(
                INVALID_REQUEST, "header mcp-session-id: no such session; begin with initialize", status=404
            )
        return held

    async def _restored(self, key: str, caller: str) -> HttpSession | None:
        """A session of a gateway before this one, or one that was idle for long, by its ticket (D2)."""
        gateway = self._gateway
        secret = await gateway.key_of(key)
        ticket = None if secret is None else unseal_session_ticket(key, secret)
        if key in self._held:
            return self._held[key]  # another request brought it back meanwhile
        if ticket is None or ticket.owner != caller:
            return None
        now, issued = gateway.engine.clock.now(), ticket.issued
        if issued <= now - SESSION_MAX_AGE_S or self._ended.has(key, issued):
            return None
        if await self._has_ended_elsewhere(key):
            return None
        if key in self._held:
            return self._held[key]
        self._make_room(caller)
        era = self._new_era(key, caller)
        era.restore(ticket)
        return self._hold(key, era, caller)

    def _hold(self, key: str, era: Era2025, caller: str) -> HttpSession:
        held = self._held[key] = HttpSession(key, era, self._gateway.engine.clock.now(), caller)
        if self._gateway.cluster is not None:
            digest = _digest(key)
            self._by_digest[digest] = held
            era.tell_others = partial(self._gateway.cluster.sessions.pass_on, digest)
        return held

    async def _has_ended_elsewhere(self, key: str) -> bool:
        """Whether this session was ended at another gateway; raises Fault where that cannot be known."""
        if self._gateway.cluster is None:
            return False
        try:
            return await self._gateway.cluster.sessions.has_ended(_digest(key))
        except StoreError as error:
            told = ErrorMeta("unavailable", "sessions_unreadable", True, RETRY_HISTORY_S)
            text = f"it cannot be known now whether this session was ended: {error}"
            raise Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": told}, status=503) from None

    def _take_passed_on(self, session: str, message: bytes) -> None:
        """Take what a client of ours said to another gateway; an empty message ends the session."""
        held = self._by_digest.get(session)
        if held is None or self._held.get(held.key) is not held:
            return
        if not message:
            del self._held[held.key]
            held.era.close("the session was ended")
            self._forget_caller(held)
            return
        with suppress(Fault):
            told = jsonrpc.read(message)
            if told.method == tasks.BEGUN:
                self._follow_task(held, *tasks.read_begun(told))
            else:
                _tell(held.era, told)

    def _follow_task(self, held: HttpSession, task: str, token: Id | None, tries: int = 0) -> None:
        """Tell of a task that began at another gateway, once its facts are here."""
        if not held.era.follow_task(task, token) and tries < TASK_TRIES:
            loop = asyncio.get_running_loop()
            loop.call_later(TASK_RETRY_S, self._follow_task, held, task, token, tries + 1)

    def _new_era(self, key: str, caller: str) -> Era2025:
        # Behind a bridge is a process: it is the caller, and its end is the end of its calls.
        name = session_caller(key) if caller == LOCAL_CALLER else caller
        return Era2025(self._gateway, name, dies=is_bridge(caller))

    async def _end(self, headers: Headers, reply: HttpResponse, caller: str) -> None:
        """End a session, for good."""
        held = await self._find(headers, caller)
        key = headers[SESSION_HEADER]
        opening = await self._gateway.key_of(key)
        self._held.pop(key, None)  # two requests may end it at once
        ticket = None if opening is None else unseal_session_ticket(key, opening)
        if ticket is not None:
            now = self._gateway.engine.clock.now()
            self._ended.add(key, ticket.issued, now)
            if self._gateway.cluster is not None:
                try:
                    keep_s = ticket.issued + SESSION_MAX_AGE_S - now
                    await self._gateway.cluster.sessions.end(_digest(key), keep_s)
                except StoreError as error:
                    log.warning("a session that was ended may live on at other gateways: %s", error)
        held.era.close("the session was ended")
        await reply.json(200, b"")
        self._forget_caller(held)

    def _make_room(self, caller: str) -> None:
        """Forget idle sessions; raises Fault if there are still too many, here or of this caller.

        Of a caller that has too many, the one idle longest is forgotten: its ticket lets its client in again.
        """
        self._expire()
        own = {key: held for key, held in self._held.items() if held.owner == caller}
        most = self._most_sessions(caller)
        if len(own) >= most:
            idle = [key for key, held in own.items() if not held.busy and not held.streaming]
            if not idle:
                text = f"{caller} has too many sessions ({most}); end one with DELETE"
                told = ErrorMeta("rate_limit", "too_many_sessions", True)
                raise Fault(INVALID_REQUEST, text, data={"dev.afoot/error": told}, status=429)
            self._forget(min(idle, key=lambda key: own[key].seen))
        if len(self._held) >= MAX_SESSIONS:
            raise Fault(
                INVALID_REQUEST, f"too many sessions ({MAX_SESSIONS}); end one with DELETE", status=503
            )

    def _expire(self) -> None:
        old = self._gateway.engine.clock.now() - SESSION_IDLE_S
        for key, held in list(self._held.items()):
            if held.seen < old and not held.busy and not held.streaming:
                self._forget(key)

    def _most_sessions(self, caller: str) -> int:
        """The number of sessions that a caller may have, by its quota or by default."""
        quota = self._gateway.engine.quota
        limits = None if quota is None else quota.limits_of(caller)
        return (0 if limits is None else limits.sessions) or MAX_SESSIONS_PER_CALLER

    def _forget(self, key: str) -> None:
        held = self._held.pop(key)
        held.era.end_without_call()
        self._forget_caller(held)

    def _forget_caller(self, held: HttpSession) -> None:
        """Forget the caller that is nothing but its session. A bridge is there until its own stream ends."""
        if held.owner == LOCAL_CALLER:
            self._gateway.callers.left(held.era.caller, self._gateway.servers)


def _tell(era: Era2025, message: Envelope) -> bool:
    """Give a session an answer or a notification; False if it is not for this gateway. Raises Fault."""
    return era.take_response(message) if message.is_response else era.take_notification(message)


async def resume_stream(gateway: GatewayState, era: Era2025, event_id: str, reply: HttpResponse) -> None:
    """Go on with a broken stream behind the event that its client received last; raises Fault (H2, D2).

    Each fact is sent once and in order; of readings only the newest, as ever.
    """
    position = read_resume_position(event_id)
    if position is None or position.epoch != gateway.engine.journal.epoch:
        raise _unknown_position()
    live = await _find_call(gateway, position, era.caller)
    tool_call = ToolCall(
        position.request, live.call.opened.tool, live.arguments, position.token, era.level,
        era.capabilities, partial=position.partial, client=era.client,
        method=lookup_method(live.call.opened.tool) or "tools/call",
    )  # fmt: skip
    stream = ResumableStream(gateway, reply, era.version)
    request = CallRequest.resuming(gateway, tool_call, era.caller, stream, era, live, position.seq)
    await era.take_over_request(request, _questions_received(live, position.seq))
    era.register(request)
    try:
        stream.begin(request)
        try:
            await request.resume()
        except (
            BaseException
        ) as error:  # nobody follows the call then; its client may come again, or cancel it
            stream.leave()  # its questions stay asked
            era.client_left(request)
            if not isinstance(error, StoreError):
                raise
            await stream.finish((), None)  # the stream has begun, and can tell no error but its end
        else:
            await era.follow(request)
    finally:
        era.unregister(request)


async def _find_call(gateway: GatewayState, position: ResumePosition, caller: str) -> LiveCall:
    """The call of a position; raises the same Fault for an unknown call and for another caller's."""
    try:
        live = await gateway.own_call(position.call, caller)
    except UnknownName:
        raise _unknown_position() from None
    if position.seq > live.call.seq:
        raise _unknown_position()
    return live


def _questions_received(live: LiveCall, seq: int) -> set[str]:
    """The questions that the client was asked before it lost the stream."""
    later = [entry.fact for entry in live.backlog if entry.seq > seq]
    return set(live.call.open) - {fact.question.id for fact in later if isinstance(fact, Asked)}


def _unknown_position() -> Fault:
    return Fault(INVALID_REQUEST, "header last-event-id: no place in a stream of this session")


def session_caller(key: str) -> str:
    """The caller that a session is. The key is not in it: others may see who opened a call (S4)."""
    return f"session:{sha256(key.encode()).hexdigest()[:32]}"


def _delete_old_days(folder: Path, now: float) -> None:
    """Delete the files of days whose sessions are too old to be known again."""
    for file in folder.iterdir():
        if file.name.isdecimal() and (int(file.name) + 1) * _DAY_S + SESSION_MAX_AGE_S < now:
            file.unlink(missing_ok=True)


def _digest(key: str) -> str:
    """A digest of a session's key: the key itself lets in whoever has it, so it is not kept."""
    return sha256(key.encode("utf-8", "replace")).hexdigest()[:32]
