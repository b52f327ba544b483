"""One request that follows one call: what is sent for it, and when; on every era and transport."""

import asyncio
from collections.abc import Callable, Mapping
from math import inf

from msgspec import UNSET

from afoot.core.call import Series
from afoot.core.facts import NOTHING, Finished, Opened, Question, Reading, Released, Started
from afoot.core.notices import notice
from afoot.core.ports import Handle
from afoot.engine.engine import Submission
from afoot.engine.live import Follower, Live
from afoot.errors import CallerError
from afoot.observe.eta import LEAST_S
from afoot.serve import patience, tasks
from afoot.serve.desk import attend, is_errand
from afoot.serve.forecast import usual_s
from afoot.serve.frames import advance, ahead, beside, catch_up, flush, is_staged, show
from afoot.serve.join import alike
from afoot.serve.manner import Manner, Outlet
from afoot.serve.site import Site
from afoot.serve.taping import tape
from afoot.wire import messages
from afoot.wire.messages import FrameMeta, Wanted

QUIET_S = 2.0  # no notice of ours before a call is this old (T5)
BIG = 900_000  # official clients take at most 1 MiB as one event of a stream
_SILENT = (Opened, Started, Released, Finished)  # facts that are no frame, unless they are stages


class Conversation:
    """Follows a call for one request until its last frame."""

    __slots__ = (
        "_sent", "_settled", "_timer", "after", "as_task", "begun", "below", "bell", "caller", "due", "extra",
        "foretells", "is_brief", "joins", "live", "manner", "mark", "missed", "outlet", "round", "series",
        "site", "stages", "stopped", "told", "waits", "want",
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
        self.waits = False  # for a call that another request opened; leaving is then no cancel
        self.joins = False  # a call that another request of its caller opened
        self.after: int | None = None  # the fact behind which a stream that broke goes on
        self.mark: Callable[[int, int], None] | None = None  # told which frame is which fact
        self.due = inf  # when to end at the latest, whatever the call does (H5)
        self.is_brief = False  # the caller said itself when
        self.as_task = False  # unless it is over soon, or asks first, its request ends with a task
        self.extra: list[bytes] = []  # frames that no fact of the call stands for
        self.told = False  # whether the caller knows which call this is
        self.missed = 0  # facts that this reader was too slow for, and does not know of yet
        self.stages = False
        self.below: dict[str, int] | None = None  # what the caller knows of the calls below
        self._settled = False
        self._timer: Handle | None = None
        self.begun = self._sent = site.engine.clock.now()
        self.foretells = self.begun + LEAST_S  # from when on the caller is told again how long it still takes

    def open(self, headers: Mapping[str, str] | None = None) -> None:
        """Open the call that is wanted; raises Fault."""
        site, want = self.site, self.want
        found = site.engine.catalog.known.get(want.name)
        if found is None and is_errand(site, want.name):
            self.waits = True  # for which call, is seen when it is held
            return
        is_more = want.answers or want.parent or want.task or want.key or want.capabilities.extensions
        if (
            is_more
            or found is None
            or found[1].requires
            or not found[1].plain
            or b"x-mcp-header" in bytes(found[1].definition)
        ):
            self._open(headers)
        else:
            if len(want.arguments) > site.settings.max_arguments_bytes:
                raise site.too_large()
            submission = Submission(
                want.name, want.arguments, self.caller, want.budget.idle_s, want.budget.left_s,
                trace=want.trace,
            )  # fmt: skip
            try:
                self.live = site.engine.submit(submission)
            except CallerError as error:
                raise site.refusal(error) from None
        forms = want.capabilities.elicitation  # as `Capabilities.can`, for what calls below may ask
        can_ask = forms is not None and ("form" in forms or not forms)
        self.live.can_ask = can_ask or (self.joins and self.live.can_ask)
        self.live.attached, self.live.request = 1, (want.id, self.manner.version)

    def _open(self, headers: Mapping[str, str] | None) -> None:
        """Open a call that wants more than the ordinary, or join one of the same arguments; raises Fault."""
        site, want, tool = self.site, self.want, self.site.tool(self.want.name)
        self.as_task = want.task = tasks.chosen(site, want, tool, modern=self.manner.modern)
        again = alike(site, want, tool, self.caller) if tool is not None and tool.join else None
        self.live, self.joins = again or site.open(want, self.caller, headers), again is not None
        self.round = self.live.round

    def cancel(self, by: str, reason: str) -> None:
        """The caller wants no answer any more, nor that the call goes on if this request opened it."""
        if not self.waits and not (by == "disconnect" and self.live.tool.on_disconnect == "detach"):
            self.site.engine.cancel(self.live, by, reason)
        self.stop()

    def stop(self) -> None:
        """End this request without an answer: its caller has cancelled it."""
        self.stopped = True
        self.bell.set()

    async def hold(self) -> None:
        """Send what the call has to say until it ends, or asks in a way that ends this request."""
        if self.waits and not await attend(self):
            return
        site, live, engine = self.site, self.live, self.site.engine
        engine.tapes is None or tape(self, engine.tapes)
        self.series = Series(live.series.last, live.series.total)
        self.stages = live.tool.lifecycle == "stages" and is_staged(live, self.want)
        hz = None if self.want.token is UNSET else site.settings.progress_hz
        follower = Follower(live, self.bell.set, engine.clock, hz)
        engine.young[id(self)] = self.settle
        engine.aging or engine.age()  # a retry starts nothing
        is_new = not (self.round or self.waits or self.joins or live.call.end or live.call.open)
        try:
            done = not is_new and await self._begin(follower)
            while not done:
                if not self.outlet.gone:  # else nobody took the last frames, and nobody rings for that
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
            _ = ours.repaired and site.count("reports repaired", ours.repaired)

    def settle(self) -> None:
        """The call is not one of the many that end at once: watch its caller, and mind its silence."""
        self._settled = True
        self.outlet.watch(self.bell.set)
        limit_s = patience.limit(self.site.settings, self.want.budget, self.want.client)
        self.due = min(self.due, self.begun + (0.0 if self.as_task else patience.SHARE * limit_s))
        self._arm()

    async def _begin(self, follower: Follower) -> bool:
        """What a call that is not new has to say at once: its end, or what it still asks."""
        call = self.live.call
        if self.after is not None:
            return await self._go_on(follower, self.after)
        catch_up(self, follower)
        if not (call.end or call.open):
            return False
        if call.end is None and self.live.recorded < call.seq:  # the answers it came with are on record first
            await self.site.recorded()
        frames, last = list[bytes](), None
        if call.open:
            last = self._pause(list(call.open.values()), follower, frames)
        elif call.end is not None and any(type(entry.fact) is Finished for entry in self.live.backlog):
            last = self._end(call.end, self.outlet.streaming)
        if last is not None:
            await self.outlet.finish(frames, last)
        elif frames:
            await self.outlet.send(frames)
        return last is not None

    async def _go_on(self, follower: Follower, after: int) -> bool:
        """Go on behind the fact that the caller had last; ask what it does not know to be asked."""
        call = self.live.call
        follower.seq = min(follower.seq, after)
        follower.number = min(follower.number, max(0, call.readings - 1))
        self.bell.set()
        if call.open and (frames := self.manner.ask(self, list(call.open.values()))[0]):
            await self.outlet.send(frames)
        ends = [entry.seq for entry in self.live.backlog if type(entry.fact) is Finished]
        if ends and ends[0] <= after:  # it had everything
            await self.outlet.finish((), None)
        return bool(ends) and ends[0] <= after

    async def _turn(self, follower: Follower) -> bool:
        """Send what is new; True when that was the last."""
        if self.stopped or self.outlet.gone:
            return await self._leave()
        taken = follower.take()
        frames, asked, self.extra = self.extra, list[Question](), list[bytes]()
        self.missed += taken.gap
        last, token = None, self.want.token
        for item in taken.items:
            if isinstance(item, Reading) and isinstance(token, int | str):
                meta = None if self.told else FrameMeta(self.live.call.id)  # as in `advance`
                meta = meta if self.live.below is None else beside(self, meta)
                meta = meta if item.at < self.foretells else ahead(self, item.at, meta)
                frames.append(messages.progress(token, self.series, item, meta))
                self.told, self.stages = True, False
            elif type(item) not in _SILENT or self.stages:
                show(self, item, frames, asked)
            if type(item) is Finished:
                last = self._end(item, bool(frames) or self.outlet.streaming)
        if last is None and (asked or self.due < inf):
            last = self._pause(asked, follower, frames)
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

    def _pause(self, asked: list[Question], follower: Follower, frames: list[bytes]) -> bytes | None:
        """Ask the caller in its era's manner, or part from it; the last frame, if that ends this request."""
        more, last = self.manner.ask(self, asked) if asked else ([], None)
        # Whoever leaves is to find it again, so it is on record first.
        if last is None and self.live.recorded and self.site.engine.clock.now() >= self.due:
            last = self.manner.part(self)
        if last is not None:
            flush(self, follower, frames)
        frames += more
        if more and self.mark is not None:
            self.mark(len(frames), follower.seq)
        return last

    async def _leave(self) -> bool:
        """Nobody is there any more, or the caller wants no answer."""
        if not self.waits and not (self.stopped and self.live.call.cancel):
            self.manner.left(self)  # also if it is stopped and its call is not: that runs for nobody now
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

    async def _tend(self) -> None:
        """Nothing came for a while: open the stream, or say that the call still lives (C6)."""
        now = self.site.engine.clock.now()
        settings = self.site.settings
        if not self.outlet.streaming and now >= self.begun + settings.sse_after_s:
            await self.outlet.keep_alive()
        if now >= self._sent + min(settings.notice_s, settings.keepalive_s):  # as `_arm` reckons, to the bit
            frames: list[bytes] = []
            if now - self.live.call.opened.at >= QUIET_S:
                told = notice(self.live.call, now, self.live.heard, usual_s(self.live))
                advance(self, told, messages.told(told, self.live.call, False), frames)
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
            due = min(due, self.begun + settings.sse_after_s)
        if self.live.recorded:  # else it is roused by that
            due = min(due, self.due)
        self._timer = self.site.engine.clock.at(due, self._rouse)

    def _rouse(self) -> None:
        self._timer = None
        self.bell.set()
