"""One request that follows one call: what is sent for it, and when; on every era and transport."""

import asyncio
from collections.abc import Mapping

from msgspec import UNSET

from afoot.core.call import Series
from afoot.core.facts import (
    NOTHING,
    Answered,
    Asked,
    Fact,
    Finished,
    Logged,
    Opened,
    Question,
    Reading,
    Released,
    Reported,
    Started,
)
from afoot.core.notices import notice, stages
from afoot.core.ports import Handle
from afoot.engine.engine import Submission
from afoot.engine.live import Follower, Live
from afoot.errors import CallerError
from afoot.serve.manner import Manner, Outlet
from afoot.serve.site import Site
from afoot.wire import messages
from afoot.wire.messages import FrameMeta, ProgressMeta, Wanted

QUIET_S = 2.0  # no notice of ours before a call is this old (T5)
BIG = 900_000  # official clients take at most 1 MiB as one event of a stream
_SILENT = (Opened, Started, Released)  # facts that no caller is told of


class Conversation:
    """Follows a call for one request until its last frame."""

    __slots__ = (
        "_missed", "_opened", "_sent", "_settled", "_stages", "_timer", "_told", "bell", "caller", "extra",
        "live", "manner", "outlet", "round", "series", "site", "stopped", "want",
    )  # fmt: skip

    live: Live
    series: Series

    def __init__(self, site: Site, want: Wanted, caller: str, outlet: Outlet, manner: Manner) -> None:
        self.site = site
        self.want = want
        self.caller = caller
        self.outlet = outlet
        self.manner = manner
        self.bell = asyncio.Event()
        self.round = 0
        self.stopped = False
        self.extra: list[bytes] = []  # frames that no fact of the call stands for
        self._told = False  # whether the caller knows which call this is
        self._missed = 0  # facts that this reader was too slow for, and does not know of yet
        self._stages = False
        self._settled = False
        self._timer: Handle | None = None
        self._opened = self._sent = site.engine.clock.now()

    def open(self, headers: Mapping[str, str] | None = None) -> None:
        """Open the call that is wanted; raises Fault."""
        site, want = self.site, self.want
        found = site.engine.catalog.known.get(want.name)
        if (
            found is None
            or want.answers
            or found[1].requires
            or b"x-mcp-header" in bytes(found[1].definition)
        ):
            self.live = site.open(want, self.caller, headers)
        else:
            if len(want.arguments) > site.settings.max_arguments_bytes:
                raise site.too_large()
            submission = Submission(
                want.name, want.arguments, self.caller, want.budget.idle_s, want.budget.left_s
            )
            try:
                self.live = site.engine.submit(submission)
            except CallerError as error:
                raise site.refusal(error) from None
        self.live.attached = 1

    def stop(self) -> None:
        """End this request without an answer: its caller has cancelled it."""
        self.stopped = True
        self.bell.set()

    async def hold(self) -> None:
        """Send what the call has to say until it ends, or asks in a way that ends this request."""
        site, live, outlet = self.site, self.live, self.outlet
        engine = site.engine
        self.series = Series(live.series.last, live.series.total)
        self._stages = live.tool.lifecycle == "stages" and _is_staged(live, self.want)
        hz = None if self.want.token is UNSET else site.settings.progress_hz
        follower = Follower(live, self.bell.set, engine.clock, hz)
        engine.young[id(self)] = self.settle
        if not engine.aging:  # a retry starts nothing
            engine.age()
        try:
            done = bool(live.call.end or live.call.open) and await self._begin()
            while not done:
                if not outlet.gone:  # else nobody took the last frames, and nobody rings for that
                    await self.bell.wait()
                self.bell.clear()
                done = await self._turn(follower)
        finally:
            if live.call.released is None:  # else it is forgotten, and its followers with it
                follower.close()
            engine.young.pop(id(self), None)
            if self._timer is not None:
                self._timer.cancel()
            ours, whole = self.series, live.series
            if (ours.last or 0.0) >= (whole.last or 0.0):  # another request may have come further
                whole.last, whole.total = ours.last, ours.total
            whole.repaired += ours.repaired
            if ours.repaired:
                site.count("reports repaired", ours.repaired)

    def settle(self) -> None:
        """The call is not one of the many that end at once: watch its caller, and mind its silence."""
        self._settled = True
        self.outlet.watch(self.bell.set)
        self._arm()

    async def _begin(self) -> bool:
        """What a call that is not new has to say at once: its end, or what it still asks."""
        call = self.live.call
        if call.end is None and self.live.recorded < call.seq:  # the answers it came with are on record first
            await self.site.recorded()
        if call.end is not None:
            if any(type(entry.fact) is Finished for entry in self.live.backlog):
                await self.outlet.finish((), self._end(call.end, self.outlet.streaming))
                return True
            return False
        frames, last = self.manner.ask(self, list(call.open.values()))
        if last is not None:
            await self.outlet.finish(frames, last)
        elif frames:
            await self.outlet.send(frames)
        return last is not None

    async def _turn(self, follower: Follower) -> bool:
        """Send what is new; True when that was the last."""
        if self.stopped or self.outlet.gone:
            return await self._leave()
        taken = follower.take()
        frames, asked, self.extra = self.extra, list[Question](), list[bytes]()
        self._missed += taken.gap
        last: bytes | None = None
        token = self.want.token
        for item in taken.items:
            if isinstance(item, Reading) and isinstance(token, int | str):
                meta = None if self._told else FrameMeta(self.live.call.id)  # as in `_progress`
                frames.append(messages.progress(token, self.series, item, meta))
                self._told, self._stages = True, False
            elif type(item) is Finished and not self._stages:
                last = self._end(item, bool(frames) or self.outlet.streaming)
            elif type(item) not in _SILENT or self._stages:
                last = self._show(item, frames, asked) or last
        if last is None and asked:
            last = self._ask(asked, follower, frames)
        if last is not None:
            if self.live.call.questions:
                frames += self.manner.over(self)
            await self.outlet.finish(frames, last)
        elif frames:
            await self.outlet.send(frames)
            self._sent = self.site.engine.clock.now()
        if last is None and self._settled and self._timer is None:
            await self._tend()
        return last is not None

    def _ask(self, asked: list[Question], follower: Follower, frames: list[bytes]) -> bytes | None:
        """Ask the caller in its era's manner; the last frame, if that ends this request."""
        more, last = self.manner.ask(self, asked)
        call = self.live.call
        if last is not None and call.latest is not None and follower.number < call.readings:
            # Held back by the rate; the newest value always goes out.
            self._progress(call.latest, None, frames)
        frames += more
        return last

    async def _leave(self) -> bool:
        """Nobody is there any more, or the caller wants no answer."""
        if not self.stopped:
            self.manner.left(self)
        await self.outlet.finish(self.manner.over(self), None)
        return True

    def _end(self, end: Finished, streamed: bool) -> bytes:
        """The last frame; a result too large for the stream is fetched by another request."""
        live, manner = self.live, self.manner
        info = self.site.info if manner.modern else NOTHING
        last = messages.result(self.want, live.call, end, modern=info, unrecorded=live.unrecorded)
        if len(last) > BIG and streamed and manner.capped:
            return manner.postpone(self)
        if self.round == live.round:
            live.attached -= 1
        return last

    def _show(self, item: Fact | Reading, frames: list[bytes], asked: list[Question]) -> bytes | None:
        """Add the frames that this item means to this caller; the last frame, if it is the end."""
        want = self.want
        if isinstance(item, Asked) and item.question.id in self.live.call.open:
            asked.append(item.question)
        elif isinstance(item, Answered):
            frames += self.manner.settled(self, item)
        elif isinstance(item, Logged):
            if messages.wants_log(want.level, item.level):
                frames.append(messages.log(item))
        elif isinstance(item, Reported):
            self._content(item, frames)
        elif self._stages and not isinstance(item, Reading):
            for stage in stages(item):
                self._progress(stage, FrameMeta(progress=ProgressMeta(source="engine")), frames)
        if isinstance(item, Finished):
            return self._end(item, bool(frames) or self.outlet.streaming)
        return None

    def _content(self, item: Reported, frames: list[bytes]) -> None:
        meta = messages.told(item, self.live.call, self.want.partial)
        if item.late or (meta is None and item.progress is None and item.message is None):
            return
        if self._missed:
            meta = meta or FrameMeta()
            meta.progress = meta.progress or ProgressMeta()
            meta.progress.missed, self._missed = self._missed, 0
        self._progress(Reading(item.at, item.progress, item.total, item.message), meta, frames)

    def _progress(self, reading: Reading, meta: FrameMeta | None, frames: list[bytes]) -> None:
        token = self.want.token
        if not isinstance(token, int | str):
            return
        if not self._told:  # the first frame says which call this is, for whoever loses the stream
            self._told = True
            meta = meta or FrameMeta()
            meta.call = self.live.call.id
        if reading.source == "tool":
            self._stages = False
        frames.append(messages.progress(token, self.series, reading, meta))

    async def _tend(self) -> None:
        """Nothing came for a while: open the stream, or say that the call still lives (C6)."""
        now = self.site.engine.clock.now()
        settings = self.site.settings
        if not self.outlet.streaming and now >= self._opened + settings.sse_after_s:
            await self.outlet.keep_alive()
        if now >= self._sent + min(settings.notice_s, settings.keepalive_s):  # as `_arm` reckons, to the bit
            frames: list[bytes] = []
            if now - self.live.call.opened.at >= QUIET_S:
                told = notice(self.live.call, now, self.live.heard)
                self._progress(told, messages.told(told, self.live.call, False), frames)
            if frames:
                await self.outlet.send(frames)
            else:
                await self.outlet.keep_alive()
            self._sent = now
        self._arm()

    def _arm(self) -> None:
        """One lazy timer a request: when it fires, it is seen whether anything is due."""
        settings = self.site.settings
        due = self._sent + min(settings.notice_s, settings.keepalive_s)
        if not self.outlet.streaming:
            due = min(due, self._opened + settings.sse_after_s)
        self._timer = self.site.engine.clock.at(due, self._rouse)

    def _rouse(self) -> None:
        self._timer = None
        self.bell.set()


def _is_staged(live: Live, want: Wanted) -> bool:
    """Whether to show stages: the caller sent a token, and the tool has not reported itself (T5)."""
    spoken = live.call.latest is not None or any(type(entry.fact) is Reported for entry in live.backlog)
    return want.token is not UNSET and not spoken
