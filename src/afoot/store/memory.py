"""`MemoryJournal` keeps facts in memory: for tests, and for a call made without a gateway."""

import secrets
from collections.abc import Iterator, Sequence
from itertools import islice
from math import inf
from types import TracebackType
from typing import Self

from afoot.core.facts import Answered, Asked, Entry, Finished, HandedOver, Opened, Sample, Started
from afoot.core.ports import Batch, CallOutline, CallQuery, CallRow, PurgeRule
from afoot.errors import StoreError
from afoot.store.conditions import (
    APPROVED_BY_PEOPLE,
    ASKED_KINDS,
    MAX_ROWS,
    contains_text,
    has_stood_still,
    in_order,
    row_fits,
)


class MemoryJournal:
    """A journal in plain lists and dicts; a batch is recorded when `write` returns."""

    def __init__(self) -> None:
        self.epoch = secrets.token_hex(8)
        self._entries: dict[int, Entry] = {}  # by position
        self._last = 0
        self._calls: dict[str, dict[int, Entry]] = {}
        self._samples: dict[str, dict[int, Sample]] = {}
        self._rows: dict[str, CallRow] = {}
        self._keys: dict[tuple[str, str], set[str]] = {}  # the calls of each caller's keys
        self._live: dict[str, float] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def position(self) -> int:
        """The position of the last fact written."""
        return self._last

    @property
    def written_bytes(self) -> int:
        """Return None: memory has no file to measure."""
        return 0

    def write(self, batch: Batch) -> None:
        """Record a batch; raises StoreError for a fact that is recorded already."""
        self._check_open()
        new = {(entry.call, entry.seq) for entry in batch.entries}
        if len(new) < len(batch.entries) or any(seq in self._calls.get(call, ()) for call, seq in new):
            raise StoreError("history in memory: a fact with this number is there already")
        for entry in batch.entries:
            self._add(entry)
        for sample in batch.samples:
            self._samples.setdefault(sample.call, {})[sample.number] = sample
        for row in batch.rows.values():
            self._rows[row.id] = row
            if row.key:
                self._keys.setdefault((row.caller, row.key), set()).add(row.id)

    def check(self) -> None:
        """Memory is always there."""

    async def facts(self, call: str, after: int = 0) -> list[Entry]:
        """The facts of a call with a number over `after`."""
        self._check_open()
        return [entry for seq, entry in sorted(self._calls.get(call, {}).items()) if seq > after]

    async def samples(self, call: str) -> list[Sample]:
        """The readings of a call that the history keeps."""
        self._check_open()
        return [sample for _, sample in sorted(self._samples.get(call, {}).items())]

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """The facts of all calls behind a position, oldest first."""
        self._check_open()
        behind = (one for one in range(max(0, position) + 1, self._last + 1) if one in self._entries)
        return [(one, self._entries[one]) for one in islice(behind, max(0, limit))]

    async def find(self, query: CallQuery) -> list[CallRow]:
        """The calls that match, newest first, at most 1,000."""
        self._check_open()
        found = in_order([row for row in self._rows.values() if self._matches(row, query)], query.sort)
        limit = max(0, min(query.limit, MAX_ROWS))
        if query.after is not None:
            return found[max(0, len(found) - limit) :]
        return found[max(0, query.skip) :][:limit]

    async def outlines(self, query: CallQuery) -> list[CallOutline]:
        """All calls that match, newest first, in short."""
        self._check_open()
        found = in_order([row for row in self._rows.values() if self._matches(row, query)], "-opened")
        return [
            CallOutline(
                row.id, row.tool, row.server, row.caller, row.opened, row.started, row.finished, row.outcome,
                row.approved, row.parent, row.ran_s, self._is_asked(row),
            )
            for row in found
        ]  # fmt: skip

    async def descendants(self, calls: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Count the calls at any depth below each of these, and those of them that did not end well."""
        self._check_open()
        below: dict[str, list[CallRow]] = {}
        for row in self._rows.values():
            below.setdefault(row.parent, []).append(row)

        def walk(call: str) -> Iterator[CallRow]:
            for row in below.get(call, ()):
                yield row
                yield from walk(row.id)

        found = {call: list(walk(call)) for call in calls}
        return {
            call: (len(rows), sum(row.outcome != "ok" for row in rows))
            for call, rows in found.items()
            if rows
        }

    async def retried(self, calls: Sequence[str]) -> list[str]:
        """The calls of these whose tool was started more than once."""
        self._check_open()
        return [
            call
            for call in calls
            if any(
                isinstance(entry.fact, Started) and entry.fact.attempt > 1
                for entry in self._calls.get(call, {}).values()
            )
        ]

    async def unfinished(self) -> list[str]:
        """The ids of calls without a recorded end, oldest first."""
        self._check_open()
        return sorted(self._live, key=lambda call: (self._live[call], call))

    async def keyed(self, caller: str, key: str) -> str | None:
        """The newest listed call that this caller opened with this idempotency key."""
        self._check_open()
        rows = [self._rows[call] for call in self._keys.get((caller, key), ())]
        return max(rows, key=lambda row: (row.opened, row.id)).id if rows else None

    async def children(self, call: str) -> tuple[int, int]:
        """Count the finished calls that a call has made, and those of them that did not end well."""
        self._check_open()
        found = [row for row in self._rows.values() if row.parent == call and call]
        return len(found), sum(row.outcome != "ok" for row in found)

    async def purge(self, rule: PurgeRule) -> int:
        """Delete the calls that the rule names.

        A rule about bytes deletes nothing: memory has no file to measure.
        """
        self._check_open()
        gone = {call for call in self._select_purgeable(rule) if not self._is_spared(call, rule)}
        self._entries = {pos: entry for pos, entry in self._entries.items() if entry.call not in gone}
        for call in gone & self._rows.keys():
            row = self._rows[call]
            self._keys.get((row.caller, row.key), set()).discard(call)
        self._keys = {meant: calls for meant, calls in self._keys.items() if calls}
        for table in (self._calls, self._samples, self._rows):
            for call in gone:
                table.pop(call, None)
        return len(gone)

    async def close(self) -> None:
        """Refuse everything from now on."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("history in memory: it is not open")

    def _select_purgeable(self, rule: PurgeRule) -> list[str]:
        if rule.calls:
            return [call for call in rule.calls if call in self._calls and call not in self._live]
        rows = [self._rows[call] for call in self._calls if call in self._rows]  # by their position
        if rule.keep is not None:
            rows = rows[: max(0, len(rows) - rule.keep)]
        elif rule.before is None:
            return []
        before = inf if rule.before is None else rule.before
        return [row.id for row in rows if row.finished is not None and max(row.opened, row.finished) < before]

    def _is_spared(self, call: str, rule: PurgeRule) -> bool:
        first, row = self._calls[call].get(1), self._rows.get(call)
        if call in rule.spare or first is None or row is None or row.finished is None:
            return call in rule.spare
        if row.finished < rule.claimed:
            return False
        is_claimed = isinstance(first.fact, Opened) and bool(first.fact.task or first.fact.key)
        return is_claimed or any(type(one.fact) is HandedOver for one in self._calls[call].values())

    def _add(self, entry: Entry) -> None:
        self._last += 1
        self._entries[self._last] = entry
        self._calls.setdefault(entry.call, {})[entry.seq] = entry
        if isinstance(entry.fact, Opened):
            self._live[entry.call] = entry.fact.at
        elif isinstance(entry.fact, Finished):
            self._live.pop(entry.call, None)

    def _matches(self, row: CallRow, query: CallQuery) -> bool:
        if not row_fits(row, query) or (query.is_asked and not self._is_asked(row)):
            return False
        facts = self._calls.get(row.id, {}).values()
        if query.is_answered and not any(type(entry.fact) is Answered for entry in facts):
            return False
        if not query.text:
            return True
        first = self._calls.get(row.id, {}).get(1)
        arguments = first.fact.arguments if first is not None and isinstance(first.fact, Opened) else None
        return contains_text(row, arguments, query.text)

    def _is_asked(self, row: CallRow) -> bool:
        """Whether a person was asked, for an approval or with a form or a link."""
        if row.approved in APPROVED_BY_PEOPLE:
            return True
        facts = [entry.fact for entry in self._calls.get(row.id, {}).values()]
        kinds = [fact.question.kind for fact in facts if isinstance(fact, Asked)]
        return has_stood_still(row) and any(kind in ASKED_KINDS for kind in kinds)
