"""The router in front of all surfaces: each request reaches exactly one of them, by its path."""

import pytest

from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.mcp.asgi import App, Receive, Scope, Send
from afoot.serve.router import Router
from tests.serve.fake_gateway import faked
from tests.serve.raw_transports import HOST, Exchange

STATUSES = {"mcp": 291, "link": 292, "api": 293}


def surface(name: str) -> App:
    """An application that answers with its own status."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": STATUSES[name], "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return answer


async def status_of(kind: str, method: str, path: str) -> int:
    """The status of the surface that a request reaches."""
    guard = Guard(accepted_hosts(23668, []), frozenset())
    router = Router(guard, surface("mcp"), surface("link"), surface("api"))
    headers = [(b"host", HOST.encode())]
    scope: Scope = {"type": kind, "method": method, "path": path, "headers": headers}
    done = await Exchange(router, scope, [b""], is_cut=False).done()
    return done.status


@pytest.mark.parametrize(
    ("kind", "method", "path", "status"),
    [
        ("http", "POST", "/mcp", STATUSES["mcp"]),
        ("http", "HEAD", "/mcp", STATUSES["mcp"]),
        ("http", "POST", "/mcp/more", STATUSES["api"]),
        ("http", "GET", "/link", STATUSES["link"]),
        ("websocket", "GET", "/link", STATUSES["link"]),
        ("websocket", "GET", "/mcp", STATUSES["link"]),
        ("websocket", "GET", "/api/calls", STATUSES["link"]),
        ("http", "GET", "/", 200),
        ("http", "GET", "/calls/c1", 200),
        ("http", "GET", "/console/index.html", 200),
        ("http", "GET", "/console/none.js", STATUSES["api"]),
        ("http", "GET", "/healthz", STATUSES["api"]),
        ("http", "GET", "/api/calls", STATUSES["api"]),
        ("http", "GET", "/none", STATUSES["api"]),
    ],
)
@faked
async def test_each_path_has_one_surface(kind: str, method: str, path: str, status: int) -> None:
    """`/mcp`, `/link`, console and API stand side by side; every WebSocket is the link's to refuse."""
    assert await status_of(kind, method, path) == status
