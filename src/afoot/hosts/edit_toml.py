"""`insert`, `remove` and `replace_value` change a TOML text and leave everything else as it is.

tomllib reads a text but does not say where its parts stand, so `parse_statements` finds them. Each change
is verified: the new text is parsed and compared with the expected value.
"""

import json
import re
import tomllib
from datetime import date, time
from math import isfinite

from msgspec import Struct

from afoot.config import toml
from afoot.hosts.edit_json import EditError, RemovedText

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANKS_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# A string of any of the four kinds; the multi-line ones first.
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_BLANK_LINE = re.compile(r"(?<=\n)\r?\n\Z")
_PLAIN_TEXT = re.compile(r"[^\"'#\[\]{}\n]+")


class TomlError(ValueError):
    """The text is not valid TOML; the message names line and column."""


class TomlStatement(Struct, frozen=True):
    """A header, or a key with its value: its full path, its position, and the position of its value."""

    path: tuple[str, ...]
    start: int
    end: int  # after its line break
    value: int | None = None  # None: a header


def read(text: str) -> dict[str, object]:
    """The value of a text; raises TomlError."""
    try:
        return toml.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        place = where.rstrip(")")
        raise TomlError(f"{place}: {what[:1].lower()}{what[1:]}" if what else str(error)) from None


def parse_statements(text: str) -> list[TomlStatement]:
    """The headers and keys of a text that tomllib can read, in order."""
    found = list[TomlStatement]()
    table = tuple[str, ...]()
    at = _skip_blanks(text, len(text) - len(text.removeprefix("\ufeff")))
    while at < len(text):
        start = text.rfind("\n", 0, at) + 1
        end = _statement_end(text, at)
        if text[at] == "[":
            table = _header_path(text[at:end])
            found.append(TomlStatement(table, start, end))
        else:
            equals = _find_equals(text, at)
            path = (*table, *_key_path(text[at:equals]))
            found.append(TomlStatement(path, start, end, equals + 1))
        at = _skip_blanks(text, end)
    return found


def insert(text: str, path: tuple[str, ...], key: str, value: dict[str, object]) -> str:
    """The text with one more table at its end; raises EditError, TomlError."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(table_lines((*path, key), value))
    changed = _append_block(text, block, newline)
    return _verify(changed, text, (*path, key), value)


def remove(text: str, path: tuple[str, ...], key: str) -> RemovedText:
    """Remove a table with all its subtables; raises EditError if there is none."""
    read(text)
    whole = (*path, key)
    every = parse_statements(text)
    runs = _find_runs(every, whole)
    if not runs:
        raise EditError(f"there is no {'.'.join(whole)} that could be taken out")
    raw = "".join(text[start:end] for start, end in runs)
    before = [one for one in every if one.start < runs[0][0]]
    after = before[-1].path[len(path)] if before and _is_below(before[-1].path, path) else None
    changed = text
    for start, end in reversed(runs):
        changed = _cut_run(changed, start, end)
    return RemovedText(_verify(changed, text, whole, None), raw, after)


def reinsert(text: str, path: tuple[str, ...], key: str, taken: RemovedText) -> str:
    """The text with a removed table, after the table that was before it if that still exists."""
    newline = "\r\n" if "\r\n" in text else "\n"
    value = _value_at(read(taken.raw), (*path, key))
    runs = _find_runs(parse_statements(text), (*path, taken.after)) if taken.after is not None else []
    if runs and text[runs[-1][1] - 1 : runs[-1][1]] == "\n":
        place = runs[-1][1]
        changed = f"{text[:place]}{newline}{taken.raw.rstrip()}{newline}{text[place:]}"
    else:
        changed = _append_block(text, taken.raw.rstrip(), newline)
    return _verify(changed, text, (*path, key), value)


def replace_value(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with another value for a key; a new key goes behind the others of its table.

    Raises EditError if the key is not a statement of its own, or a new one has no table with a header.
    """
    read(text)
    whole = (*path, key)
    every = parse_statements(text)
    for one in every:
        if one.path == whole and one.value is not None:
            end = _value_end(text, one.value)
            changed = f"{text[: one.value]} {toml_literal(value)}{text[end:]}"
            return _verify(changed, text, whole, value)
    return _verify(_with_new_key(text, every, path, key, value), text, whole, value)


def is_separate_table(text: str, path: tuple[str, ...], key: str) -> bool:
    """Whether a table has its own header and stands in one piece, so that its text can be moved."""
    whole = (*path, key)
    own = [one for one in parse_statements(text) if _is_below(one.path, whole) or one.path == whole]
    return bool(own) and own[0].value is None and len(_find_runs(parse_statements(text), whole)) == 1


def table_lines(path: tuple[str, ...], value: dict[str, object]) -> list[str]:
    """The lines of a table."""
    lines = [f"{toml_key(key)} = {toml_literal(one)}" for key, one in value.items()]
    return [f"[{'.'.join(map(toml_key, path))}]", *lines]


