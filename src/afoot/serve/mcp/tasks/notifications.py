"""`TaskWatch` tells a client of changes of its tasks, on a stream that is held open, once a second (H3)."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Self

from afoot.core.facts import Logged, Released
from afoot.core.ports import CallOrigin
from afoot.engine.followers import Follower, Wakeup
from afoot.engine.live_call import LiveCall
from afoot.serve.access.guard import STDIO_CALLER, is_bridge
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.streams import EVENT_MAX_BYTES, ResponseStream
from afoot.serve.mcp.tasks.requests import find_task, task_status
from afoot.wire import mcp_2026, tasks
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, read_params
from afoot.wire.mcp_2026 import ListenFilter
from afoot.wire.results import Capabilities

NEWS_HZ = 1.0  # people read it
MAX_WATCHED = 1000  # tasks that one listener may follow
_NOT_TOLD = (Logged, Released)  # facts that change nothing in a task

Render = Callable[[LiveCall], list[bytes]]


class TaskWatch:
    """The tasks that one listener follows, and the stream on which it is told of their changes."""

    def __init__(
        self, gateway: GatewayState, wakeup: Wakeup, render: Render, most: float = EVENT_MAX_BYTES
    ) -> None:
        """`most`: bytes of a frame that its reader takes."""
        self._gateway = gateway
        self._wakeup = wakeup
        self._render = render
        self._most = most
        self._untold: set[str] = set()  # to be told of, whatever happens to them
        self._followed: dict[str, Follower] = {}
        self.stream: TaskNewsStream | None = None  # where news go now, or went last

    def follow(self, live: LiveCall) -> None:
        """Tell of this call from now on, and how it is now."""
        if live.call.id not in self._followed:
            follower = Follower(live, self._wakeup.wake, self._gateway.engine.clock, NEWS_HZ)
            self._followed[live.call.id] = follower
            self._untold.add(live.call.id)
            self._wakeup.wake()

    def over(self, stream: ResponseStream) -> "TaskNewsStream":
        """Tell of changes on this stream, between what else goes there; first of each task how it is now."""
        self.stream = TaskNewsStream(stream, news=self.take)
        self._untold = set(self._followed)
        if self._untold:
            self._wakeup.wake()
        return self.stream

    def drop_finished(self) -> None:
        """Follow tasks that are over no longer, if nobody listens."""
        if self.stream is None or self.stream.gone:
            for task, follower in list(self._followed.items()):
                if follower.live.call.is_finished:
                    self._drop(task)

    def tell_again(self, live: LiveCall) -> None:
        """Tell of this call once more, though nothing happened to it."""
        self._untold.add(live.call.id)
        self._wakeup.wake()

    def take(self) -> list[bytes]:
        """The frames for the tasks that changed since the last time."""
        frames: list[bytes] = []
        for task, follower in list(self._followed.items()):
            news = [item for item in follower.take().items if not isinstance(item, _NOT_TOLD)]
            live = follower.live
            if news or task in self._untold:
                self._untold.discard(task)
                frames += [frame for frame in self._render(live) if len(frame) <= self._most]
            if live.call.is_finished and follower.seq >= live.recorded:
                self._drop(task)
        return frames

    def _drop(self, task: str) -> None:
        self._followed.pop(task).close()
        self._untold.discard(task)

    def close(self) -> None:
        """Follow nothing any more."""
        for follower in self._followed.values():
            follower.close()
        self._followed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TaskNewsStream:
    """A stream that tells of tasks: `name` adds to a frame which task it is of, `news` come between."""

    def __init__(
        self,
        stream: ResponseStream,
        name: Callable[[bytes], bytes] = bytes,
        news: Callable[[], list[bytes]] = list,
    ) -> None:
        self._stream = stream
        self._name = name
        self._news = news

    @property
    def gone(self) -> bool:
        return self._stream.gone

    @property
    def streaming(self) -> bool:
        return self._stream.streaming

    @property
    def origin(self) -> CallOrigin:
        return self._stream.origin

    def watch(self, wake: Callable[[], object]) -> None:
        self._stream.watch(wake)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send these frames, and news of tasks behind them."""
        await self._stream.send([*map(self._name, frames), *self._news()])

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frames."""
        named = [*map(self._name, frames)]
        await self._stream.finish(named, None if last is None else self._name(last))

    async def keep_alive(self) -> None:
        """Send news of tasks; if there are none, keep the stream alive."""
        if news := self._news():
            await self._stream.send(news)
        else:
            await self._stream.keep_alive()


async def watch_tasks(
    gateway: GatewayState, message: Envelope, wanted: ListenFilter, caller: str, wakeup: Wakeup
) -> TaskWatch:
    """Follow the tasks that a listener of 2026-07-28 wants; `wanted` keeps only those that are its own."""
    if len(wanted.taskIds) > MAX_WATCHED:
        raise Fault(INVALID_PARAMS, f"params.notifications.taskIds: over {MAX_WATCHED}")
    request_id, meta = message.id, read_params(message, mcp_2026.PLAIN_DECODER).meta
    assert isinstance(request_id, int | str) and isinstance(meta, mcp_2026.RequestMeta2026)
    able = meta.capabilities if isinstance(meta.capabilities, Capabilities) else Capabilities()

    def render(live: LiveCall) -> list[bytes]:
        gateway.decline_unanswerable(live.call.open.values(), able)
        return [tasks.status_notification_2026(request_id, task_status(gateway, live), able, gateway.info)]

    is_pipe = caller == STDIO_CALLER or is_bridge(caller)  # which takes a line of any length
    watch = TaskWatch(gateway, wakeup, render, inf if is_pipe else EVENT_MAX_BYTES)
    known: list[str] = []
    for task in dict.fromkeys(wanted.taskIds):
        try:
            watch.follow(await find_task(gateway, task, caller))
        except Fault:
            continue
        known.append(task)
    wanted.taskIds = known
    return watch
