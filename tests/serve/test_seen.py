"""An operator at work: what counts as one, and for how long."""

import asyncio

import pytest

from afoot.core.facts import Limits
from afoot.engine.engine import Submission
from afoot.serve.api import routes
from afoot.serve.asgi import Scope
from afoot.serve.guard import Guard, hosts
from afoot.serve.site import Site
from tests.serve.double import TOKEN, faked, nap, site_of
from tests.serve.wires import HOST, Exchange


def get(site: Site, path: str, token: str = TOKEN) -> Exchange:
    """A request to the operator's API."""
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {token}".encode())]
    scope: Scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "query_string": b""}
    return Exchange(routes(site, Guard(hosts(23668, []), frozenset(), "", TOKEN)), scope, [b""], False)


def ago(site: Site) -> float:
    """Seconds since an operator was seen."""
    return site.engine.clock.now() - site.engine.policy.seen


@faked
async def test_whoever_asks_the_api_is_there() -> None:
    """A1: with the operator's token; a look at the health is none, nor is a guess at the token."""
    async with site_of(nap) as site:
        for path, token in (("/healthz", TOKEN), ("/api/tools", "wrong"), ("/", TOKEN)):
            await get(site, path, token).done()
            assert site.engine.policy.seen == 0.0
        await get(site, "/api/tools").done()
        assert ago(site) < 1


@faked
@pytest.mark.parametrize("path", ["/api/events", "/api/calls/{id}/events"])
async def test_an_open_stream_is_somebody_there(path: str) -> None:
    """A1: at each beat, and no longer than it is open."""

    async def waits(run: object) -> str:
        await asyncio.sleep(280)
        return "done"

    async with site_of(waits, limits=Limits(idle_s=None)) as site:
        live = site.engine.submit(Submission("tool"))
        stream = get(site, path.replace("{id}", live.call.id))
        for _ in range(10):
            await asyncio.sleep(20)
            assert ago(site) <= 15.1
        stream.leave()
        await stream.done()
        await asyncio.sleep(70)
        assert ago(site) > 60
