"""A gateway that was started for a caller ends a while after the last one, and not before."""

import asyncio

from afoot.serve.http_server.idle_exit import IdleExit
from afoot.serve.mcp.asgi import Receive, Scope, Send
from tests.serve.fake_gateway import faked, nap, now, site_of

S = 600.0


class Visits:
    """An application whose requests take as long as their scope says."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(scope["takes_s"])


def visit(linger: IdleExit, takes_s: float) -> "asyncio.Task[None]":
    """A request."""

    async def receive() -> dict[str, object]:
        raise AssertionError("not read")

    async def send(message: object) -> None:
        raise AssertionError(message)

    return asyncio.create_task(linger({"takes_s": takes_s}, receive, send))


@faked
async def test_it_ends_when_nobody_ever_came() -> None:
    """S3: not for ever for a caller that died before it asked."""
    async with site_of(nap) as gateway:
        await IdleExit(Visits(), gateway.engine.clock, lambda: False).wait_until_idle(S)
        assert now() == S


@faked
async def test_it_ends_a_while_after_the_last_request() -> None:
    """S3: an open stream is somebody, however silent."""
    async with site_of(nap) as gateway:
        linger = IdleExit(Visits(), gateway.engine.clock, lambda: False)
        over = asyncio.create_task(linger.wait_until_idle(S))
        first, second = visit(linger, 2000), visit(linger, 100)
        await asyncio.sleep(2000)
        assert not over.done()
        await asyncio.wait([over, first, second])
        assert now() == 2000 + S


@faked
async def test_a_call_that_runs_for_nobody_keeps_it_up() -> None:
    """H1: nothing is cut off because nobody watches."""
    async with site_of(nap) as gateway:
        busy = [True]
        linger = IdleExit(Visits(), gateway.engine.clock, lambda: busy[0])
        over = asyncio.create_task(linger.wait_until_idle(S))
        await asyncio.sleep(1500)
        busy.clear()
        busy.append(False)
        await over
        assert 1500 + S * 0.9 <= now() <= 1500 + S
