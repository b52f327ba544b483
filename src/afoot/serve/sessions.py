"""The handshake era over HTTP: sessions, their POSTs, and the stream for what belongs to no request."""

import secrets
from contextlib import suppress
from hashlib import sha256

from afoot.errors import AfootError
from afoot.serve.asgi import Receive, Scope, accepts, header, read_body
from afoot.serve.ended import LASTS_S, Ended
from afoot.serve.guard import LOCAL, is_bridge
from afoot.serve.handshake import Session
from afoot.serve.http import Reply
from afoot.serve.listing import relay
from afoot.serve.manner import Outlet
from afoot.serve.numbered import Numbered
from afoot.serve.resume import resume
from afoot.serve.site import Site
from afoot.wire import jsonrpc, mcp_2025
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Envelope, Fault
from afoot.wire.place import Passport, read_passport, seal_passport

MOST = 10_000  # sessions at once
IDLE_S = 1800.0


def caller_of(key: str) -> str:
    """Who a session is to those who may see its calls: not the key itself, which would let them in (S4)."""
    return f"session:{sha256(key.encode()).hexdigest()[:32]}"


class Held:
    """A session as the HTTP transport holds it; `owner` is who alone may use it, if that can be proved."""

    __slots__ = ("busy", "owner", "seen", "session", "streaming")

    def __init__(self, session: Session, now: float, owner: str) -> None:
        self.session = session
        self.owner = owner
        self.seen = now
        self.busy = 0
        self.streaming = False


