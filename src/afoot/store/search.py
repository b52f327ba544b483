"""Looking calls up in an SQLite file: newest first, by exact fields and by a piece of text."""

import json
import sqlite3

from afoot.core.facts import Entry, Sample
from afoot.core.ports import Query, Row
from afoot.store import codec

MOST = 1000

FIELDS = ("tool", "server", "state", "outcome", "caller", "parent")
# The arguments stand in the call's first fact. They are searched as their JSON text.
_ARGUMENTS = """EXISTS (
    SELECT 1 FROM (
        SELECT CAST(body AS TEXT) AS body FROM facts WHERE call = calls.id ORDER BY seq LIMIT 1
    )
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$[0].arguments') END LIKE ? ESCAPE '\\'
)"""


def found(db: sqlite3.Connection, query: Query) -> list[Row]:
    """The calls that fit; raises sqlite3.Error."""
    where, values = ["1"], list[str | float]()
    for field in FIELDS:
        wanted = getattr(query, field)
        if wanted:
            where.append(f"{field} = ?")
            values.append(wanted)
    if query.parent:
        where.append("parent != ''")  # as its index says
    if query.before is not None:
        where.append("opened < ?")
        values.append(query.before)
    if query.text:
        where.append(_holds(query.text, values))
    sql = (
        "SELECT id, tool, server, caller, opened, state, outcome, finished, progress, total, message,"
        " started, approved, parent FROM calls"
        f" WHERE {' AND '.join(where)} ORDER BY opened DESC, id DESC LIMIT ?"
    )
    return [Row(*columns) for columns in db.execute(sql, (*values, max(0, min(query.limit, MOST))))]


def facts(db: sqlite3.Connection, call: str, after: int) -> list[Entry]:
    """The facts of a call behind number `after`."""
    sql = "SELECT pos, call, seq, body FROM facts WHERE call = ? AND seq > ? ORDER BY seq"
    return [entry for _, entry in codec.entries(db.execute(sql, (call, after))) if entry.seq > after]


def samples(db: sqlite3.Connection, call: str) -> list[Sample]:
    """The readings of a call."""
    sql = "SELECT call, number, left_out, body FROM samples WHERE call = ? ORDER BY number"
    return codec.samples(db.execute(sql, (call,)))


def since(db: sqlite3.Connection, position: int, limit: int) -> list[tuple[int, Entry]]:
    """The facts of all calls behind a position."""
    sql = "SELECT pos, call, seq, body FROM facts WHERE pos > ? ORDER BY pos LIMIT ?"
    found = codec.entries(db.execute(sql, (position, max(0, limit))))
    return [(pos, entry) for pos, entry in found if pos > position][:limit]


def unfinished(db: sqlite3.Connection) -> list[str]:
    """The calls whose end is not recorded."""
    return [str(call) for (call,) in db.execute("SELECT call FROM live ORDER BY at, call")]


def children(db: sqlite3.Connection, call: str) -> tuple[int, int]:
    """How many calls a call has made, and how many of them did not end well."""
    sql = "SELECT count(*), coalesce(sum(outcome != 'ok'), 0) FROM calls WHERE parent = ? AND parent != ''"
    total, failed = db.execute(sql, (call,)).fetchone()
    return int(total), int(failed)


def spellings(text: str) -> list[str]:
    """The text as it may stand in JSON: itself, and with its escapes, which many clients send."""
    return list(dict.fromkeys([text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]))


def _holds(text: str, values: list[str | float]) -> str:
    plain = _pattern(text)
    values.extend([plain, plain, plain])
    tests = [f"{field} LIKE ? ESCAPE '\\'" for field in ("id", "tool", "message")]
    for spelling in spellings(text):
        values.append(_pattern(spelling))
        tests.append(_ARGUMENTS)
    return f"({' OR '.join(tests)})"


def _pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
