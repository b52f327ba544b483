"""Many calls of an SQLite history at once: their outlines, the calls below them, and those that ran again."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

from afoot.core.ports import CallOutline, CallQuery
from afoot.store import conditions

MAX_OUTLINES = 100_000
MAX_NAMES = 500  # of calls in one statement
MAX_DEPTH = 64  # of calls below calls

# The depth has a bound: in a damaged file a call may be below itself.
_DESCENDANTS = f"""WITH RECURSIVE tree(root, id, outcome, depth) AS (
    SELECT value, value, '', 0 FROM json_each(?)
    UNION ALL
    SELECT tree.root, calls.id, calls.outcome, tree.depth + 1 FROM tree
    JOIN calls ON calls.parent = tree.id AND calls.parent != '' WHERE tree.depth < {MAX_DEPTH}
)
SELECT root, count(*), sum(outcome IS NOT 'ok') FROM tree WHERE depth GROUP BY root"""

# Every attempt after the first writes its number into its own fact. The text may also be in arguments.
_RETRIED = "SELECT DISTINCT call FROM facts WHERE call IN ({}) AND instr(body, CAST('\"attempt\":2' AS BLOB))"


def read_outlines(db: sqlite3.Connection, query: CallQuery) -> list[CallOutline]:
    """The newest calls that match, newest first; raises sqlite3.Error."""
    where, values = conditions.where(query)
    sql = (
        "SELECT id, tool, server, caller, opened, started, finished, outcome, approved, parent, ran_s,"
        f" {conditions.ASKED} FROM calls WHERE {where} ORDER BY opened DESC, id DESC LIMIT {MAX_OUTLINES}"
    )
    return [
        CallOutline(
            call, tool, server, caller, opened, started, finished, outcome, approved, parent, ran_s,
            asked == 1,
        )
        for (
            call, tool, server, caller, opened, started, finished, outcome, approved, parent, ran_s, asked
        ) in db.execute(sql, values)
    ]  # fmt: skip


def count_descendants(db: sqlite3.Connection, calls: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count the calls below each of these, and those of them that did not end well."""
    found: dict[str, tuple[int, int]] = {}
    for names in _slices(calls):
        for root, total, failed in db.execute(_DESCENDANTS, (json.dumps(names),)):
            found[str(root)] = (int(total), int(failed))
    return found


def read_retried(db: sqlite3.Connection, calls: Sequence[str]) -> list[str]:
    """The calls of these whose tool was started more than once."""
    found: list[str] = []
    for names in _slices(calls):
        sql = _RETRIED.format(", ".join("?" * len(names)))
        found.extend(str(call) for (call,) in db.execute(sql, names))
    return found


def _slices(calls: Sequence[str]) -> Iterator[list[str]]:
    for at in range(0, len(calls), MAX_NAMES):
        yield list(calls[at : at + MAX_NAMES])
