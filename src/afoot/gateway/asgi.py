"""`AsgiApp` is a gateway as an ASGI application, to be mounted in an application of Starlette or FastAPI.

`asgi_app` makes it. The server and its sockets belong to somebody else, so each request says by which address
it came; hosts, origins and users are checked by that, as they are at a gateway's own sockets (S1, S6).
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from afoot.config.settings import Settings, load_settings, make_settings
from afoot.config.tables import requires_token
from afoot.errors import CallerError
from afoot.gateway import MEMORY, Gateway, Target
from afoot.gateway.app import SERVERS_READY_S, new_sessions, new_state, open_access, route_surfaces, wind_down
from afoot.serve.access.guard import accepted_hosts
from afoot.serve.access.peer import LOOPBACK, PEER, peer_of, user_or_peer
from afoot.serve.console import SECURITY_HEADERS
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import Message, Receive, Scope, Send
from afoot.serve.mcp.sessions_2025 import Sessions2025
from afoot.serve.router import Router

log = logging.getLogger("afoot")

NOT_OPEN = (
    "afoot is not open: the outer application must run its lifespan"
    " (tools = afoot.asgi_app(…); Starlette(…, lifespan=tools.lifespan))"
)

_SECURITY_HEADERS = tuple((name.encode(), value.encode()) for name, value in SECURITY_HEADERS)


def asgi_app(*targets: Target, config: str | Path | None = None, **settings: Any) -> "AsgiApp":
    """A gateway as an ASGI application: MCP is at `/mcp` below the path where it is mounted.

    Settings are those of afoot.toml. No file is read but `config`. The history is in memory, unless `store`
    names a file. Raises CallerError.
    """
    if config is None:
        return AsgiApp(targets, make_settings({"store": MEMORY, **settings}))
    return AsgiApp(targets, load_settings(Path(config), settings).settings)


class AsgiApp:
    """The application. `lifespan` opens its gateway and closes it; until then every request is refused."""

    def __init__(self, targets: tuple[Target, ...], settings: Settings) -> None:
        self._targets = targets
        self._settings = settings
        self._gateway: Gateway | None = None
        self._state: GatewayState | None = None
        self._sessions: Sessions2025 | None = None
        # By port, and whether the peer is on another machine: then it needs a token.
        self._routers: dict[tuple[int | None, bool], Router] = {}

    @property
    def gateway(self) -> Gateway:
        """The gateway, to add and remove tools; raises CallerError while it is not open."""
        if self._gateway is None:
            raise CallerError(NOT_OPEN)
        return self._gateway

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Open the gateway for the length of a block: `Starlette(…, lifespan=tools.lifespan)`."""
        if self._gateway is not None:
            raise CallerError("this gateway is open already: give its lifespan to one application only")
        opening = Gateway(*self._targets, settings=self._settings)
        opening.keeps_figures = self._settings.metrics
        async with opening as gateway:
            state = new_state(gateway)
            state.engine.redactor.recall({state.token})
            open_access(state, "", self._settings.access.public_url.rstrip("/"))
            await gateway.servers.wait_until_opened(SERVERS_READY_S)
            self._gateway = gateway
            self._state = state
            self._sessions = new_sessions(state)
            try:
                yield
            finally:
                self._gateway = self._state = self._sessions = None
                self._routers.clear()
                await wind_down(state, "the application is shutting down")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _run_lifespan(self.lifespan(), receive, send)
            return
        send = _with_security_headers(send)
        if self._state is None or self._sessions is None:
            await _refuse(scope, send)
            return
        remote, local = scope.get("client"), scope.get("server")
        port = local[1] if local else None
        is_loopback = remote is not None and peer_of(tuple(remote)) == LOOPBACK
        peer = LOOPBACK
        if is_loopback and local is not None and port:
            peer = user_or_peer(tuple(remote), tuple(local))
        router = self._router(self._state, self._sessions, port, is_far=not is_loopback)
        path = _path_below(scope.get("root_path", "").rstrip("/"), scope["path"])
        own = {**scope, "path": path, "state": {**scope.get("state", {}), PEER: peer}}
        await router(own, receive, send)

    def _router(
        self, state: GatewayState, sessions: Sessions2025, port: int | None, *, is_far: bool
    ) -> Router:
        found = self._routers.get((port, is_far))
        if found is None:
            settings = state.settings
            is_closed = is_far or requires_token("127.0.0.1", settings.access, settings.mcp_token)
            hosts = accepted_hosts(port, settings.allow_hosts) if port else frozenset(settings.allow_hosts)
            found = self._routers[port, is_far] = route_surfaces(state, sessions, hosts, is_closed)
        return found


def _path_below(root: str, path: str) -> str:
    """The path below the one where it is mounted, which some servers leave in front of it."""
    is_below = path == root or path.startswith(f"{root}/")
    return (path.removeprefix(root) if is_below else path) or "/"


def _with_security_headers(send: Send) -> Send:
    """Add the security headers to every response, as our own HTTP server does: the outer one has none."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            known = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in _SECURITY_HEADERS if name not in known]
            message = {**message, "headers": headers}
        await send(message)

    return send_with_headers


async def _refuse(scope: Scope, send: Send) -> None:
    """Say what is missing, before the gateway is open."""
    log.error("%s", NOT_OPEN)
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1011, "reason": "not open"})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": NOT_OPEN.encode()})


async def _run_lifespan(lifespan: AbstractAsyncContextManager[None], receive: Receive, send: Send) -> None:
    """Answer the events of ASGI's lifespan protocol, for an application that is served by itself."""
    await receive()  # lifespan.startup
    try:
        async with lifespan:
            await send({"type": "lifespan.startup.complete"})
            await receive()  # lifespan.shutdown
    except CallerError as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.shutdown.complete"})
