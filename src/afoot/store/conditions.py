"""`where` and `order` write a `CallQuery` as SQL; `row_fits`, `contains_text` and `in_order` need none."""

import json
from collections.abc import Callable

import msgspec
from msgspec import Raw

from afoot.core.ports import CallOutline, CallQuery, CallRow

MAX_ROWS = 1000
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}  # SQLite's LIKE folds only these
FILTER_FIELDS = ("tool", "server", "state", "caller", "parent")
APPROVED_BY_PEOPLE = ("user", "caller", "none")  # none: nobody approved it, but it was to be asked
# Clocks stand still for less than this between two facts of one moment.
STOOD_STILL_S = 0.01
ASKED_KINDS = ("form", "url")  # questions to people, besides approvals

# Whether a person was asked. Approvals are in the row. A form or a link stops the clock, so only the facts
# of calls whose clock stood still are read.
ASKED = f"""(approved IN {APPROVED_BY_PEOPLE} OR (
    finished - started - coalesce(ran_s, 0) > {STOOD_STILL_S} AND EXISTS (
        SELECT 1 FROM facts WHERE call = calls.id AND instr(body, CAST('"type":"asked"' AS BLOB))
        AND (instr(body, CAST('"kind":"form"' AS BLOB)) OR instr(body, CAST('"kind":"url"' AS BLOB)))
    )
))"""

# The usual durations are one JSON object, because a query may have any number of tools.
_SLOWER = """outcome = 'ok' AND ran_s > (
    SELECT most.value FROM json_each(?) AS most WHERE most.key = calls.server || char(10) || calls.tool
)"""

# The arguments are in the call's first fact. They are searched as JSON text.
_ARGUMENTS = """EXISTS (
    SELECT 1 FROM (
        SELECT CAST(body AS TEXT) AS body FROM facts WHERE call = calls.id ORDER BY seq LIMIT 1
    )
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$[0].arguments') END LIKE ? ESCAPE '\\'
)"""

_COLUMNS = {
    "opened": "opened",
    "duration": "coalesce(finished, opened) - opened",
    "tool": "tool",
    "caller": "caller",
}
_KEYS: dict[str, Callable[[CallRow], float | str]] = {
    "opened": lambda row: row.opened,
    "duration": lambda row: (row.opened if row.finished is None else row.finished) - row.opened,
    "tool": lambda row: row.tool,
    "caller": lambda row: row.caller,
}
SORTS = tuple(_COLUMNS)


def where(query: CallQuery) -> tuple[str, list[str | float]]:
    """The condition of a query, and the values for it."""
    tests, values = ["1"], list[str | float]()
    for name in FILTER_FIELDS:
        if wanted := getattr(query, name):
            tests.append(f"{name} = ?")
            values.append(wanted)
    if query.parent:
        tests.append("parent != ''")  # the condition of its partial index, which SQLite then uses
    if query.outcome:
        wanted_outcomes = query.outcome.split(",")
        tests.append(f"outcome IN ({', '.join('?' * len(wanted_outcomes))})")
        values.extend(wanted_outcomes)
    for test, bound in (
        ("opened < ?", query.before),
        ("opened > ?", query.after),
        ("opened >= ?", query.since),
        ("finished >= ?", query.ended_since),
    ):
        if bound is not None:
            tests.append(test)
            values.append(bound)
    if query.is_root:
        tests.append("parent = ''")
    if query.ids is not None:
        tests.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(query.ids)))
    if query.is_asked:
        tests.append(ASKED)
    if query.slower_than is not None:
        tests.append(_SLOWER)
        usual = {f"{server}\n{tool}": most_s for (server, tool), most_s in query.slower_than.items()}
        values.append(json.dumps(usual))
    if query.text:
        tests.append(_text_condition(query.text, values))
    return " AND ".join(tests), values


def order(sort: str) -> str:
    """The order of rows; rows that are alike in it are ordered by time, newest first."""
    column, way = _COLUMNS[sort.removeprefix("-")], "DESC" if sort.startswith("-") else "ASC"
    return f"opened {way}, id {way}" if column == "opened" else f"{column} {way}, opened DESC, id DESC"


def in_order(rows: list[CallRow], sort: str) -> list[CallRow]:
    """Sort rows in memory as `order` sorts them in SQL."""
    newest_first = sorted(rows, key=lambda row: (row.opened, row.id), reverse=True)
    if sort == "-opened":
        return newest_first
    if sort == "opened":
        return newest_first[::-1]
    return sorted(newest_first, key=_KEYS[sort.removeprefix("-")], reverse=sort.startswith("-"))


def row_fits(row: CallRow, query: CallQuery) -> bool:
    """Whether a row has the fields that a query wants; its text and its facts are not looked at."""
    if any(getattr(query, name) not in ("", getattr(row, name)) for name in FILTER_FIELDS):
        return False
    bounds_fit = (
        (query.before is None or row.opened < query.before)
        and (query.after is None or row.opened > query.after)
        and (query.since is None or row.opened >= query.since)
        and (query.ended_since is None or (row.finished is not None and row.finished >= query.ended_since))
    )
    return (
        bounds_fit
        and (not query.outcome or row.outcome in query.outcome.split(","))
        and not (query.is_root and row.parent)
        and (query.ids is None or row.id in query.ids)
        and (query.slower_than is None or _is_slower(row, query.slower_than.get((row.server, row.tool))))
    )


def has_stood_still(row: CallRow | CallOutline) -> bool:
    """Whether the clock of a call stood still after its start, so that somebody may have been asked."""
    if row.finished is None or row.started is None:
        return False
    return row.finished - row.started - (row.ran_s or 0) > STOOD_STILL_S


def contains_text(row: CallRow, arguments: Raw | None, text: str) -> bool:
    """Whether a text is in the id, the tool or the message of a call, or in its arguments, if given."""
    plain = text.translate(_LOWER)
    if any(plain in (field or "").translate(_LOWER) for field in (row.id, row.tool, row.message)):
        return True
    if arguments is None:
        return False
    searched = msgspec.json.format(bytes(arguments), indent=-1).decode().translate(_LOWER)
    return any(spelling.translate(_LOWER) in searched for spelling in json_spellings(text))


def json_spellings(text: str) -> list[str]:
    """The text as JSON may spell it: as it is, and with the escapes that many clients send."""
    return list(dict.fromkeys([text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]))


def _is_slower(row: CallRow, most_s: float | None) -> bool:
    return row.outcome == "ok" and row.ran_s is not None and most_s is not None and row.ran_s > most_s


def _text_condition(text: str, values: list[str | float]) -> str:
    plain = _like_pattern(text)
    values.extend([plain, plain, plain])
    tests = [f"{name} LIKE ? ESCAPE '\\'" for name in ("id", "tool", "message")]
    for spelling in json_spellings(text):
        values.append(_like_pattern(spelling))
        tests.append(_ARGUMENTS)
    return f"({' OR '.join(tests)})"


def _like_pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
