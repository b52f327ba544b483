"""Search in an SQLite history: calls by filters, by text or by a part of their id; facts and samples.

The list of calls can be made again from the facts. Rows are therefore written in batches, and
`rebuild_unlisted_rows` makes those again that a crash took.
"""

import sqlite3
from collections.abc import Iterable

from msgspec import DecodeError

from afoot.core.call import Call, fold
from afoot.core.facts import Entry, Reading, Sample
from afoot.core.last_words import last_words
from afoot.core.ports import CallQuery, CallRow, Journal
from afoot.store import codec, conditions
from afoot.store.conditions import MAX_ROWS

MIN_ID_PART = 4  # characters of an id that a person must type at least

# Of facts that are read together for a watcher. A thousand results of 30 MB would fill the memory.
SINCE_BYTES = 8 * 1024 * 1024
MAX_SEARCHED_ANSWERS = 5000  # newest calls whose facts are read for an answer

# Rows of the list that are written together. Measured: a short call is then a fifth cheaper to record than
# with its row written at once.
ROW_BATCH = 64

SAVE_LISTED_POSITION = (
    """INSERT INTO meta VALUES ('listed', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"""
)

# `key != ''` is the condition of the partial index, which SQLite then uses.
KEYED = """SELECT opened, id FROM calls WHERE caller = ? AND key = ? AND key != ''
ORDER BY opened DESC, id DESC LIMIT 1"""

_CALLS = "SELECT DISTINCT call FROM facts WHERE pos > ?"
_FACTS = "SELECT pos, call, seq, body FROM facts WHERE call = ? ORDER BY seq"
_LATEST = "SELECT call, number, left_out, body FROM samples WHERE call = ? ORDER BY number DESC LIMIT 1"

# Arguments may have this text in them, too: so a call may be found that has no answer.
_ANSWERED = """EXISTS (
    SELECT 1 FROM facts WHERE call = calls.id AND instr(body, CAST('"type":"answered"' AS BLOB))
)"""


async def find_by_id_part(journal: Journal, name: str, living: Iterable[str]) -> list[str]:
    """The ids that begin or end with this text.

    An id begins with its time, so calls of one moment are told apart by its end.
    """
    if len(name) < MIN_ID_PART:
        return []
    known = {*living, *(row.id for row in await journal.find(CallQuery(text=name, limit=1000)))}
    return sorted(one for one in known if one.startswith(name) or one.endswith(name))


def ambiguous_id_message(name: str, fitting: list[str]) -> str:
    """The message for a part of an id that fits more than one call."""
    return f"{len(fitting)} calls are called {name!r}; name one of: {', '.join(fitting[:5])}"


def find_rows(db: sqlite3.Connection, query: CallQuery) -> list[CallRow]:
    """The calls that match, newest first; raises sqlite3.Error."""
    where, values = conditions.where(query)
    order = "opened, id" if query.after is not None else conditions.order(query.sort)
    sql = (
        "SELECT id, tool, server, caller, opened, state, outcome, finished, progress, total, message,"
        f" started, approved, parent, key, ran_s FROM calls WHERE {where} ORDER BY {order}"
    )
    if query.is_answered:
        sql = f"SELECT * FROM ({sql} LIMIT {MAX_SEARCHED_ANSWERS}) AS calls WHERE {_ANSWERED}"
    limit = max(0, min(query.limit, MAX_ROWS))
    found = [
        CallRow(*columns)
        for columns in db.execute(f"{sql} LIMIT ? OFFSET ?", (*values, limit, max(0, query.skip)))
    ]
    return found[::-1] if query.after is not None else found


def keyed(db: sqlite3.Connection, caller: str, key: str) -> list[tuple[float, str]]:
    """The opening time and id of the caller's newest call with this idempotency key.

    Empty if there is none.
    """
    return [(float(opened), str(call)) for opened, call in db.execute(KEYED, (caller, key))]


def read_facts(db: sqlite3.Connection, call: str, after: int) -> list[Entry]:
    """The facts of a call with a number over `after`."""
    sql = "SELECT pos, call, seq, body FROM facts WHERE call = ? AND seq > ? ORDER BY seq"
    return [entry for _, entry in codec.decode_facts(db.execute(sql, (call, after))) if entry.seq > after]


def read_samples(db: sqlite3.Connection, call: str) -> list[Sample]:
    """The readings of a call that the history keeps."""
    sql = "SELECT call, number, left_out, body FROM samples WHERE call = ? ORDER BY number"
    return codec.decode_samples(db.execute(sql, (call,)))


def read_since(db: sqlite3.Connection, position: int, limit: int) -> list[tuple[int, Entry]]:
    """The facts of all calls behind a position, oldest first; fewer than `limit` where they are large."""
    sql = "SELECT pos, call, seq, body FROM facts WHERE pos > ? ORDER BY pos LIMIT ?"
    found: list[tuple[int, Entry]] = []
    size = 0
    for columns in db.execute(sql, (position, max(0, limit))):
        found += codec.decode_facts([columns])
        size += len(columns[3])
        if len(found) > limit or size >= SINCE_BYTES:
            break
    return [(pos, entry) for pos, entry in found if pos > position][:limit]


def read_unfinished(db: sqlite3.Connection) -> list[str]:
    """The ids of calls without a recorded end, oldest first."""
    return [str(call) for (call,) in db.execute("SELECT call FROM live ORDER BY at, call")]


def count_children(db: sqlite3.Connection, call: str) -> tuple[int, int]:
    """Count the finished calls that a call has made, and those of them that did not end well."""
    sql = "SELECT count(*), coalesce(sum(outcome != 'ok'), 0) FROM calls WHERE parent = ? AND parent != ''"
    total, failed = db.execute(sql, (call,)).fetchone()
    return int(total), int(failed)


def rebuild_unlisted_rows(db: sqlite3.Connection, listed: int) -> dict[str, CallRow]:
    """The rows of calls that ended after the last batch of rows was written; raises sqlite3.Error."""
    found: dict[str, CallRow] = {}
    for (name,) in db.execute(_CALLS, (listed,)).fetchall():
        try:
            call = fold(name, [entry.fact for _, entry in codec.decode_facts(db.execute(_FACTS, (name,)))])
            if call.end is not None:
                found[name] = _row(call, _latest_reading(db, call))
        except (ValueError, KeyError, DecodeError):
            pass  # a history that cannot be folded, or a damaged one: the other calls are listed all the same
    return found


def _latest_reading(db: sqlite3.Connection, call: Call) -> Reading:
    """The last reading of a call: its last sample, or a fact that came later."""
    samples = codec.decode_samples(db.execute(_LATEST, (call.id,)))
    found = [one for one in (call.latest, *(sample.reading for sample in samples)) if one is not None]
    return max(found, key=lambda one: one.at, default=Reading(0.0))


def _row(call: Call, reading: Reading) -> CallRow:
    opened, end = call.opened, call.end
    return CallRow(
        call.id, opened.tool, opened.server, opened.caller, opened.at, call.state,
        end.outcome if end else None, end.at if end else None,
        reading.progress, reading.total,
        last_words(call, reading), call.started, call.approved,
        opened.parent or "", opened.key, None if call.started is None else call.spent_s,
    )  # fmt: skip
