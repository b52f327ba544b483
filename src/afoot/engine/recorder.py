"""`Recorder` writes the facts of one loop pass in one go, and publishes them only then.

If the journal fails or is slow, the gateway is *degraded*: calls go on and facts wait in a ring, which is
bounded in facts and in bytes. Where it is full, large content of the oldest facts is left out first, and then
the oldest calls are.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Set

from msgspec.structs import replace

from afoot.core.call import is_advance
from afoot.core.fact_size import fact_bytes, without_content
from afoot.core.facts import Entry, Finished, Logged, Opened, Reading, Released, Reported, Sample
from afoot.core.last_words import last_words
from afoot.core.ports import Batch, CallRow, Journal
from afoot.engine.live_call import LiveCall
from afoot.errors import StoreError

MAX_RING_FACTS = 10_000  # facts kept in memory while the journal is away
MAX_RING_BYTES = 128 * 1024 * 1024  # of them together, and of what waits behind a write under way
PIECE_BYTES = 8 * 1024 * 1024  # of content that is encoded and written at once, or one fact if that has more
NOT_KEPT = "the history could not be written, and memory for it was full"
SLOW_S = 2.0
RETRY_S = 1.0
MAX_POINTS, SPREAD = 64, 32  # of a call, from which its pace is known; they lie over its whole way
CROWD = 16  # after a write with more facts, the next one waits a loop pass longer
_NO_READING = Reading(0.0)
_WITH_CONTENT = frozenset((Opened, Reported, Logged, Finished))  # facts that may be large

log = logging.getLogger("afoot.engine")


class Recorder:
    """Gathers the facts of a loop pass, writes them once, then publishes them.

    `publish` gets the entries, and whether the journal has them.
    """

    def __init__(self, journal: Journal, publish: Callable[[list[Entry], bool], None]) -> None:
        self._journal = journal
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._batch = Batch()
        self._batch_bytes = 0  # of content in it
        self._after: list[Callable[[], object]] = []
        self._when_back: list[
            Callable[[], object]
        ] = []  # actions that wait for facts in memory to be written
        self._ring = Batch()
        self._ring_bytes = 0
        self._slow = Batch()  # published already, and still being written
        self._waiting: frozenset[str] | None = frozenset()  # the calls in both; None: to be found anew
        # Living calls that fell out of the full ring, and whether the history has their beginning.
        self._forgotten: dict[str, bool] = {}
        self._gap = 0  # how many fell out since the history was last whole
        self._shed = 0  # facts whose content was left out since then
        self._restored = 0  # facts that were written from memory since then
        self._scheduled = False
        self._crowded = False
        self._writing: asyncio.Task[None] | None = None
        self._too_much: asyncio.Future[None] = self._loop.create_future()  # done: too much waits for a write
        self._retry: asyncio.TimerHandle | None = None
        self.degraded: str | None = None  # why

    def fact(self, entry: Entry, live: LiveCall) -> None:
        """Record a fact at the end of this loop pass; the end of a call makes a line in the list too."""
        batch = self._batch
        batch.entries.append(entry)
        end = entry.fact
        if type(end) in _WITH_CONTENT:
            self._batch_bytes += fact_bytes(end)
        if type(end) is Finished:
            call = live.call
            opened = call.opened
            latest = call.latest or _NO_READING
            batch.rows[call.id] = CallRow(
                call.id, opened.tool, opened.server, opened.caller, opened.at, call.state,
                end.outcome, end.at,
                latest.progress and float(latest.progress),  # a whole number may be too large for a store
                latest.total and float(latest.total),
                last_words(call),
                call.started,
                call.approved if call.questions or call.redefined else opened.approval.replace("ask", "none"),
                opened.parent or "", opened.key,
                None if call.started is None else call.spent_s,
            )  # fmt: skip
        if not self._scheduled:
            self._scheduled = True
            # The write comes at the end of this loop pass, so that all facts of the pass share it. Among many
            # calls it comes one pass later, so that more of them do: writing a call measured 116 µs alone and
            # 47 µs among fifty (`store/schema.py`).
            if self._crowded:
                self._loop.call_soon(self._loop.call_soon, self._flush)
            else:
                self._loop.call_soon(self._flush)

    def sample(self, live: LiveCall, now: float, *, is_fact: bool = False) -> None:
        """Record the newest reading of a call with the facts of this pass; `is_fact`: it is one of them."""
        call, points = live.call, live.points
        latest = call.latest
        if latest is not None:
            if not is_fact:
                left_out = max(0, call.readings - live.sampled_number - 1)
                self._batch.samples.append(Sample(call.id, call.readings, latest, left_out))
            if live.advance is None or is_advance(live.advance, latest):
                live.advance = latest
            is_repeated = bool(points) and latest.progress == points[-1][1]
            if latest.progress is not None and call.since is not None and not is_repeated:
                at = call.spent_s + now - call.since
                if points and latest.progress < points[-1][1]:
                    points.clear()  # it begins again: another attempt, or its next phase
                gap_s = at - points[-1][0] if points else at
                if len(points) > 1 and at - points[-2][0] < at / SPREAD:
                    points.pop()  # the longer the way, the further apart
                elif len(points) == MAX_POINTS:
                    del points[::2]  # the newest stays
                points.append((at, latest.progress, latest.total, gap_s))
        if is_fact:
            return
        live.sampled = now
        live.sampled_number = call.readings
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def place(self, call: str, place: str) -> None:
        """Record, with the facts of this pass, up to where they have what a function elsewhere said."""
        self._batch.places[call] = place
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    async def recorded(self) -> None:
        """Wait until all facts so far are recorded."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.then(lambda: done.done() or done.set_result(None))
        await done

    def then(self, action: Callable[[], object]) -> None:
        """Do something once all facts so far are recorded."""
        self._after.append(action)
        # A write under way flushes again at its end; but one that takes too long, or brings the history back,
        # holds up nobody.
        if not self._scheduled and (self._writing is None or self.degraded is not None):
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def once_written(self, action: Callable[[], object]) -> None:
        """Do something once all facts so far are in the journal, however long that takes."""
        self.then(lambda: action() if self.degraded is None else self._when_back.append(action))

    async def written(self) -> None:
        """Wait until all facts so far are in the journal, however long that takes."""
        done: asyncio.Future[None] = self._loop.create_future()
        self.once_written(lambda: done.done() or done.set_result(None))
        await done

    def kept(self, call: str, after: int) -> list[Entry]:
        """The facts of a call behind number `after` that only memory has."""
        waiting = (*self._slow.entries, *self._ring.entries)
        return [entry for entry in waiting if entry.call == call and entry.seq > after]

    def newest_kept(self) -> dict[str, int]:
        """Map each call to the number of its newest fact that is not stored yet."""
        return {entry.call: entry.seq for entry in (*self._slow.entries, *self._ring.entries)}

    def keyed(self, caller: str, key: str) -> str | None:
        """The newest ended call with this idempotency key, among those whose end is not stored yet."""
        for rows in (self._ring.rows, self._slow.rows):
            for row in reversed(rows.values()):
                if row.key == key and row.caller == caller:
                    return row.id
        return None

    def waiting(self) -> Set[str]:
        """The calls of which facts wait in memory. The set is kept until it changes: a purge looks often."""
        if self._waiting is None:
            self._waiting = frozenset(entry.call for entry in (*self._slow.entries, *self._ring.entries))
        return self._waiting

    def check(self) -> None:
        """Look whether the history is still there; a gateway without calls would not notice."""
        if self.degraded is None and self._writing is None:
            try:
                self._journal.check()
            except StoreError as error:
                self._degrade(str(error), Batch())

    @property
    def unrecorded(self) -> int:
        """The number of facts that wait in memory."""
        return len(self._ring.entries)

    async def close(self) -> None:
        """Write the rest, if it can be written."""
        while self._scheduled or self._writing is not None:
            await (self._writing or asyncio.sleep(0))
        if self._retry is not None:
            self._retry.cancel()
            self._recover()
        while self._writing is not None:
            await self._writing

    def _flush(self) -> None:
        self._scheduled = False
        self._crowded = len(self._batch.entries) > CROWD
        if self._writing is not None and self.degraded is None:
            # The write under way flushes again when it is done; or now, if too much waits behind it.
            if self._batch_bytes > MAX_RING_BYTES and not self._too_much.done():
                self._too_much.set_result(None)
            return
        batch = self._batch
        self._batch = Batch()
        batch.content_bytes = self._batch_bytes
        is_heavy = self._batch_bytes > PIECE_BYTES
        self._batch_bytes = 0
        after = self._after
        self._after = []
        if is_heavy and self.degraded is None:
            batch, self._batch = split(batch)
            self._batch_bytes = sum(fact_bytes(entry.fact) for entry in self._batch.entries)
            if self._batch.entries:
                self._after = after
                after = list[Callable[[], object]]()
        if self.degraded is not None:
            self._keep(batch)
            self._seen(batch, after, False)
            return
        began = self._loop.time()
        try:
            pending = self._journal.write(self._whole(batch) if self._forgotten else batch)
        except Exception as error:  # a bug of the journal must not leave every caller without an answer
            self._degrade(_why(error), batch)
            self._seen(batch, after, False)
            return
        if pending is not None:
            self._writing = self._loop.create_task(self._await(pending, batch, after))
            return
        self._publish(batch.entries, True)
        for action in after:
            action()
        if self._loop.time() - began > SLOW_S:
            self._degrade(f"a write took over {SLOW_S:g} s", Batch())
        if self._batch.entries and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _seen(self, batch: Batch, after: list[Callable[[], object]], recorded: bool) -> None:
        self._publish(batch.entries, recorded)
        for action in after:
            action()

    async def _await(self, pending: Awaitable[None], batch: Batch, after: list[Callable[[], object]]) -> None:
        """Wait for a write in a thread; after SLOW_S the calls go on without it."""
        write = asyncio.ensure_future(pending)
        too_much = self._too_much = self._loop.create_future()
        await asyncio.wait([write, too_much], timeout=SLOW_S, return_when=asyncio.FIRST_COMPLETED)
        done = write.done()
        if not done:
            slow = f"a write takes over {SLOW_S:g} s"
            self._mark(f"over {MAX_RING_BYTES} bytes wait for a write" if too_much.done() else slow)
            self._set_slow(batch)
            self._seen(batch, after, False)
            self._flush()  # what waited behind it goes on too
            await asyncio.wait([write])
        self._writing = None
        self._set_slow(Batch())
        if error := write.exception():
            later = self._take_ring()
            self._degrade(_why(error), batch)
            self._keep(later)
        if done:
            self._seen(batch, after, error is None)
        if self.degraded is not None and self._retry is None:
            self._recover()
        if self._batch.entries or self._batch.samples or self._batch.places or self._after:
            self._flush()

    def _mark(self, why: str) -> None:
        if self.degraded is None:
            log.error("history is degraded: %s; calls go on, facts wait in memory", why)
        self.degraded = why

    def _degrade(self, why: str, batch: Batch) -> None:
        self._mark(why)
        self._keep(batch)
        if self._retry is None:
            self._retry = self._loop.call_later(RETRY_S, self._recover)

    def _keep(self, batch: Batch) -> None:
        ring = self._ring
        if self._forgotten:
            batch = self._whole(batch)
        ring.entries.extend(batch.entries)
        ring.samples.extend(batch.samples[: MAX_RING_FACTS - len(ring.samples)])
        ring.rows.update(batch.rows)
        ring.places.update(batch.places)
        self._ring_bytes += sum(fact_bytes(entry.fact) for entry in batch.entries)
        self._waiting = None
        if self._ring_bytes > MAX_RING_BYTES:
            self._shed_content(ring.entries)
        while len(ring.entries) > MAX_RING_FACTS or self._ring_bytes > MAX_RING_BYTES:
            oldest = next((one for one in ring.entries if type(one.fact) is not Finished), None)
            if oldest is None:
                break
            self._forgotten[oldest.call] = oldest.seq > 1
            self._gap += 1
            self._ring = ring = self._whole(ring)
            self._ring_bytes = sum(fact_bytes(entry.fact) for entry in ring.entries)

    def _shed_content(self, entries: list[Entry]) -> None:
        """Leave out large content, that of the oldest facts first, until a quarter of the ring is free.

        Followers of a call that lives have its facts whole: only the history gets them without content.
        """
        for at, entry in enumerate(entries):
            if self._ring_bytes <= MAX_RING_BYTES * 3 // 4:
                break
            fact = without_content(entry.fact, NOT_KEPT)
            if fact is not entry.fact:
                self._ring_bytes -= fact_bytes(entry.fact) - fact_bytes(fact)
                self._shed += 1
                entries[at] = replace(entry, fact=fact)

    def _take_ring(self) -> Batch:
        """Empty the ring, and return everything that waited in it."""
        ring = self._ring
        self._ring = Batch()
        self._ring_bytes = 0
        self._waiting = None
        return ring

    def _set_slow(self, batch: Batch) -> None:
        self._slow = batch
        self._waiting = None

    def _whole(self, batch: Batch) -> Batch:
        """The batch without calls that fell out of the ring: a store has no call without its beginning.

        Where the store has the beginning, the end stays: else the next gateway would run the call again.
        """
        fell = self._forgotten
        kept = [
            one
            for one in batch.entries
            if one.call not in fell or (fell[one.call] and type(one.fact) is Finished)
        ]
        samples = [one for one in batch.samples if fell.get(one.call, True)]
        rows = {call: row for call, row in batch.rows.items() if fell.get(call, True)}
        for entry in batch.entries:
            if type(entry.fact) is Released:
                fell.pop(entry.call, None)
        return Batch(kept, samples, rows, batch.places)

    def _recover(self) -> None:
        """Write what waits in the ring, piece by piece; the history is back with the last one."""
        self._retry = None
        while True:
            piece, rest = split(self._take_ring())
            self._keep(rest)
            try:
                pending = self._journal.write(piece)
            except Exception as error:
                self._put_back(piece, error)
                return
            if pending is not None:
                self._set_slow(piece)
                self._writing = self._loop.create_task(self._restore(pending, piece))
                return
            self._restored += len(piece.entries)
            if not (self._ring.entries or self._ring.samples or self._ring.places):
                self._back()
                return

    def _put_back(self, piece: Batch, error: BaseException) -> None:
        """Keep a piece that could not be written before all that came later."""
        later = self._take_ring()
        self._keep(piece)
        self._keep(later)
        self._degrade(_why(error), Batch())

    async def _restore(self, pending: Awaitable[None], piece: Batch) -> None:
        """Wait until a thread has written what waited in memory; only then the history is back."""
        done = asyncio.ensure_future(pending)
        await asyncio.wait([done])
        self._writing = None
        self._set_slow(Batch())
        if error := done.exception():
            self._put_back(piece, error)
            return
        self._restored += len(piece.entries)
        if self._ring.entries or self._ring.samples or self._ring.places:
            self._recover()
        else:
            self._back()

    def _back(self) -> None:
        if self._gap:
            log.error("the history has a gap: %d calls did not fit into memory", self._gap)
        if self._shed:
            log.error("the history has a gap: %d results and reports are without content", self._shed)
        log.warning("history is back: %d facts were written from memory", self._restored)
        self._gap = self._shed = self._restored = 0
        self.degraded = None
        waiting, self._when_back = self._when_back, list[Callable[[], object]]()
        for action in waiting:
            action()


def split(batch: Batch) -> tuple[Batch, Batch]:
    """The first part of a batch, of at most PIECE_BYTES or one fact, and the rest.

    What belongs to the end of a call goes with its end; samples and places go last, after all facts.
    """
    size = 0
    for at, entry in enumerate(batch.entries):
        size += fact_bytes(entry.fact)
        if size > PIECE_BYTES and at:
            break
    else:
        return batch, Batch()
    first, rest = batch.entries[:at], batch.entries[at:]
    ended = {entry.call for entry in first if type(entry.fact) is Finished}
    rows = {call: row for call, row in batch.rows.items() if call in ended}
    later = {call: row for call, row in batch.rows.items() if call not in ended}
    return Batch(first, [], rows), Batch(rest, batch.samples, later, batch.places)


def _why(error: BaseException) -> str:
    if not isinstance(error, StoreError):
        log.error("the journal has a bug", exc_info=error)
    return str(error) if isinstance(error, StoreError) else repr(error)
