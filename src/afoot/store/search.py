"""Looking calls up in an SQLite file: newest first, by exact fields and by a piece of text."""

import json
import sqlite3

from afoot.core.ports import Query, Row

MOST = 1000

FIELDS = ("tool", "server", "state", "outcome", "caller")
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
    if query.before is not None:
        where.append("opened < ?")
        values.append(query.before)
    if query.text:
        where.append(_holds(query.text, values))
    sql = (
        "SELECT id, tool, server, caller, opened, state, outcome, finished, progress, total, message,"
        f" started, approved FROM calls WHERE {' AND '.join(where)} ORDER BY opened DESC, id DESC LIMIT ?"
    )
    return [Row(*columns) for columns in db.execute(sql, (*values, max(0, min(query.limit, MOST))))]


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
