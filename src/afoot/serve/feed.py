"""Everything that happens, as one stream: a snapshot, then changes, at most twenty frames a second (H2).

The facts are read from the journal, so a slow watcher misses none and delays nobody; only while the journal
is away do they come from memory.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Entry, Finished, Opened, Reading, Reported, Result
from afoot.engine.bell import Bell
from afoot.engine.live import SAMPLE_S, Live
from afoot.engine.watch import KEPT, Watcher
from afoot.errors import StoreError
from afoot.observe.eta import Eta
from afoot.serve.asgi import Leaving
from afoot.serve.forecast import UNKNOWN, Outlook, foreseen, outlook
from afoot.serve.request import Request
from afoot.serve.site import Site
from afoot.serve.view import CallView, QuestionView, asked, encode
from afoot.wire import sse

HZ = 20
PAGE = 1000  # facts in one frame
LONG = 16 * 1024  # bytes of a value that this stream leaves out


class Snapshot(Struct, frozen=True):
    """What there is now. Facts of a call up to its `seq` are in it already."""

    now: float
    epoch: str
    pos: int
    version: str
    degraded: str | None
    keepalive_s: float  # a stream that is silent for longer is dead
    calls: list[CallView]
    questions: list[QuestionView]


class Seen(Struct, frozen=True):
    """The newest reading of a call, if it has one, and what is expected; `readings` counts them all."""

    call: str
    reading: Reading | None
    readings: int
    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    detached: bool = False


class Changes(Struct, frozen=True):
    """Facts in order, and the newest reading of each call that has a newer one."""

    now: float
    facts: list[Raw]
    readings: list[Seen]
    degraded: str | None


async def snapshot(request: Request) -> None:
    """What there is now, as the stream begins with it; its place in the stream is EPOCH:POS."""
    request.query()
    await request.answer(200, _present(request.site))


async def events(request: Request) -> None:
    """Stream everything until the watcher leaves or the gateway closes."""
    given = request.query("after")
    last = request.header(b"last-event-id") or given.get("after", "")
    site, reply = request.site, request.reply
    bell = Bell()
    leaving = Leaving(request.receive, reply, bell.ring)
    site.bells.append(bell)
    site.watching[request.session] += 1
    try:
        feed = _Feed(request, bell)
        with feed.watcher:
            await feed.begin(last)
            while not reply.gone and site.engine.closing is None and request.is_let_in:
                request.seen()  # whoever watches
                await feed.turn()
        if not reply.gone:
            await reply.finish((), None)
    finally:
        site.watching[request.session] -= 1
        site.bells.remove(bell)
        leaving.close()


class _Feed:
    """One watcher's position in the journal, and what it knows of each call."""

    def __init__(self, request: Request, bell: Bell) -> None:
        self._site = request.site
        self._engine = request.site.engine
        self._reply = request.reply
        self.watcher = Watcher(self._engine.watchers, self._see)
        self._bell = bell
        self._pos = 0
        self._sent: dict[str, int] = {}  # by call: the last fact it was sent
        self._numbers: dict[str, int] = {}  # by call: how many readings it knows of
        self._ahead: dict[
            str, tuple[float, Outlook]
        ] = {}  # by call: what it knows to be expected, and since when
        self._ended: list[Live] = []  # since the last frame: their last readings are due
        self._unrecorded: deque[Entry] = deque(maxlen=KEPT)  # facts that the journal may not have
        self._quiet_since = self._engine.clock.now()

    async def begin(self, last: str) -> None:
        """Go on behind the last event, if its place is still kept; else begin with what there is now."""
        why = await self._cannot_resume(last)
        if why is None:
            await self._reply.push(sse.comment("resumed"))
            return
        frames = sse.frame(encode({"reason": why}), "reset") if last else b""
        await self._reply.push(frames + self._snapshot())

    async def turn(self) -> None:
        """Send what is new, and wait for more; never sooner than a frame's time after the last."""
        clock = self._engine.clock
        began = clock.now()
        frame = await self._changes(began)
        if frame:
            self._quiet_since = began
        elif began - self._quiet_since >= self._site.settings.keepalive_s:
            self._quiet_since = began
            frame = sse.comment("alive")
        if frame:
            await self._reply.push(frame)
            await asyncio.sleep(max(0.0, began + 1 / HZ - clock.now()))
        # Readings ring no bell: while calls live they are looked for.
        wait_s = 1 / HZ if self._engine.calls() else self._site.settings.keepalive_s
        timer = clock.at(began + wait_s, self._bell.ring)
        await self._bell.wait()
        timer.cancel()

    def _see(self) -> None:
        """A fact was recorded. The engine forgets a call soon after its end."""
        entry = self.watcher.entries[-1]
        if type(entry.fact) is Finished and len(self._ended) < KEPT:
            self._ended.append(self._engine[entry.call])
        self._bell.ring()

    async def _cannot_resume(self, last: str) -> str | None:
        journal = self._engine.journal
        epoch, _, text = last.rpartition(":")
        if epoch != journal.epoch or not (text.isdecimal() and text.isascii()):
            return f"{last!r} is no place in this history" if last else "new"
        pos = int(text)
        if pos > journal.position or journal.position - pos > KEPT:
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
        self._sent = {live.call.id: live.call.seq for live in engine.calls()}
        self._numbers = {live.call.id: live.call.readings for live in engine.calls()}
        return sse.frame(encode(_present(self._site)), "snapshot", f"{engine.journal.epoch}:{self._pos}")

    async def _changes(self, now: float) -> bytes:
        before = self._pos
        facts = [Raw(encode(_cut(entry))) for entry in await self._facts() if self._is_new(entry)]
        readings = list(self._readings(now))
        if not facts and not readings:
            return b""
        place = f"{self._engine.journal.epoch}:{self._pos}" if self._pos > before else ""
        changes = Changes(now, facts, readings, self._engine.recorder.degraded)
        return sse.frame(encode(changes), "changes", place)

    async def _facts(self) -> list[Entry]:
        """The facts behind our position; then those that only memory has.

        The journal may be away, or a call was purged as soon as it had ended: it would never end here.
        """
        self._unrecorded.extend(self.watcher.take())
        try:
            found = await self._engine.journal.since(self._pos, PAGE)
        except StoreError:
            found = list[tuple[int, Entry]]()
            if self._engine.recorder.degraded is None:
                return []  # memory may have less than it will have
        if found:
            self._pos = found[-1][0]
        entries = [entry for _, entry in found]
        if len(entries) == PAGE:
            self._bell.ring()
            return entries
        entries += self._unrecorded
        if self._engine.recorder.degraded is None and len(self._sent) > 2 * len(self._engine.calls()) + PAGE:
            due = {entry.call for entry in (*self._unrecorded, *self.watcher.entries)}
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

    def _readings(self, now: float) -> Iterator[Seen]:
        """Of each call that has read further, or of which something else is expected than was."""
        numbers, known = self._numbers, self._ahead
        calls = {live.call.id: live for live in (*self._engine.calls(), *self._ended)}
        self._ended = []
        self._numbers = {name: live.call.readings for name, live in calls.items()}
        self._ahead = {name: self._expected(live, now, known.get(name)) for name, live in calls.items()}
        for name, live in calls.items():
            call, ahead = live.call, self._ahead[name][1]
            has_read = call.readings != numbers.get(name, 0) and call.latest is not None
            if has_read or (call.end is None and _differ(ahead, known.get(name, (0.0, UNKNOWN))[1])):
                yield Seen(
                    name, call.latest, call.readings, ahead.eta, ahead.rate, ahead.stalled, ahead.detached
                )

    def _expected(self, live: Live, now: float, known: tuple[float, Outlook] | None) -> tuple[float, Outlook]:
        """What is expected of a call; looked at once a second, as often as its readings are."""
        if known is not None and now - known[0] < SAMPLE_S and live.call.end is None:
            return known
        return now, outlook(self._engine, live, now)


