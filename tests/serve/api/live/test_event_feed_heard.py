"""A watcher of everything knows when each call was last heard, also where that is no fact and no reading."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from afoot.core.ports import Run
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.serve.access.principal import OPERATOR_PRINCIPAL
from afoot.serve.api.live.clocks import last_heard
from afoot.serve.api.live.event_feed import HEARD_STEP_S, events
from afoot.serve.api.request import ApiRequest
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import HttpResponse
from afoot.wire.framing import EventParser
from tests.serve.fake_gateway import faked, site_of

HEARD_BY = ("started", "answered", "reported")


class Watcher:
    """A connection that keeps the last sign of life of the only call, as a page does."""

    def __init__(self, gateway: GatewayState, after: str = "") -> None:
        self._parser = EventParser()
        self.heard: float | None = None
        self.frames = 0
        scope = {"query_string": f"after={after}".encode(), "headers": list[tuple[bytes, bytes]]()}
        reply = HttpResponse(self._send, 1.0)
        request = ApiRequest(gateway, scope, self._receive, reply, {}, OPERATOR_PRINCIPAL)
        self.stream = asyncio.create_task(events(request))

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        for event in self._parser.feed(message.get("body", b"")):
            told = json.loads(event.data)
            self.frames += 1
            for call in told.get("calls", ()):
                self.heard = call["clocks"]["heard"]
            for one in told.get("facts", ()):
                if one["fact"]["type"] in HEARD_BY:
                    self.heard = max(self.heard or 0.0, one["fact"]["at"])
            for one in told.get("readings", ()):
                self.heard = one["heard"]

    async def _receive(self) -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError


async def beats(run: Run) -> str:
    """A tool that reports twice, and then only lives."""
    for number in (1, 2):
        await asyncio.sleep(1)
        run.report(number, 10, None)
    for _ in range(20):
        await asyncio.sleep(0.7)
        run.alive()
    await asyncio.sleep(20)
    return "done"


def differs(watcher: Watcher, live: LiveCall) -> bool:
    """Whether the watcher would show another silence than the engine counts."""
    heard = last_heard(live.call, live.heard)
    if heard is None or watcher.heard is None:
        return heard is not watcher.heard
    return abs(heard - watcher.heard) >= HEARD_STEP_S


@faked
async def test_a_heartbeat_reaches_every_watcher() -> None:
    """V5, C5: within a frame, whether it watched from the start, came later, or came back."""
    async with site_of(beats) as gateway:
        engine = gateway.engine
        first = Watcher(gateway)
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(5)
        later = Watcher(gateway)
        again = Watcher(gateway, f"{engine.journal.epoch}:{engine.journal.position}")
        await asyncio.sleep(0.2)
        wrong = 0
        for _ in range(200):
            # A heartbeat of this very moment may still be on its way: it is given two frames.
            await asyncio.sleep(0.1)
            differing = [differs(one, live) for one in (first, later, again)]
            wrong += any(differing) and engine.clock.now() - live.heard > 0.1
        assert wrong == 0
        assert last_heard(live.call, live.heard) == first.heard == later.heard == again.heard
        for one in (first, later, again):
            one.stream.cancel()


@faked
async def test_a_call_that_is_silent_makes_no_frames() -> None:
    """V5: a page counts the silence by itself; the forecast is told where it changes."""

    async def silent(run: Run) -> str:
        run.report(1, 10, None)
        await asyncio.sleep(25)
        return "done"

    async with site_of(silent) as gateway:
        watcher = Watcher(gateway)
        gateway.engine.submit(Submission("tool"))
        await asyncio.sleep(2)
        before = watcher.frames
        await asyncio.sleep(7)
        assert watcher.frames == before
        watcher.stream.cancel()
