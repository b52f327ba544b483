"""A gateway inside somebody else's application."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from mcp import Client
from starlette.applications import Starlette
from starlette.routing import Mount

import afoot
from afoot.errors import CallerError
from afoot.gateway.asgi import AsgiApp
from afoot.serve.console import SECURITY_HEADERS

ERAS = ("legacy", "2026-07-28")


@afoot.tool
async def count(n: int, ctx: afoot.Context | None = None) -> int:
    """Count."""
    for i in range(n):
        if ctx:
            ctx.report(i + 1, n)
    return n


@afoot.tool
async def late() -> str:
    """A tool that comes later."""
    return "here"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder of the test's own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))


@asynccontextmanager
async def listening(application: Any) -> AsyncIterator[str]:
    """The address of an application that uvicorn serves."""
    config = uvicorn.Config(application, port=0, lifespan="on", log_level="error", ws="none")
    server = uvicorn.Server(config)
    sockets = [config.bind_socket()]
    serving = asyncio.create_task(server.serve(sockets))
    try:
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def asked(
    app: AsgiApp,
    path: str = "/mcp",
    client: str = "127.0.0.1",
    server: str = "127.0.0.1",
    root: str = "",
    **headers: str,
) -> tuple[int, str]:
    """The status and the body that a `tools/list` request gets, with these headers, from this address."""
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
    given = {
        "host": "127.0.0.1:8000",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/list",
        **headers,
    }
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "root_path": root, "client": (client, 5), "server": (server, 8000),
        "headers": [(key.encode(), value.encode()) for key, value in given.items()],
    }  # fmt: skip
    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        found = next(messages, None)
        if found is None:
            await asyncio.Event().wait()
        return found

    async def send(message: Any) -> None:
        sent.append(message)

    await asyncio.wait_for(app(scope, receive, send), 10)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:]).decode()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("prefix", ["", "/deep/tools"])
def test_an_application_mounts_a_gateway(era: str, prefix: str) -> None:
    """F5: below any path, with the lifespan of the outer application, for clients of both eras."""

    async def main() -> None:
        tools = afoot.asgi_app(count)
        outer = Starlette(routes=[Mount(prefix or "/", tools)], lifespan=tools.lifespan)
        seen: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        async with listening(outer) as url, Client(f"{url}{prefix}/mcp", mode=era) as client:
            result = await client.call_tool("count", {"n": 3}, progress_callback=note)
            assert (result.structured_content, seen[-1]) == ({"result": 3}, 3)
            tools.gateway.add_tool(late)
            assert [tool.name for tool in (await client.list_tools()).tools] == ["count", "late"]

    asyncio.run(main())


@pytest.mark.parametrize("era", ERAS)
def test_fastapi_mounts_a_gateway_beside_its_own_routes(era: str) -> None:
    """F5: with the gateway's lifespan as its own."""

    async def main() -> None:
        tools = afoot.asgi_app(count)
        outer = FastAPI(lifespan=tools.lifespan)

        @outer.get("/hello")
        async def hello() -> dict[str, str]:
            return {"hello": "world"}

        outer.mount("/tools", tools)
        async with listening(outer) as url, Client(f"{url}/tools/mcp", mode=era) as client:
            assert (await client.call_tool("count", {"n": 2})).structured_content == {"result": 2}
            async with httpx.AsyncClient() as plain:
                assert (await plain.get(f"{url}/hello")).json() == {"hello": "world"}

    asyncio.run(main())


def test_a_server_runs_it_by_itself() -> None:
    """F5: then the lifespan is that of ASGI; the gateway can be opened again."""

    async def main() -> None:
        tools = afoot.asgi_app(count)
        for _ in range(2):
            async with listening(tools) as url, Client(f"{url}/mcp") as client:
                assert (await client.call_tool("count", {"n": 1})).structured_content == {"result": 1}

    asyncio.run(main())


def test_a_request_before_the_lifespan_is_told_what_is_missing() -> None:
    """F5: outer applications do not run the lifespan of what they mount."""
    tools = afoot.asgi_app(count)
    status, body = asyncio.run(asked(tools))
    assert status == 503 and "lifespan=tools.lifespan" in body
    with pytest.raises(CallerError, match="lifespan"):
        tools.gateway.tools()


@pytest.mark.parametrize(
    ("request_from", "status"),
    [
        ({}, 401),  # a loopback address of no socket: whose it is cannot be told
        ({"authorization": "Bearer secret-of-the-test"}, 200),
        ({"client": "203.0.113.9"}, 401),
        ({"client": "203.0.113.9", "authorization": "Bearer secret-of-the-test"}, 200),
        ({"host": "evil.example:8000"}, 421),
        ({"host": "127.0.0.1:9999"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"host": "mcp.example", "authorization": "Bearer secret-of-the-test"}, 200),
    ],
)
def test_hosts_origins_and_users_are_checked_as_at_its_own_sockets(
    request_from: dict[str, str], status: int
) -> None:
    """F5, S1, S2, S6: who mounts a gateway opens it to nobody by that."""

    async def main() -> tuple[int, str]:
        tools = afoot.asgi_app(count, mcp_token="", allow_hosts=["mcp.example"])
        if "authorization" in request_from:
            tools = afoot.asgi_app(count, mcp_token="secret-of-the-test", allow_hosts=["mcp.example"])
        async with tools.lifespan():
            return await asked(tools, **request_from)

    got, body = asyncio.run(main())
    assert got == status, body


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/api/calls", "/nothing", "/"])
@pytest.mark.parametrize("is_open", [True, False], ids=["open", "not open"])
def test_every_answer_has_the_headers_of_its_own_server(path: str, is_open: bool) -> None:
    """S1: the outer server sets none, so a page of another site could frame the console, or guess types."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    async def run() -> None:
        app = afoot.asgi_app(count)
        scope = {
            "type": "http", "method": "GET", "path": path, "query_string": b"", "root_path": "",
            "headers": [(b"host", b"127.0.0.1:8000")],
            "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8000),
        }  # fmt: skip
        if is_open:
            async with app.lifespan():
                await app(scope, receive, send)
        else:
            await app(scope, receive, send)

    asyncio.run(run())
    headers = [(name.decode(), value.decode()) for name, value in sent[0]["headers"]]
    assert set(SECURITY_HEADERS) <= set(headers)
    names = [name for name, _ in headers]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("path", "status"), [("/tools/mcp", 401), ("/toolsmcp", 404), ("/tools", 405)])
def test_only_paths_below_its_own_are_those_of_a_mounted_gateway(path: str, status: int) -> None:
    """F6: some servers leave the path where it is mounted in front; another path may begin like it."""

    async def main() -> int:
        tools = afoot.asgi_app(count)
        async with tools.lifespan():
            return (await asked(tools, path, root="/tools"))[0]

    assert asyncio.run(main()) == status


def test_a_wrong_setting_is_told_at_once() -> None:
    """F5: before anything is opened."""
    with pytest.raises(CallerError, match="unknown setting 'idel_s'.*nearest: idle_s"):
        afoot.asgi_app(count, idel_s=5)


def test_calls_that_run_have_time_to_end() -> None:
    """F5, X1: the outer application closes, and the call finishes."""
    done: list[str] = []

    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @afoot.tool
        async def slow() -> str:
            """Waits."""
            begun.set()
            await go_on.wait()
            done.append("done")
            return "done"

        tools = afoot.asgi_app(slow)
        async with tools.lifespan():
            tools.gateway.submit("slow")
            await begun.wait()
            asyncio.get_running_loop().call_later(0.2, go_on.set)

    asyncio.run(main())
    assert done == ["done"]