def toml_key(key: str) -> str:
    """A key as TOML."""
    return key if _BARE_KEY.fullmatch(key) else toml_literal(key)


def toml_literal(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{toml_key(str(key))} = {toml_literal(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_literal, value))}]"
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _with_new_key(
    text: str, every: list[TomlStatement], path: tuple[str, ...], key: str, value: object
) -> str:
    """The text with one more key, behind the last statement of its table; raises EditError."""
    last: TomlStatement | None = None
    for one in every:
        if last is None and one.value is None and one.path == path:
            last = one
        elif last is not None and one.value is None:
            break
        elif last is not None:
            last = one
    if last is None:
        raise EditError(f"{'.'.join((*path, key))} is not written as a key of its own")
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{toml_key(key)} = {toml_literal(value)}"
    if text[: last.end].endswith("\n"):
        return f"{text[: last.end]}{line}{newline}{text[last.end :]}"
    return f"{text}{newline}{line}"


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANKS_AND_COMMENTS.match(text, at)
    return found.end() if found else at


def _statement_end(text: str, at: int) -> int:
    """The end of the statement here, after its line break; strings and brackets may contain others."""
    return min(_line_end(text, _value_end(text, at)) + 1, len(text))


def _value_end(text: str, at: int) -> int:
    """The end of the value here, before its comment or line break."""
    depth, last = 0, at
    while at < len(text) and (depth or text[at] not in "#\n"):
        if text[at] == "#":
            at = _line_end(text, at)
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        found = _STRING.match(text, at) or _PLAIN_TEXT.match(text, at)
        end = found.end() if found else at + 1
        last = at + len(text[at:end].rstrip()) if text[at:end].strip() else last
        at = end
    return last


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    return len(text) if stop < 0 else stop


def _find_equals(text: str, at: int) -> int:
    while text[at] != "=":
        found = _STRING.match(text, at)
        at = found.end() if found else at + 1
    return at


def _header_path(text: str) -> tuple[str, ...]:
    inside = text[: _value_end(text, 0)].strip().strip("[]")
    return _key_path(inside)


def _key_path(text: str) -> tuple[str, ...]:
    found: object = tomllib.loads(f"{text.strip()} = 0")
    keys = list[str]()
    while isinstance(found, dict):
        [(key, found)] = found.items()
        keys.append(str(key))
    return tuple(keys)


def _is_below(path: tuple[str, ...], above: tuple[str, ...]) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _find_runs(every: list[TomlStatement], whole: tuple[str, ...]) -> list[tuple[int, int]]:
    """Start and end of the statements at or below a path; adjacent statements are one run."""
    runs, is_open = list[tuple[int, int]](), False
    for one in every:
        is_ours = one.path == whole or _is_below(one.path, whole)
        if is_ours and is_open:
            runs[-1] = (runs[-1][0], one.end)
        elif is_ours:
            runs.append((one.start, one.end))
        is_open = is_ours
    return runs


def _append_block(text: str, block: str, newline: str) -> str:
    """The text, an empty line and the block; the last line ends as it did before."""
    if not text.removeprefix("\ufeff"):
        return f"{text}{block}{newline}"
    if text.endswith("\n"):
        return f"{text}{newline}{block}{newline}"
    return f"{text}{newline}{newline}{block}"


def _cut_run(text: str, start: int, end: int) -> str:
    """The text without a run and without the empty line above it."""
    head = _BLANK_LINE.sub("", text[:start])
    if not text[:end].endswith("\n"):
        head = head.removesuffix("\n").removesuffix("\r")
    return head + text[end:]


def _verify(changed: str, text: str, whole: tuple[str, ...], value: object) -> str:
    """The changed text, if it has the expected value; raises EditError otherwise."""
    dotted = ".".join(whole)
    try:
        found = _without_empty_tables(read(changed), whole[:-1])
    except TomlError as error:
        raise EditError(f"{dotted} cannot be changed in this file: {error}") from None
    if found != _without_empty_tables(_expected(read(text), whole, value), whole[:-1]):
        raise EditError(f"{dotted} cannot be changed without harm to the rest of the file")
    return changed


def _value_at(whole: object, path: tuple[str, ...]) -> object:
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else None
    return whole


def _expected(whole: object, path: tuple[str, ...], value: object) -> dict[str, object]:
    """The expected value with `value` at `path`; None removes it."""
    kept = {str(key): one for key, one in whole.items()} if isinstance(whole, dict) else {}
    key, *rest = path
    below = _expected(kept.get(key), tuple(rest), value) if rest else value
    return {one: other for one, other in (kept | {key: below}).items() if one != key or other is not None}


def _without_empty_tables(whole: dict[str, object], path: tuple[str, ...]) -> dict[str, object]:
    """The value without empty tables along the path: an edit may remove them or leave them."""
    if not path:
        return whole
    below = whole.get(path[0])
    inner = _without_empty_tables(below, path[1:]) if isinstance(below, dict) else below
    return {key: inner if key == path[0] else one for key, one in whole.items() if key != path[0] or inner}
