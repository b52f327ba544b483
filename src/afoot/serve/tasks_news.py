"""Tasks on a stream that is held open: each told of when it changes, at most once a second (H3)."""

from collections.abc import Callable, Sequence
from typing import Self

from afoot.core.facts import Logged, Released
from afoot.engine.bell import Bell
from afoot.engine.live import Follower, Live
from afoot.serve.manner import Outlet
from afoot.serve.site import Site
from afoot.serve.tasks import find, forsake, standing
from afoot.wire import mcp, tasks
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, params
from afoot.wire.mcp import Filter
from afoot.wire.messages import Capabilities

HZ = 1.0  # people read it
MOST = 1000  # tasks that one listener may follow
BIG = 900_000  # official clients take at most 1 MiB as one event; whoever polls gets the rest
_MUTE = (Logged, Released)  # facts that make no other task of it

Render = Callable[[Live], list[bytes]]


class Watching:
    """The tasks that one listener follows, and an outlet that carries news of them between the rest."""

    def __init__(self, site: Site, bell: Bell, render: Render) -> None:
        self._site = site
        self._bell = bell
        self._render = render
        self._fresh: dict[str, Live] = {}  # not told of yet
        self._followed: dict[str, Follower] = {}
        self.outlet: Carried | None = None  # where news go now

    def follow(self, live: Live) -> None:
        """Tell of this call from now on, and how it is now."""
        if len(self._followed) >= MOST:
            self.take()  # nobody listens, or those that are over would be gone
        if live.call.id not in self._followed:
            follower = Follower(live, self._bell.ring, self._site.engine.clock, HZ)
            self._followed[live.call.id] = follower
            self._fresh[live.call.id] = live
            self._bell.ring()

    def over(self, outlet: Outlet) -> "Carried":
        """The outlet, with news of tasks between what goes there."""
        self.outlet = Carried(outlet, self)
        return self.outlet

    def again(self, live: Live) -> None:
        """Tell of this call once more, though nothing happened to it."""
        self._fresh[live.call.id] = live
        self._bell.ring()

    def take(self) -> list[bytes]:
        """What changed since the last time."""
        frames: list[bytes] = []
        for task, follower in list(self._followed.items()):
            news = [item for item in follower.take().items if not isinstance(item, _MUTE)]
            live = follower.live
            if news or self._fresh.pop(task, None) is not None:
                frames += [frame for frame in self._render(live) if len(frame) <= BIG]
            if live.call.is_finished and follower.seq >= live.recorded:
                del self._followed[task]
                self._fresh.pop(task, None)
                follower.close()
        return frames

    def close(self) -> None:
        """Follow nothing any more."""
        for follower in self._followed.values():
            follower.close()
        self._followed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Carried:
    """An outlet of which tasks make use when something is sent, and when nothing is."""

    def __init__(self, outlet: Outlet, watching: Watching) -> None:
        self._outlet = outlet
        self._watching = watching

    @property
    def gone(self) -> bool:
        return self._outlet.gone

    @property
    def streaming(self) -> bool:
        return self._outlet.streaming

    def watch(self, ring: Callable[[], object]) -> None:
        self._outlet.watch(ring)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send these, and what is new of tasks behind them."""
        await self._outlet.send([*frames, *self._watching.take()])

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last."""
        await self._outlet.finish(frames, last)

    async def keep_alive(self) -> None:
        """Tell of tasks, if they changed; else only that the stream lives."""
        if news := self._watching.take():
            await self._outlet.send(news)
        else:
            await self._outlet.keep_alive()


async def watched(site: Site, message: Envelope, wanted: Filter, caller: str, bell: Bell) -> Watching:
    """The tasks that a listener of 2026-07-28 wants; those that are not its own it does not get."""
    if len(wanted.taskIds) > MOST:
        raise Fault(INVALID_PARAMS, f"params.notifications.taskIds: over {MOST}")
    request, can = message.id, params(message, mcp.PLAIN).meta
    assert isinstance(request, int | str) and isinstance(can, mcp.Meta)
    able = can.capabilities if isinstance(can.capabilities, Capabilities) else Capabilities()

    def render(live: Live) -> list[bytes]:
        forsake(site, live, able)
        return [tasks.told(request, standing(site, live), able, site.info)]

    watching = Watching(site, bell, render)
    known: list[str] = []
    for task in dict.fromkeys(wanted.taskIds):
        try:
            watching.follow(await find(site, task, caller))
        except Fault:
            continue
        known.append(task)
    wanted.taskIds = known
    return watching