def _present(site: Site) -> Snapshot:
    engine = site.engine
    now, calls = engine.clock.now(), engine.calls()
    return Snapshot(
        now, engine.journal.epoch, engine.journal.position, site.version, engine.recorder.degraded,
        site.settings.keepalive_s,
        [foreseen(engine, live, now) for live in calls],
        [one for live in calls for one in asked(live.call)],
    )  # fmt: skip


def _differ(ahead: Outlook, known: Outlook) -> bool:
    """Whether it is news without a reading: it stalls, is detached, or its end is in sight; or no more."""
    news = [(one.stalled, one.detached, one.eta is None) for one in (ahead, known)]
    return news[0] != news[1]


def _cut(entry: Entry) -> Entry:
    """The fact without its longest values; `/api/calls/ID` has them."""
    match entry.fact:
        case Opened() as fact if _size(fact.arguments) > LONG:
            return replace(entry, fact=replace(fact, arguments=_short(fact.arguments)))
        case Reported() as fact if _size(fact.data) + _size(fact.partial) + _size(fact.checkpoint) > LONG:
            parts = {name: _short(getattr(fact, name)) for name in ("data", "partial", "checkpoint")}
            return replace(entry, fact=replace(fact, **parts))
        case Finished(result=Result() as result) as fact if (
            _size(result.content) + _size(result.structured) > LONG
        ):
            content = Raw(b"[" + bytes(_short(result.content)) + b"]")
            short = Result(content, _short(result.structured), result.is_error)
            return replace(entry, fact=replace(fact, result=short))
        case _:
            return entry


def _size(value: Raw) -> int:
    return memoryview(value).nbytes


def _short(value: Raw) -> Raw:
    return Raw(encode({"omitted_bytes": _size(value)})) if _size(value) else NOTHING
