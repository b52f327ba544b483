"""`events` streams the events of all calls: a snapshot, then changes, at most twenty frames a second (H2).

The facts are read from the journal, so a slow watcher misses none and delays nobody. Only while the journal
cannot be read do they come from memory.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.facts import (
    NOTHING,
    Entry,
    Finished,
    Interrupted,
    Opened,
    Reading,
    Reported,
    Result,
    Started,
)
from afoot.engine.followers import MAX_QUEUED_FACTS, Wakeup, Watcher
from afoot.engine.live_call import SAMPLE_S, LiveCall
from afoot.errors import StoreError
from afoot.observe.eta import Eta
from afoot.serve.api.live.call_events import is_position
from afoot.serve.api.live.clocks import last_heard
from afoot.serve.api.request import ApiRequest
from afoot.serve.api.views import (
    NO_FORECAST,
    CallForecast,
    CallView,
    QuestionView,
    call_view_with_forecast,
    encode_json,
    forecast,
    open_questions,
)
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import DisconnectWatch
from afoot.wire import framing

MAX_FRAMES_PER_S = 20
FACTS_PER_FRAME = 1000  # facts in one frame
LONG_VALUE = 16 * 1024  # bytes; a longer value is left out of this stream
# A sign of life that moved by less is not sent alone. When the loop of a busy gateway is late, those of all
# calls move by a few hundredths of a second, which nobody sees.
HEARD_STEP_S = 0.05
_UNKNOWN = -1.0  # no time of a cancel


class FeedSnapshot(Struct, frozen=True):
    """The present state. Facts of a call up to its `seq` are in it already."""

    now: float
    epoch: str
    pos: int
    version: str
    degraded: str | None
    keepalive_s: float  # a stream that is silent for longer is dead
    calls: list[CallView]
    questions: list[QuestionView]
    cluster: bool = False  # whether this gateway is one of several


class LatestReading(Struct, frozen=True):
    """The newest reading of a call, if it has one, and its forecast; `readings` counts all readings.

    `cancel_due`: when a pending cancel comes, which can be withdrawn until then. `heard`: its last sign of
    life, as in `ClockView`.
    """

    call: str
    reading: Reading | None
    readings: int
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    detached: bool = False
    cancel_due: float | None = None
    heard: float | None = None


class FeedChanges(Struct, frozen=True):
    """New facts in order, and the newest reading of each call that has a newer one."""

    now: float
    facts: list[Raw]
    readings: list[LatestReading]
    degraded: str | None


async def snapshot(request: ApiRequest) -> None:
    """The present state, as the stream begins with it; its position in the stream is EPOCH:POS."""
    request.query()
    await request.answer(200, _snapshot_now(request.gateway))


async def events(request: ApiRequest) -> None:
    """Stream the events of all calls until the watcher leaves or the gateway closes."""
    given = request.query("after")
    last = request.header(b"last-event-id") or given.get("after", "")
    gateway, reply = request.gateway, request.reply
    wakeup = Wakeup()
    leaving = DisconnectWatch(request.receive, reply, wakeup.wake)
    gateway.wakeups.append(wakeup)
    gateway.watching[request.session] += 1
    try:
        feed = _Feed(request, wakeup)
        with feed.watcher:
            await feed.begin(last)
            while not reply.gone and gateway.engine.closing is None and request.is_still_admitted:
                request.seen()  # a person may be watching
                await feed.turn()
        if not reply.gone:
            await reply.finish((), None)
    finally:
        gateway.watching[request.session] -= 1
        gateway.wakeups.remove(wakeup)
        leaving.close()


class _Feed:
    """The position of one watcher in the journal, and the facts and readings that it has of each call."""

    def __init__(self, request: ApiRequest, wakeup: Wakeup) -> None:
        self._gateway = request.gateway
        self._engine = request.gateway.engine
        self._reply = request.reply
        self.watcher = Watcher(self._engine.observers, self._on_fact)
        self._wakeup = wakeup
        self._pos = 0
        self._sent: dict[str, int] = {}  # by call: the last fact it was sent
        self._numbers: dict[str, int] = {}  # by call: how many readings it knows of
        self._forecasts: dict[str, tuple[float, CallForecast]] = {}  # by call: its time, and itself
        self._cancels: dict[str, float | None] = {}  # by call: when a pending cancel comes
        self._heard: dict[str, float] = {}  # by call: the sign of life that it was sent
        self._ended: list[LiveCall] = []  # finished since the last frame: their last readings are due
        self._unrecorded: deque[Entry] = deque(maxlen=MAX_QUEUED_FACTS)  # facts that the journal may not have
        self._quiet_since = self._engine.clock.now()

    async def begin(self, last: str) -> None:
        """Resume behind the last event if its position is still kept; else begin with the present state."""
        why = await self._cannot_resume(last)
        if why is None:
            await self._reply.push(framing.comment_frame("resumed"))
            # A cancel may have been withdrawn since: the state of every call is told once.
            self._cancels = {live.call.id: _UNKNOWN for live in self._engine.calls()}
            return
        frames = framing.event_frame(encode_json({"reason": why}), "reset") if last else b""
        await self._reply.push(frames + self._snapshot())

    async def turn(self) -> None:
        """Send what is new, and wait for more; two frames keep the minimum distance."""
        clock = self._engine.clock
        began = clock.now()
        frame = await self._changes(began)
        if frame:
            self._quiet_since = began
        elif began - self._quiet_since >= self._gateway.settings.keepalive_s:
            self._quiet_since = began
            frame = framing.comment_frame("alive")
        if frame:
            await self._reply.push(frame)
            await asyncio.sleep(max(0.0, began + 1 / MAX_FRAMES_PER_S - clock.now()))
        # Readings wake nobody, so live calls are polled for them.
        wait_s = 1 / MAX_FRAMES_PER_S if self._engine.calls() else self._gateway.settings.keepalive_s
        timer = clock.at(began + wait_s, self._wakeup.wake)
        await self._wakeup.wait()
        timer.cancel()

    def _on_fact(self) -> None:
        """A fact was recorded. A finished call is noted here, because the engine drops it soon."""
        entry = self.watcher.entries[-1]
        if type(entry.fact) is Finished and len(self._ended) < MAX_QUEUED_FACTS:
            self._ended.append(self._engine[entry.call])
        self._wakeup.wake()

    async def _cannot_resume(self, last: str) -> str | None:
        journal = self._engine.journal
        epoch, _, text = last.rpartition(":")
        if epoch != journal.epoch or not is_position(text):
            return f"{last!r} is no place in this history" if last else "new"
        if self._engine.recorder.degraded is not None:
            # Facts that wait in memory have no position yet. Those from before this moment would come after
            # later facts of their calls, and be taken for old.
            return "the history cannot be written: its newest facts have no place in it"
        pos = int(text)
        if pos > journal.position or journal.position - pos > MAX_QUEUED_FACTS:
            return f"{last!r} is no longer kept"
        if pos < journal.position:
            first = await journal.since(pos, 1)
            if not first or first[0][0] != pos + 1:
                return f"{last!r} is no longer kept"
        self._pos = pos
        return None

    def _snapshot(self) -> bytes:
        engine = self._engine
        self._pos = engine.journal.position
        # Facts that wait in memory are written behind this position later, and are older than this snapshot.
        self._sent = engine.recorder.newest_kept()
        self._sent |= {live.call.id: live.call.seq for live in engine.calls()}
        self._numbers = {live.call.id: live.call.readings for live in engine.calls()}
        self._cancels = {live.call.id: self._gateway.cancel_due(live.call) for live in engine.calls()}
        self._heard = {live.call.id: live.heard for live in engine.calls()}
        return framing.event_frame(
            encode_json(_snapshot_now(self._gateway)), "snapshot", f"{engine.journal.epoch}:{self._pos}"
        )

    async def _changes(self, now: float) -> bytes:
        before = self._pos
        entries = [entry for entry in await self._facts() if self._is_new(entry)]
        for entry in entries:
            if isinstance(entry.fact, Started | Interrupted):
                self._heard.pop(entry.call, None)  # the fact sets the clocks; silence is counted anew from it
        facts = [Raw(encode_json(_without_long_values(entry))) for entry in entries]
        readings = list(self._readings(now))
        if not facts and not readings:
            return b""
        place = f"{self._engine.journal.epoch}:{self._pos}" if self._pos > before else ""
        changes = FeedChanges(now, facts, readings, self._engine.recorder.degraded)
        return framing.event_frame(encode_json(changes), "changes", place)

    async def _facts(self) -> list[Entry]:
        """The facts behind our position, then those that only memory has.

        The journal may be unreadable, or a call was purged as soon as it had ended: here it would never end.
        """
        self._unrecorded.extend(self.watcher.take())
        outage = self._engine.recorder.degraded
        until = self._engine.journal.position
        try:
            found = await self._engine.journal.since(self._pos, FACTS_PER_FRAME)
        except StoreError:
            found = list[tuple[int, Entry]]()
            # The journal has facts that come before those in memory, or will have more than memory has now.
            if self._engine.recorder.degraded is None or self._pos < self._engine.journal.position:
                return []
        if found:
            self._pos = found[-1][0]
        entries = [entry for _, entry in found]
        if found and self._pos < until:  # there are more, or they were purged and nothing is found next
            self._wakeup.wake()
            return entries
        if outage is not None and self._engine.recorder.degraded is not outage:
            # What memory had was written while the journal was read, and has a position now: without one, a
            # watcher that resumes would get it once more.
            self._wakeup.wake()
            return entries
        entries += self._unrecorded
        if (
            self._engine.recorder.degraded is None
            and len(self._sent) > 2 * len(self._engine.calls()) + FACTS_PER_FRAME
        ):
            due = {entry.call for entry in (*entries, *self.watcher.entries)}
            self._sent = {
                call: seq for call, seq in self._sent.items() if call in due or call in self._engine
            }
        self._unrecorded.clear()
        return entries

    def _is_new(self, entry: Entry) -> bool:
        if entry.seq <= self._sent.get(entry.call, 0):
            return False
        self._sent[entry.call] = entry.seq
        return True

    def _readings(self, now: float) -> Iterator[LatestReading]:
        """The calls with a new reading or sign of life, a changed forecast, or a cancel that came or went."""
        numbers, known, cancels, heard = self._numbers, self._forecasts, self._cancels, self._heard
        calls = {live.call.id: live for live in (*self._engine.calls(), *self._ended)}
        self._ended = []
        self._numbers = {name: live.call.readings for name, live in calls.items()}
        self._forecasts = {name: self._forecast(live, now, known.get(name)) for name, live in calls.items()}
        self._cancels = {name: self._gateway.cancel_due(live.call) for name, live in calls.items()}
        self._heard = {name: heard[name] for name in calls if name in heard}
        for name, live in calls.items():
            call, ahead = live.call, self._forecasts[name][1]
            has_read = call.readings != numbers.get(name, 0) and call.latest is not None
            has_cancel_changed = self._cancels[name] != cancels.get(name)
            # The watcher also knows the signs of life that are facts.
            was_heard = abs(live.heard - max(heard.get(name, 0.0), call.heard)) >= HEARD_STEP_S
            has_news = (
                has_cancel_changed
                or (was_heard and live.heard > call.heard)
                or _is_news(ahead, known.get(name, (0.0, NO_FORECAST))[1])
            )
            if has_read or (call.end is None and has_news):
                self._heard[name] = live.heard
                yield LatestReading(
                    name, call.latest, call.readings, ahead.eta, ahead.rate, ahead.stalled, ahead.detached,
                    self._cancels[name], last_heard(call, live.heard),
                )  # fmt: skip

    def _forecast(
        self, live: LiveCall, now: float, known: tuple[float, CallForecast] | None
    ) -> tuple[float, CallForecast]:
        """The forecast of a call, made once a second, as often as its readings are kept.

        The first estimate of the time left comes with the second reading.
        """
        is_first = known is not None and known[1].eta is None and live.call.readings > 1
        if known is not None and now - known[0] < SAMPLE_S and live.call.end is None and not is_first:
            return known
        return now, forecast(self._engine, live, now)


def _snapshot_now(gateway: GatewayState) -> FeedSnapshot:
    engine = gateway.engine
    now, calls = engine.clock.now(), engine.calls()
    return FeedSnapshot(
        now, engine.journal.epoch, engine.journal.position, gateway.version, engine.recorder.degraded,
        gateway.settings.keepalive_s,
        [_live_view(gateway, live, now) for live in calls],
        [one for live in calls for one in open_questions(live.call)],
        gateway.cluster is not None,
    )  # fmt: skip


def _live_view(gateway: GatewayState, live: LiveCall, now: float) -> CallView:
    seen = call_view_with_forecast(gateway.engine, live, now)
    due = gateway.cancel_due(live.call)
    return seen if due is None else replace(seen, cancel_due=due)


def _is_news(ahead: CallForecast, known: CallForecast) -> bool:
    """Whether a changed forecast is news: the call stalls, is detached or gets an ETA, or no longer."""
    news = [(one.stalled, one.detached, one.eta is None) for one in (ahead, known)]
    return news[0] != news[1]


def _without_long_values(entry: Entry) -> Entry:
    """The fact without its longest values; `/api/calls/ID` has them."""
    match entry.fact:
        case Opened() as fact if _byte_count(fact.arguments) > LONG_VALUE:
            return replace(entry, fact=replace(fact, arguments=_omitted(fact.arguments)))
        case Reported() as fact if (
            _byte_count(fact.data) + _byte_count(fact.partial) + _byte_count(fact.checkpoint) > LONG_VALUE
        ):
            parts = {name: _omitted(getattr(fact, name)) for name in ("data", "partial", "checkpoint")}
            return replace(entry, fact=replace(fact, **parts))
        case Finished(result=Result() as result) as fact if (
            _byte_count(result.content) + _byte_count(result.structured) > LONG_VALUE
        ):
            content = Raw(b"[" + bytes(_omitted(result.content)) + b"]")
            short = Result(content, _omitted(result.structured), result.is_error)
            return replace(entry, fact=replace(fact, result=short))
        case _:
            return entry


def _byte_count(value: Raw) -> int:
    return memoryview(value).nbytes


def _omitted(value: Raw) -> Raw:
    return Raw(encode_json({"omitted_bytes": _byte_count(value)})) if _byte_count(value) else NOTHING
