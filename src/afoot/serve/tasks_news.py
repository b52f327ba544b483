"""Tasks on a stream that is held open: each told of when it changes, at most once a second (H3)."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Self

from afoot.core.facts import Logged, Released
from afoot.engine.bell import Bell
from afoot.engine.live import Follower, Live
from afoot.serve.guard import PIPE, is_bridge
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

    def __init__(self, site: Site, bell: Bell, render: Render, most: float = BIG) -> None:
        """`most`: bytes of a frame that its reader takes."""
        self._site = site
        self._bell = bell
        self._render = render
        self._most = most
        self._fresh: set[str] = set()  # to be told of, whatever happens to them
        self._followed: dict[str, Follower] = {}
        self.outlet: Carried | None = None  # where news go now, or went last

    def follow(self, live: Live) -> None:
        """Tell of this call from now on, and how it is now."""
        if live.call.id not in self._followed:
            follower = Follower(live, self._bell.ring, self._site.engine.clock, HZ)
            self._followed[live.call.id] = follower
            self._fresh.add(live.call.id)
            self._bell.ring()

    def over(self, outlet: Outlet) -> "Carried":
        """The outlet, with news of tasks between what goes there: first of each how it is."""
        self.outlet = Carried(outlet, news=self.take)
        self._fresh = set(self._followed)
        if self._fresh:
            self._bell.ring()
        return self.outlet

    def tidy(self) -> None:
        """Keep nothing that is over in mind for a listener that there is not."""
        if self.outlet is None or self.outlet.gone:
            for task, follower in list(self._followed.items()):
                if follower.live.call.is_finished:
                    self._drop(task)

    def again(self, live: Live) -> None:
        """Tell of this call once more, though nothing happened to it."""
        self._fresh.add(live.call.id)
        self._bell.ring()

    def take(self) -> list[bytes]:
        """What changed since the last time."""
        frames: list[bytes] = []
        for task, follower in list(self._followed.items()):
            news = [item for item in follower.take().items if not isinstance(item, _MUTE)]
            live = follower.live
            if news or task in self._fresh:
                self._fresh.discard(task)
                frames += [frame for frame in self._render(live) if len(frame) <= self._most]
            if live.call.is_finished and follower.seq >= live.recorded:
                self._drop(task)
        return frames

    def _drop(self, task: str) -> None:
        self._followed.pop(task).close()
        self._fresh.discard(task)

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
    """An outlet on which tasks are spoken of: `name` says of each frame whose it is, `news` come between."""

    def __init__(
        self, outlet: Outlet, name: Callable[[bytes], bytes] = bytes, news: Callable[[], list[bytes]] = list
    ) -> None:
        self._outlet = outlet
        self._name = name
        self._news = news

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
        await self._outlet.send([*map(self._name, frames), *self._news()])

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last."""
        named = [*map(self._name, frames)]
        await self._outlet.finish(named, None if last is None else self._name(last))

    async def keep_alive(self) -> None:
        """Tell of tasks, if they changed; else only that the stream lives."""
        if news := self._news():
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

    is_pipe = caller == PIPE or is_bridge(caller)  # which takes a line of any length
    watching = Watching(site, bell, render, inf if is_pipe else BIG)
    known: list[str] = []
    for task in dict.fromkeys(wanted.taskIds):
        try:
            watching.follow(await find(site, task, caller))
        except Fault:
            continue
        known.append(task)
    wanted.taskIds = known
    return watching
