"""`Mirrors` are the calls of other gateways of a cluster, folded from the facts that those write (D1).

A mirror is a `LiveCall` like any other: lists show it, followers follow it. Nothing here changes it but the
facts and readings of its owner. What somebody wants of it here is sent to the owner as a command.
"""

from collections.abc import Callable, Sequence

from msgspec import Raw

from afoot.core.call import Call, note_number, note_sample, replay
from afoot.core.facts import Entry, Opened, Reading, Sample
from afoot.core.ports import Tool
from afoot.engine.catalog import Catalog
from afoot.engine.live_call import LiveCall, Mirror


class Mirrors:
    """The calls of others. `publish` shows their facts to those who follow them here."""

    def __init__(
        self, calls: dict[str, LiveCall], catalog: Catalog, publish: Callable[[list[Entry], bool], None]
    ) -> None:
        self._calls = calls
        self._catalog = catalog
        self._publish = publish

    def take(self, owner: str, entries: Sequence[Entry]) -> bool:
        """Take in facts of one call of another gateway; False if some before them are missing here."""
        first = entries[0]
        live = self._calls.get(first.call)
        if live is None:
            if not isinstance(first.fact, Opened):
                return False
            live = self._open(owner, first.call, first.fact)
        elif live.mirror is None:
            return True  # it is our own now: these facts are older
        else:
            live.mirror.owner = owner
        new = [entry for entry in entries if entry.seq > live.recorded]
        if new and new[0].seq > max(1, live.recorded + 1):
            return False
        for entry in new:
            if entry.seq > live.call.seq:
                replay(live.call, entry.fact)
            live.heard = max(live.heard, entry.fact.at)
        self._publish(list(new), True)
        return True

    def load(self, owner: str, entries: Sequence[Entry], samples: Sequence[Sample]) -> None:
        """Take in facts of a call that the history has: all of them, or those that are missing here."""
        if entries and self.take(owner, entries):
            live = self._calls.get(entries[0].call)
            if samples and live is not None and live.call.readings < samples[-1].number:
                note_sample(live.call, samples[-1])

    def newest(self, call_id: str) -> int | None:
        """The number of the newest fact that is known of a call of another gateway; None: it is our own."""
        live = self._calls.get(call_id)
        if live is None:
            return 0
        return None if live.mirror is None else live.recorded

    def note(self, call_id: str, number: int, reading: Reading) -> None:
        """Take in the newest reading of a call of another gateway."""
        live = self._calls.get(call_id)
        if live is None or live.mirror is None or number <= live.call.readings or live.call.end is not None:
            return
        note_number(live.call, reading, number)
        live.heard = max(live.heard, reading.at)
        if live.readings is not None:
            live.readings.append(reading)
        for listener in live.watchers:
            listener.on_reading(reading.at)

    def drop(self, live: LiveCall) -> None:
        """Forget a call that is over, and whose owner died before it could say that its work has stopped."""
        if self._calls.get(live.call.id) is live:
            del self._calls[live.call.id]

    def _open(self, owner: str, call_id: str, opened: Opened) -> LiveCall:
        found = self._catalog.known.get(opened.tool)
        is_same = found is not None and found[1].digest == opened.digest
        tool = found[1] if found is not None and is_same else Tool(opened.tool, opened.server, Raw(b"{}"))
        live = LiveCall(Call(call_id, opened), tool, opened.arguments, mirror=Mirror(owner))
        self._calls[call_id] = live
        return live
