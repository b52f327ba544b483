"""The events of one call as a stream: its past, then its present, without a gap or a repeat (H2)."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from afoot.core.facts import Entry, Fact, Finished, Opened, Reading, Sample, Started
from afoot.engine.bell import Bell
from afoot.engine.live import Follower, Live
from afoot.errors import StoreError
from afoot.observe.eta import Eta
from afoot.serve.asgi import Leaving
from afoot.serve.forecast import forecast
from afoot.serve.request import Request, Wrong
from afoot.serve.view import ReadingEvent, encode
from afoot.wire import sse


class Follow(Struct, frozen=True):
    """From where on, and whether to wait for what comes. `reset` says why it is from the beginning again."""

    after: int = 0
    live: bool = True
    reset: str = ""


def wanted(request: Request) -> Follow:
    """What the request asks for: `Last-Event-ID` or `after`, and `follow=no`; raises Wrong."""
    given = request.query("after", "follow")
    if given.get("follow", "yes") not in ("yes", "no"):
        raise Wrong(422, f"follow: must be yes or no, not {given['follow']!r}", fields=["follow"])
    live = given.get("follow", "yes") == "yes"
    last = request.header(b"last-event-id") or given.get("after", "")
    epoch, _, seq = last.rpartition(":")
    if seq and not (seq.isdecimal() and seq.isascii()):
        raise Wrong(422, "after: must be the id of an event, or a number of a fact", fields=["after"])
    if epoch and epoch != request.site.engine.journal.epoch:
        return Follow(0, live, f"epoch {epoch} is not this history's")
    return Follow(int(seq or 0), live)


async def follow(request: Request, live: Live, want: Follow) -> None:
    """Send the call's events until its end. A reader that is slow or gone disturbs nobody."""
    site, reply = request.site, request.reply
    bell = Bell()
    leaving = Leaving(request.receive, reply, bell.ring)
    site.bells.append(bell)
    try:
        with site.engine.follow(live, bell.ring, site.settings.progress_hz) as follower:
            stream = _Stream(request, follower, want)
            await stream.past()
            while want.live and not (stream.is_over or reply.gone) and request.is_let_in:
                await site.bell_or_beat(bell)
                request.seen()  # whoever reads along
                await stream.present()
        if not reply.gone:
            await reply.finish((), None)
    finally:
        site.bells.remove(bell)
        leaving.close()


def _in_order(items: Sequence[Fact | Reading]) -> list[Fact | Reading]:
    """The same items, no reading before the start of its call: within one instant `take` puts it first."""
    early = [item for item in items if isinstance(item, Reading)]
    found: list[Fact | Reading] = []
    for item in items:
        if isinstance(item, Reading):
            continue
        while early and _is_before(early[0], item):
            found.append(early.pop(0))
        found.append(item)
    return found + early


def _is_before(reading: Reading, fact: Fact) -> bool:
    """Whether a reading belongs before a fact; within one instant, what begins comes first."""
    if isinstance(fact, Opened | Started):
        return reading.at < fact.at and isinstance(fact, Started) and fact.attempt > 1
    return reading.at <= fact.at


class _Stream:
    """One reader of one call."""

    def __init__(self, request: Request, follower: Follower, want: Follow) -> None:
        self._reply = request.reply
        self._engine = request.site.engine
        self._journal = self._engine.journal
        self._follower = follower
        self._want = want
        self._id = follower.live.call.id
        self._clock = self._engine.clock
        self._beat_s = request.site.settings.keepalive_s
        self._sent = 0.0
        self._is_new = self._id in self._engine
        self.is_over = False

    async def past(self) -> None:
        """Everything up to where the follower began."""
        until, number = self._follower.seq, self._follower.number
        latest = self._follower.live.call.latest
        facts = await self._facts(self._want.after, until)
        samples = [one for one in await self._samples(number) if one.number <= number or not number]
        if latest is not None and number > (samples[-1].number if samples else 0):
            samples.append(Sample(self._id, number, latest))
        if self._want.after:
            since = facts[0].fact.at if facts else 0.0
            samples = [one for one in samples if one.reading.at >= since] if facts else samples[-1:]
        frames = [sse.frame(encode({"reason": self._want.reset}), "reset")] if self._want.reset else []
        frames += self._merged(facts, samples)
        await self._send(frames)

    async def present(self) -> None:
        """What is new."""
        if self._reply.gone:
            return
        before = self._follower.seq
        taken = self._follower.take()
        frames: list[bytes] = []
        if taken.gap:
            frames += [self._fact(one) for one in await self._facts(before, before + taken.gap)]
        seq = before + taken.gap
        eta = forecast(self._engine, self._follower.live, self._clock.now())
        for item in _in_order(taken.items):
            if isinstance(item, Reading):
                frames.append(self._reading(item, eta=eta))
            else:
                seq += 1
                frames.append(self._fact(Entry(self._id, seq, item)))
        await self._send(frames)

    async def _send(self, frames: Sequence[bytes]) -> None:
        call = self._follower.live.call
        # The end may lie before where the reader began; then there is nothing to wait for.
        self.is_over = self.is_over or (call.is_finished and self._follower.seq >= call.seq)
        now = self._clock.now()
        if frames or now - self._sent >= self._beat_s:
            self._sent = now
            await self._reply.push(b"".join(frames) or sse.comment("alive"))

    async def _facts(self, after: int, until: int) -> list[Entry]:
        """The facts behind `after`, however long ago they fell out of memory."""
        kept = [one for one in self._follower.live.backlog if after < one.seq <= until]
        if len(kept) < until - after:
            try:
                found = await self._journal.facts(self._id, after)
            except StoreError:
                return kept  # what memory has is better than nothing while the history is away
            kept = found if len(found) > len(kept) else kept
        return [one for one in kept if one.seq <= until]

    async def _samples(self, number: int) -> list[Sample]:
        """The readings in the history; a call that lives and has made none needs no look."""
        if not number and self._is_new:
            return []
        try:
            return await self._journal.samples(self._id)
        except StoreError:
            return []

    def _merged(self, facts: Sequence[Entry], samples: Sequence[Sample]) -> Iterator[bytes]:
        waiting = list(reversed(samples))
        for entry in facts:
            while waiting and _is_before(waiting[-1].reading, entry.fact):
                yield self._reading(waiting[-1].reading, waiting.pop().left_out)
            yield self._fact(entry)
        for sample in reversed(waiting):
            yield self._reading(sample.reading, sample.left_out)

    def _fact(self, entry: Entry) -> bytes:
        self.is_over = self.is_over or type(entry.fact) is Finished
        return sse.frame(encode(entry), "fact", f"{self._journal.epoch}:{entry.seq}")

    def _reading(self, reading: Reading, left_out: int = 0, eta: Eta | None = None) -> bytes:
        return sse.frame(encode(ReadingEvent(self._id, reading, left_out, eta)), "reading")
