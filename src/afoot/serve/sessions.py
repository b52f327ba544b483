"""The handshake era over HTTP: sessions, their POSTs, and the stream for what belongs to no request."""

import secrets
from contextlib import suppress
from hashlib import sha256

from afoot.serve.asgi import Receive, Scope, accepts, header, read_body
from afoot.serve.guard import LOCAL
from afoot.serve.handshake import Session
from afoot.serve.http import Reply
from afoot.serve.listing import relay
from afoot.serve.site import Site
from afoot.wire import jsonrpc, mcp_2025
from afoot.wire.jsonrpc import INVALID_REQUEST, Envelope, Fault

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

    def __init__(self, site: Site) -> None:
        self._site = site
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
        self._expire()
        if len(self._held) >= MOST:
            raise Fault(INVALID_REQUEST, f"too many sessions ({MOST}); end one with DELETE", status=503)
        key = secrets.token_hex(16)
        # Behind a bridge is a process: it is the caller, and its end is the end of its calls.
        is_local = caller == LOCAL
        session = Session(self._site, caller_of(key) if is_local else caller, dies=not is_local)
        # It is there before its client knows of it, and not at all if it was not welcome.
        self._held[key] = Held(session, self._site.engine.clock.now(), caller)
        reply.add((b"mcp-session-id", key.encode()))
        try:
            await self._guarded(session, message, reply)
        except Fault:
            del self._held[key]
            reply.headers = ()
            raise

    async def _request(self, held: Held, message: Envelope, reply: Reply) -> None:
        held.busy += 1
        try:
            await self._guarded(held.session, message, reply)
        finally:
            held.busy -= 1
            held.seen = self._site.engine.clock.now()

    async def _guarded(self, session: Session, message: Envelope, reply: Reply) -> None:
        try:
            await session.request(message, reply)
        except Fault as fault:
            fault.id = message.id if isinstance(message.id, int | str) else None
            fault.status = 200  # clients of this era read no error from the body of any other
            raise

    async def _stream(self, held: Held, scope: Scope, reply: Reply) -> None:
        """What belongs to no request: changes of what there is."""
        accept = header(scope, b"accept") or b"*/*"
        if not any(kind in accept for kind in (b"text/event-stream", b"text/*", b"*/*")):
            raise Fault(INVALID_REQUEST, "header accept: must have text/event-stream", status=406)
        if held.streaming:
            raise Fault(INVALID_REQUEST, "this session has its stream already", status=409)
        held.streaming = True
        site, ear = self._site, held.session.ear
        reply.watch(ear.bell.ring)
        try:
            await reply.keep_alive()
            await relay(site, ear, reply, mcp_2025.changed)
            await reply.finish((), None)
        finally:
            held.streaming, held.seen = False, site.engine.clock.now()

    def _find(self, scope: Scope, caller: str) -> Held:
        key = header(scope, b"mcp-session-id")
        if key is None:
            raise Fault(INVALID_REQUEST, "header mcp-session-id: missing; begin with initialize")
        held = self._held.get(key.decode("latin-1"))
        if held is None or held.owner != caller:
            raise Fault(
                INVALID_REQUEST, "header mcp-session-id: no such session; begin with initialize", status=404
            )
        held.seen = self._site.engine.clock.now()
        return held

    def _end(self, scope: Scope, caller: str) -> None:
        self._find(scope, caller)
        held = self._held.pop((header(scope, b"mcp-session-id") or b"").decode("latin-1"))
        held.session.close("the session was ended")
        self._left(held)

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
