"""MCP over HTTP: one POST is one exchange, and here it finds its era."""

from collections.abc import Awaitable, Callable

from afoot.engine.bell import Bell
from afoot.serve.guard import Denied, Guard
from afoot.serve.listing import answer_plain, listen
from afoot.serve.modern import Modern, serve_call
from afoot.serve.reply import Leaving, Receive, Reply, Scope, Send, header, read_body
from afoot.serve.sessions import Sessions, accepts
from afoot.serve.site import Site
from afoot.wire import jsonrpc, mcp, mcp_2025, messages
from afoot.wire.jsonrpc import INVALID_REQUEST, Envelope, Fault

App = Callable[[Scope, Receive, Send], Awaitable[None]]

_MODERN = Modern(cancels=True, capped=True)
_ROUTING = (b"mcp-protocol-version", b"mcp-method", b"mcp-name")


class Http:
    """The ASGI application of a gateway: `/mcp` here, everything else by `routes`."""

    def __init__(self, site: Site, guard: Guard, routes: App) -> None:
        self._site = site
        self._guard = guard
        self._routes = routes
        self.sessions = Sessions(site)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp":
            await self._routes(scope, receive, send)
            return
        reply = Reply(send, self._site.settings.stuck_s)
        try:
            self._guard.mcp(scope)
            await self._mcp(scope, receive, reply)
        except Fault as fault:
            await reply.json(fault.status, messages.error(fault))
        except Denied as denied:
            await reply.json(denied.status, messages.error(Fault(INVALID_REQUEST, str(denied))))
        except ConnectionResetError:
            pass  # the caller left before it had said everything

    async def _mcp(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        version = header(scope, b"mcp-protocol-version")
        if version is None or version.decode("latin-1") in mcp_2025.VERSIONS:
            await self.sessions.serve(scope, receive, reply)
        elif scope["method"] != "POST":
            await reply.json(405, b"", (b"allow", b"POST"))
        else:
            await self._post(scope, receive, reply)

    async def _post(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        """One request of 2026-07-28."""
        accepts(scope)
        message = jsonrpc.read(await read_body(scope, receive, self._site.settings.max_body_bytes))
        if message.is_notification:
            await self._notified(scope, reply)
            return
        if message.is_response:
            raise Fault(INVALID_REQUEST, "a response is no request; send answers as inputResponses")
        try:
            await self._request(message, _headers(scope), receive, reply)
        except Fault as fault:
            fault.id = message.id if isinstance(message.id, int | str) else None
            raise

    async def _request(
        self, message: Envelope, headers: dict[str, str], receive: Receive, reply: Reply
    ) -> None:
        if message.method == "tools/call":
            want = mcp.read_call(message, headers)
            self._site.check_params(want, headers)
            talk = await serve_call(self._site, want, "local", reply, _MODERN)
            leaving = Leaving(receive, reply, talk.bell.ring)
            try:
                await talk.hold(talk.live)
            finally:
                leaving.close()
        elif message.method == "subscriptions/listen":
            await self._listen(message, headers, receive, reply)
        else:
            mcp.read_plain(message, headers)
            await reply.json(200, answer_plain(self._site, message))

    async def _listen(
        self, message: Envelope, headers: dict[str, str], receive: Receive, reply: Reply
    ) -> None:
        wanted = mcp.read_listen(message, headers)
        assert isinstance(message.id, int | str)
        bell = Bell()
        leaving = Leaving(receive, reply, bell.ring)
        try:
            await listen(self._site, message.id, wanted, reply, bell, lambda: reply.gone)
        finally:
            leaving.close()

    async def _notified(self, scope: Scope, reply: Reply) -> None:
        """A notification is taken and dropped: this era has none that a client sends over HTTP."""
        version = (header(scope, b"mcp-protocol-version") or b"").decode("latin-1")
        if version != mcp.VERSION:
            raise mcp.unsupported(version)
        await reply.json(202, b"")


def _headers(scope: Scope) -> dict[str, str]:
    """The request's headers as text; a routing header that stands twice is refused."""
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    if len(headers) != len(scope["headers"]):
        names = [key for key, _ in scope["headers"]]
        for name in _ROUTING:
            if names.count(name) > 1:
                raise Fault(mcp.HEADER_MISMATCH, f"header {name.decode()}: stands more than once")
    return headers