class Sessions:
    """Every session of the handshake era, by its id."""

    def __init__(self, site: Site, ended: Ended | None = None) -> None:
        self._site = site
        self._ended = ended or Ended()
        self._held: dict[str, Held] = {}

    def anonymous(self) -> int:
        """How many sessions are held for callers of whom nothing else is seen."""
        self._expire()
        return sum(held.owner == LOCAL for held in self._held.values())

    async def serve(self, scope: Scope, receive: Receive, reply: Reply, caller: str = LOCAL) -> None:
        """One HTTP request of this era; raises Fault."""
        method = scope["method"]
        if method == "POST":
            await self._post(scope, receive, reply, caller)
        elif method == "GET":
            await self._stream(self._find(scope, caller), scope, reply)
        elif method == "DELETE":
            self._end(scope, caller)
            await reply.json(200, b"")
        else:
            await reply.json(405, b"", (b"allow", b"GET, POST, DELETE"))

    async def _post(self, scope: Scope, receive: Receive, reply: Reply, caller: str) -> None:
        accepts((header(scope, b"accept") or b"").decode("latin-1"))
        message = jsonrpc.read(await read_body(scope, receive, self._site.settings.max_body_bytes))
        if reply.denied:
            raise ConnectionResetError  # it was let in no more before it had said everything
        if message.is_request and message.method == "initialize" and header(scope, b"mcp-session-id") is None:
            await self._open(message, reply, caller)
            return
        held = self._find(scope, caller)
        if not message.is_request:
            await reply.json(202, b"")
            with suppress(Fault):  # nobody waits for an answer to these
                (held.session.responded if message.is_response else held.session.notified)(message)
            return
        await self._request(held, message, reply)

    async def _open(self, message: Envelope, reply: Reply, caller: str) -> None:
        self._make_room()
        key = self._key(message, caller)
        session = self._session(key, caller)
        # It is there before its client knows of it, and not at all if it was not welcome.
        self._held[key] = Held(session, self._site.engine.clock.now(), caller)
        reply.add((b"mcp-session-id", key.encode()))
        try:
            await self._guarded(session, message, reply)
        except Fault:
            del self._held[key]
            reply.headers = ()
            raise

    def _key(self, message: Envelope, caller: str) -> str:
        """The id of a new session: a secret, and who it is, for a gateway that may come after this one."""
        secret = secrets.token_hex(16)
        try:
            hello = mcp_2025.read_hello(message)
        except Fault:
            return secret  # whoever answers says what is wrong
        can, now = hello.capabilities, self._site.engine.clock.now()
        who = secret, caller, now, hello.version, hello.clientInfo.name
        return seal_passport(Passport(*who, can.elicitation, can.sampling, can.roots), self._site.key)

    async def _request(self, held: Held, message: Envelope, reply: Reply) -> None:
        held.busy += 1
        try:
            outlet = reply
            if message.method == "tools/call" and not is_bridge(held.owner):
                outlet = Numbered(self._site, reply, held.session.version)
            await self._guarded(held.session, message, outlet)
        finally:
            held.busy -= 1
            held.seen = self._site.engine.clock.now()

    async def _guarded(self, session: Session, message: Envelope, outlet: Outlet) -> None:
        try:
            await session.request(message, outlet)
        except (Fault, AfootError) as error:
            fault = error if isinstance(error, Fault) else Fault(INTERNAL_ERROR, str(error))
            fault.id = message.id if isinstance(message.id, int | str) else None
            fault.status = 200  # clients of this era read no error from the body of any other
            raise fault from None

    async def _stream(self, held: Held, scope: Scope, reply: Reply) -> None:
        """What belongs to no request: changes of what there is."""
        accept = header(scope, b"accept") or b"*/*"
        if not any(kind in accept for kind in (b"text/event-stream", b"text/*", b"*/*")):
            raise Fault(INVALID_REQUEST, "header accept: must have text/event-stream", status=406)
        if (last := header(scope, b"last-event-id")) is not None:
            await self._resume(held, last.decode("latin-1"), reply)
            return
        if held.streaming:
            raise Fault(INVALID_REQUEST, "this session has its stream already", status=409)
        held.streaming = True
        site, ear = self._site, held.session.ear
        reply.watch(ear.bell.ring)
        try:
            await reply.keep_alive()
            await relay(site, ear, held.session.watching.over(reply), mcp_2025.changed)
            await reply.finish((), None)
        finally:
            held.streaming, held.seen = False, site.engine.clock.now()

    async def _resume(self, held: Held, last: str, reply: Reply) -> None:
        """The stream of one request, which broke."""
        held.busy += 1
        try:
            await resume(self._site, held.session, last, reply)
        finally:
            held.busy -= 1
            held.seen = self._site.engine.clock.now()

    def _find(self, scope: Scope, caller: str) -> Held:
        key = header(scope, b"mcp-session-id")
        if key is None:
            raise Fault(INVALID_REQUEST, "header mcp-session-id: missing; begin with initialize")
        named = key.decode("latin-1")
        held = self._held.get(named) or self._reopened(named, caller)
        if held is None or held.owner != caller:
            raise Fault(
                INVALID_REQUEST, "header mcp-session-id: no such session; begin with initialize", status=404
            )
        held.seen = self._site.engine.clock.now()
        return held

    def _reopened(self, key: str, caller: str) -> Held | None:
        """A session of a gateway before this one, or that was long idle: it tells itself who it is (D2)."""
        site = self._site
        passport = read_passport(key, site.key)
        if passport is None or passport.owner != caller:
            return None
        now, issued = site.engine.clock.now(), passport.issued
        if issued <= now - LASTS_S or self._ended.has(key, issued):
            return None
        self._make_room()
        session = self._session(key, caller)
        session.reopen(passport)
        held = self._held[key] = Held(session, now, caller)
        return held

    def _session(self, key: str, caller: str) -> Session:
        # Behind a bridge is a process: it is the caller, and its end is the end of its calls.
        return Session(self._site, caller_of(key) if caller == LOCAL else caller, dies=is_bridge(caller))

    def _end(self, scope: Scope, caller: str) -> None:
        held, key = self._find(scope, caller), (header(scope, b"mcp-session-id") or b"").decode("latin-1")
        del self._held[key]
        if (passport := read_passport(key, self._site.key)) is not None:
            self._ended.add(key, passport.issued, self._site.engine.clock.now())
        held.session.close("the session was ended")
        self._left(held)

    def _make_room(self) -> None:
        """There are only so many at once; raises Fault."""
        self._expire()
        if len(self._held) >= MOST:
            raise Fault(INVALID_REQUEST, f"too many sessions ({MOST}); end one with DELETE", status=503)

    def _expire(self) -> None:
        old = self._site.engine.clock.now() - IDLE_S
        for key, held in list(self._held.items()):
            if held.seen < old and not held.busy and not held.streaming:
                del self._held[key]
                held.session.forget()
                self._left(held)

    def _left(self, held: Held) -> None:
        """A bridge is there until its own stream ends; any other caller is its session."""
        if held.owner == LOCAL:
            self._site.callers.left(held.session.caller, self._site.servers)
