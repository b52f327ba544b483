"""`stream_events` sends the events of one call: its past, then its present, without gap or repeat (H2)."""

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct

from afoot.core.call import precedes
from afoot.core.facts import Entry, Finished, Reading, Sample
from afoot.engine.followers import Follower, Wakeup
from afoot.engine.live_call import LiveCall
from afoot.errors import StoreError
from afoot.observe.eta import Eta
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.api.views import ReadingEvent, call_eta, encode_json
from afoot.serve.mcp.asgi import DisconnectWatch
from afoot.wire import framing

POSITION_DIGITS = 18  # a longer number is none that SQLite can hold


class FollowOptions(Struct, frozen=True):
    """The position to begin at, and whether to wait for new events.

    `reset`: why the stream begins again from the start.
    """

    after: int = 0
    live: bool = True
    reset: str = ""


def read_options(request: ApiRequest) -> FollowOptions:
    """The options of a request: `Last-Event-ID` or `after`, and `follow=no`; raises ApiError."""
    given = request.query("after", "follow")
    if given.get("follow", "yes") not in ("yes", "no"):
        raise ApiError(422, f"follow: must be yes or no, not {given['follow']!r}", fields=["follow"])
    live = given.get("follow", "yes") == "yes"
    last = request.header(b"last-event-id") or given.get("after", "")
    epoch, _, seq = last.rpartition(":")
    if seq and not is_position(seq):
        raise ApiError(422, "after: must be the id of an event, or a number of a fact", fields=["after"])
    if epoch and epoch != request.gateway.engine.journal.epoch:
        return FollowOptions(0, live, f"epoch {epoch} is not this history's")
    return FollowOptions(int(seq or 0), live)


def is_position(text: str) -> bool:
    """Whether a text is the number of a fact, or a position in the history."""
    return text.isdecimal() and text.isascii() and len(text) <= POSITION_DIGITS


async def stream_events(request: ApiRequest, live: LiveCall, want: FollowOptions) -> None:
    """Send the call's events until its end. A reader that is slow or gone disturbs nobody else."""
    gateway, reply = request.gateway, request.reply
    wakeup = Wakeup()
    leaving = DisconnectWatch(request.receive, reply, wakeup.wake)
    gateway.wakeups.append(wakeup)
    try:
        with gateway.engine.follow(live, wakeup.wake, gateway.settings.progress_hz) as follower:
            stream = _EventStream(request, follower, want)
            await stream.send_past()
            while want.live and not (stream.is_over or reply.gone) and request.is_still_admitted:
                await gateway.wait_or_keep_alive(wakeup)
                request.seen()  # a person may be reading
                await stream.send_new()
        if not reply.gone:
            await reply.finish((), None)
    finally:
        gateway.wakeups.remove(wakeup)
        leaving.close()


class _EventStream:
    """One reader of one call."""

    def __init__(self, request: ApiRequest, follower: Follower, want: FollowOptions) -> None:
        self._request = request
        self._reply = request.reply
        self._engine = request.gateway.engine
        self._journal = self._engine.journal
        self._follower = follower
        self._want = want
        self._id = follower.live.call.id
        self._clock = self._engine.clock
        self._beat_s = request.gateway.settings.keepalive_s
        self._sent = 0.0
        self._is_new = self._id in self._engine
        self.is_over = False

    async def send_past(self) -> None:
        """Send everything up to where the follower began."""
        await self._send(await self._read_past())

    async def send_new(self) -> None:
        """Send what is new."""
        if not self._reply.gone:
            await self._send(await self._read_new())

    # Both read into bytes: what they are made of leaves memory before a slow reader has taken them.

    async def _read_past(self) -> bytes:
        until, number = self._follower.seq, self._follower.number
        latest = self._follower.live.call.latest
        facts = await self._facts(self._want.after, until)
        samples = [one for one in await self._samples(number) if one.number <= number or not number]
        if latest is not None and number > (samples[-1].number if samples else 0):
            samples.append(Sample(self._id, number, latest))
        if self._want.after:
            since = facts[0].fact.at if facts else 0.0
            samples = [one for one in samples if one.reading.at >= since] if facts else samples[-1:]
        frames: list[bytes] = []
        if self._want.reset:
            frames.append(framing.event_frame(encode_json({"reason": self._want.reset}), "reset"))
        frames += self._merge(facts, samples)
        return b"".join(frames)

    async def _read_new(self) -> bytes:
        before = self._follower.seq
        taken = self._follower.take()
        frames: list[bytes] = []
        if taken.gap:
            frames += [self._fact(one) for one in await self._facts(before, before + taken.gap)]
        first = before + taken.gap + 1
        facts = [item for item in taken.items if not isinstance(item, Reading)]
        entries = [Entry(self._id, seq, fact) for seq, fact in enumerate(facts, first)]
        samples = [Sample(self._id, 0, item) for item in taken.items if isinstance(item, Reading)]
        eta = call_eta(self._engine, self._follower.live, self._clock.now())
        frames += self._merge(entries, samples, eta)
        return b"".join(frames)

    async def _send(self, data: bytes) -> None:
        call = self._follower.live.call
        # The call's end may be before the reader's position; then there is nothing to wait for.
        self.is_over = self.is_over or (call.is_finished and self._follower.seq >= call.seq)
        now = self._clock.now()
        if data or now - self._sent >= self._beat_s:
            self._sent = now
            # A reader for whom there is no room comes again, behind the last event that it has.
            with self._request.bounded(len(data)):
                await self._reply.push(data or framing.comment_frame("alive"))

    async def _facts(self, after: int, until: int) -> list[Entry]:
        """The facts behind `after`, also those that memory no longer has."""
        kept = [one for one in self._follower.live.backlog if after < one.seq <= until]
        if len(kept) < until - after:
            try:
                found = await self._journal.facts(self._id, after)
            except StoreError:
                return kept  # while the history cannot be read, memory is better than nothing
            kept = found if len(found) > len(kept) else kept
        return [one for one in kept if one.seq <= until]

    async def _samples(self, number: int) -> list[Sample]:
        """The readings in the history; a live call without readings has none there."""
        if not number and self._is_new:
            return []
        try:
            return await self._journal.samples(self._id)
        except StoreError:
            return []

    def _merge(
        self, facts: Sequence[Entry], samples: Sequence[Sample], eta: Eta | None = None
    ) -> Iterator[bytes]:
        """The frames of facts and readings, in the order in which they happened."""
        waiting = deque(samples)
        for entry in facts:
            while waiting and precedes(waiting[0].reading, entry.fact):
                yield self._reading(waiting.popleft(), eta)
            yield self._fact(entry)
        for sample in waiting:
            yield self._reading(sample, eta)

    def _fact(self, entry: Entry) -> bytes:
        self.is_over = self.is_over or type(entry.fact) is Finished
        return framing.event_frame(encode_json(entry), "fact", f"{self._journal.epoch}:{entry.seq}")

    def _reading(self, sample: Sample, eta: Eta | None) -> bytes:
        event = ReadingEvent(self._id, sample.reading, sample.left_out, eta)
        return framing.event_frame(encode_json(event), "reading")
