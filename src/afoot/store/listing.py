"""The list of calls is made of facts: rows are written in lots, and made again where a crash took them."""

import sqlite3

from msgspec import DecodeError
from msgspec.structs import astuple

from afoot.core.call import Call, fold
from afoot.core.facts import Reading
from afoot.core.ports import Row
from afoot.store import codec
from afoot.store.codec import RowColumns

LOT = 64  # rows; a short call is then a fifth cheaper to record
LISTED = """INSERT INTO meta VALUES ('listed', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"""

_CALLS = "SELECT DISTINCT call FROM facts WHERE pos > ?"
_FACTS = "SELECT pos, call, seq, body FROM facts WHERE call = ? ORDER BY seq"
_LATEST = "SELECT call, number, left_out, body FROM samples WHERE call = ? ORDER BY number DESC LIMIT 1"


def unlisted(db: sqlite3.Connection, listed: int) -> dict[str, RowColumns]:
    """The rows of calls that ended after the last lot was written; raises sqlite3.Error."""
    found: dict[str, RowColumns] = {}
    for (name,) in db.execute(_CALLS, (listed,)).fetchall():
        try:
            call = fold(name, [entry.fact for _, entry in codec.entries(db.execute(_FACTS, (name,)))])
            if call.end is not None:
                found[name] = astuple(_row(call, _latest(db, call)))
        except (ValueError, KeyError, DecodeError):
            pass  # no call of ours tells such a story, or it is damaged; it stops nobody else's
    return found


def _latest(db: sqlite3.Connection, call: Call) -> Reading:
    """How far it came: by its last sample, or by a fact that came later."""
    samples = codec.samples(db.execute(_LATEST, (call.id,)))
    found = [one for one in (call.latest, *(sample.reading for sample in samples)) if one is not None]
    return max(found, key=lambda one: one.at, default=Reading(0.0))


def _row(call: Call, reading: Reading) -> Row:
    opened, end = call.opened, call.end
    return Row(
        call.id, opened.tool, opened.server, opened.caller, opened.at, call.state,
        end.outcome if end else None, end.at if end else None,
        reading.progress, reading.total,
        end.failure.message if end and end.failure else reading.message, call.started, call.approved,
        opened.parent or "",
    )  # fmt: skip
