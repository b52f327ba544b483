"""An operator at work: what counts as one, and for how long."""

import asyncio

import pytest

from afoot.core.facts import Limits
from afoot.engine.engine import Submission
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.api.router import ApiApp
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import Scope
from tests.serve.fake_gateway import TOKEN, faked, nap, site_of
from tests.serve.raw_transports import HOST, Exchange


def get(gateway: GatewayState, path: str, token: str = TOKEN) -> Exchange:
    """A request to the operator's API."""
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {token}".encode())]
    scope: Scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}
    return Exchange(
        ApiApp(gateway, Guard(accepted_hosts(23668, []), frozenset(), "", TOKEN)), scope, [b""], False
    )


def ago(gateway: GatewayState) -> float:
    """Seconds since an operator was seen."""
    return gateway.engine.clock.now() - gateway.engine.policy.seen


@faked
async def test_whoever_asks_the_api_is_there() -> None:
    """A1: with the operator's token; a look at the health is none, nor is a guess at the token."""
    async with site_of(nap) as gateway:
        for path, token in (("/healthz", TOKEN), ("/api/tools", "wrong"), ("/", TOKEN)):
            await get(gateway, path, token).done()
            assert gateway.engine.policy.seen == 0.0
        await get(gateway, "/api/tools").done()
        assert ago(gateway) < 1


@faked
@pytest.mark.parametrize("path", ["/api/events", "/api/calls/{id}/events"])
async def test_an_open_stream_is_somebody_there(path: str) -> None:
    """A1: at each beat, and no longer than it is open."""

    async def waits(run: object) -> str:
        await asyncio.sleep(280)
        return "done"

    async with site_of(waits, limits=Limits(idle_s=None)) as gateway:
        live = gateway.engine.submit(Submission("tool"))
        stream = get(gateway, path.replace("{id}", live.call.id))
        for _ in range(10):
            await asyncio.sleep(20)
            assert ago(gateway) <= 15.1
        stream.leave()
        await stream.done()
        await asyncio.sleep(70)
        assert ago(gateway) > 60
