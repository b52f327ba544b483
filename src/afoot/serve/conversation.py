"""One request that follows one call: what is sent for it, and when; on every era and transport."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET

from afoot.core.call import Series
from afoot.core.facts import Answered, Asked, Fact, Finished, Logged, Question, Reading, Reported
from afoot.core.notices import notice, stages
from afoot.core.ports import Handle
from afoot.engine.bell import Bell
from afoot.engine.live import Live, Taken
from afoot.serve.site import Site
from afoot.wire import messages
from afoot.wire.messages import FrameMeta, ProgressMeta, Wanted

QUIET_S = 2.0  # no notice of ours before a call is this old (T5)


class Outlet(Protocol):
    """Where the frames of one request go. `gone`: nobody is there any more; `streaming`: frames can flow."""

    gone: bool
    streaming: bool

    async def send(self, frames: Sequence[bytes]) -> None: ...

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None: ...

    async def keep_alive(self) -> None: ...


class Manner(Protocol):
    """How an era asks its caller, tells it the end, and takes its leaving."""

    def ask(self, talk: "Conversation", asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Frames that ask, and the last frame if asking ends this request."""
        ...

    def end(self, talk: "Conversation", end: Finished, streamed: bool) -> bytes: ...

    def settled(self, talk: "Conversation", fact: Answered) -> list[bytes]:
        """Frames for a question that was answered."""
        ...

    def left(self, talk: "Conversation") -> None:
        """The caller went away before the last frame."""
        ...


class Conversation:
    """Follows a call for one request until its last frame."""

    __slots__ = (
        "_first", "_opened", "_sent", "_stages", "_timer", "bell", "caller", "extra", "live", "manner",
        "outlet", "round", "series", "site", "stopped", "want",
    )  # fmt: skip

    live: Live
    series: Series
    _stages: bool

    def __init__(self, site: Site, want: Wanted, caller: str, outlet: Outlet, manner: Manner) -> None:
        self.site = site
        self.want = want
        self.caller = caller
        self.outlet = outlet
        self.manner = manner
        self.bell = Bell()
        self.round = 0
        self.stopped = False
        self.extra: list[bytes] = []  # frames that no fact of the call stands for
        self._first = True
        self._timer: Handle | None = None
        self._opened = self._sent = site.engine.clock.now()

    def stop(self) -> None:
        """End this request without an answer: its caller has cancelled it."""
        self.stopped = True
        self.bell.ring()

    async def hold(self, live: Live) -> None:
        """Send what the call has to say until it ends, or asks in a way that ends this request."""
        self.live = live
        self.series = live.series.fork()
        self._stages = live.tool.lifecycle == "stages" and self.want.token is not UNSET
        hz = None if self.want.token is UNSET else self.site.settings.progress_hz
        with self.site.engine.follow(live, self.bell.ring, hz) as follower:
            done = await self._begin()
            while not done:
                await self.bell.wait()
                done = await self._turn(follower.take())
        if self._timer is not None:
            self._timer.cancel()
        live.series.last, live.series.total = self.series.last, self.series.total
        live.series.repaired += self.series.repaired

    async def _begin(self) -> bool:
        """What a call that is not new has to say at once: its end, or what it still asks."""
        call = self.live.call
        if call.end is not None and any(type(entry.fact) is Finished for entry in self.live.backlog):
            await self.outlet.finish((), self.manner.end(self, call.end, self.outlet.streaming))
            return True
        self._arm()
        if not call.open:
            return False
        frames, last = self.manner.ask(self, list(call.open.values()))
        return await self._give(frames, last)

    async def _turn(self, taken: Taken) -> bool:
        """Send what is new; True when that was the last."""
        if self.stopped or self.outlet.gone:
            if not self.stopped:
                self.manner.left(self)
            await self.outlet.finish((), None)
            return True
        frames = self.extra
        self.extra = []
        asked: list[Question] = []
        end: Finished | None = None
        for item in taken.items:
            if type(item) is Finished:
                end = item
            elif type(item) is Asked and item.question.id in self.live.call.open:
                asked.append(item.question)
            elif type(item) is Answered:
                frames += self.manner.settled(self, item)
            self._show(item, frames, taken.gap)
        last: bytes | None = None
        if end is not None:
            last = self.manner.end(self, end, bool(frames) or self.outlet.streaming)
        elif asked:
            more, last = self.manner.ask(self, asked)
            frames += more
        return await self._give(frames, last)

    async def _give(self, frames: list[bytes], last: bytes | None) -> bool:
        if last is not None:
            await self.outlet.finish(frames, last)
            return True
        if frames:
            await self.outlet.send(frames)
            self._sent = self.site.engine.clock.now()
        elif self._timer is None:
            await self._tend()
        if self._timer is None:
            self._arm()
        return False

    def _show(self, item: Fact | Reading, frames: list[bytes], gap: int) -> None:
        """Add the frames that this item means to this caller."""
        want = self.want
        if type(item) is Logged:
            if messages.wants_log(want.level, item.level):
                frames.append(messages.log(item))
        elif isinstance(want.token, int | str):
            if isinstance(item, Reading):
                self._progress(item, messages.told(item, self.live.call, want.partial), frames)
            elif isinstance(item, Reported):
                self._content(item, frames, gap)
            elif self._stages:
                for stage in stages(item):
                    self._progress(stage, FrameMeta(progress=ProgressMeta(source="engine")), frames)

    def _content(self, item: Reported, frames: list[bytes], gap: int) -> None:
        meta = messages.told(item, self.live.call, self.want.partial)
        if item.late or (meta is None and item.progress is None and item.message is None):
            return
        if gap:
            meta = meta or FrameMeta()
            meta.progress = meta.progress or ProgressMeta()
            meta.progress.missed = gap
        self._progress(Reading(item.at, item.progress, item.total, item.message), meta, frames)

    def _progress(self, reading: Reading, meta: FrameMeta | None, frames: list[bytes]) -> None:
        if self._first:  # the first frame says which call this is, for whoever loses the stream
            self._first = False
            meta = meta or FrameMeta()
            meta.call = self.live.call.id
        if reading.source == "tool":
            self._stages = False
        token = self.want.token
        assert isinstance(token, int | str)
        frames.append(messages.progress(token, self.series, reading, meta))

    async def _tend(self) -> None:
        """Nothing came for a while: open the stream, or say that the call still lives (C6)."""
        now = self.site.engine.clock.now()
        settings = self.site.settings
        if not self.outlet.streaming and now - self._opened >= settings.sse_after_s:
            await self.outlet.keep_alive()
        if now - self._sent < min(settings.notice_s, settings.keepalive_s):
            return
        if self.want.token is not UNSET and now - self.live.call.opened.at >= QUIET_S:
            frames: list[bytes] = []
            self._show(notice(self.live.call, now), frames, 0)
            await self.outlet.send(frames)
        else:
            await self.outlet.keep_alive()
        self._sent = now

    def _arm(self) -> None:
        """One lazy timer a request: when it fires, it is seen whether anything is due."""
        settings = self.site.settings
        due = self._sent + min(settings.notice_s, settings.keepalive_s)
        if not self.outlet.streaming:
            due = min(due, self._opened + settings.sse_after_s)
        self._timer = self.site.engine.clock.at(due, self._rouse)

    def _rouse(self) -> None:
        self._timer = None
        self.bell.ring()
