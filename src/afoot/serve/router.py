"""`Router` is the ASGI application of a gateway: it sends each request to one surface, by its path.

The surfaces stand side by side, and none knows the others: MCP at `/mcp`, the extension's WebSocket at
`/link`, the files of the console, and the operator's API, with `/healthz`, at every other path.
"""

from collections.abc import Awaitable

from afoot.serve.access.guard import Guard
from afoot.serve.console import find_asset, serve_asset
from afoot.serve.mcp.asgi import App, Receive, Scope, Send


class Router:
    """Chooses the surface of each request."""

    def __init__(self, guard: Guard, mcp: App, link: App, api: App) -> None:
        self._guard = guard
        self._mcp = mcp
        self._link = link
        self._api = api

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Give the awaitable of the surface itself.

        This is no coroutine, because every wait of a request would then pass through one frame more.
        """
        path = scope["path"]
        if path == "/mcp" and scope["type"] == "http":
            return self._mcp(scope, receive, send)
        if path == "/link" or scope["type"] == "websocket":
            return self._link(scope, receive, send)
        asset = find_asset(path)
        if asset is not None:
            return serve_asset(asset, self._guard, scope, send)
        return self._api(scope, receive, send)
