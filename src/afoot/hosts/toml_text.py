"""Changes in a TOML text that leave the rest as it stands: tables put in, taken out, values swapped."""

import json
import re
import tomllib

from msgspec import Struct

from afoot.hosts.json_text import EditError, Taken

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
# A string of any of the four kinds; the long ones first.
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)
_BLANK_LINE = re.compile(r"(?<=\n)\r?\n\Z")
_PLAIN = re.compile(r"[^\"'#\[\]{}\n]+")


class TomlError(ValueError):
    """The text is no TOML; the message names line and column."""


class Statement(Struct, frozen=True):
    """A header or a key with its value: the whole path, where it stands, and where its value does."""

    path: tuple[str, ...]
    start: int
    end: int  # behind its line break
    value: int | None = None  # None: a header


def read(text: str) -> dict[str, object]:
    """The value of a text; raises TomlError."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        place = where.rstrip(")")
        raise TomlError(f"{place}: {what[:1].lower()}{what[1:]}" if what else str(error)) from None


def statements(text: str) -> list[Statement]:
    """The headers and keys of a text that tomllib can read, in order."""
    found, table = list[Statement](), tuple[str, ...]()
    at = _skipped(text, len(text) - len(text.removeprefix("\ufeff")))
    while at < len(text):
        start = text.rfind("\n", 0, at) + 1
        end = _end(text, at)
        if text[at] == "[":
            table = _header(text[at:end])
            found.append(Statement(table, start, end))
        else:
            equals = _equals(text, at)
            path = (*table, *_keys(text[at:equals]))
            found.append(Statement(path, start, end, equals + 1))
        at = _skipped(text, end)
    return found


def put(text: str, path: tuple[str, ...], key: str, value: dict[str, object]) -> str:
    """The text with a table more at its end; raises EditError, TomlError."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(table((*path, key), value))
    changed = _appended(text, block, newline)
    return _checked(changed, text, (*path, key), value)


def take(text: str, path: tuple[str, ...], key: str) -> Taken:
    """Take a table out, with all that is below it; raises EditError if there is none."""
    read(text)
    whole = (*path, key)
    every = statements(text)
    runs = _runs(every, whole)
    if not runs:
        raise EditError(f"there is no {'.'.join(whole)} that could be taken out")
    raw = "".join(text[start:end] for start, end in runs)
    before = [one for one in every if one.start < runs[0][0]]
    after = before[-1].path[len(path)] if before and _is_below(before[-1].path, path) else None
    changed = text
    for start, end in reversed(runs):
        changed = _cut(changed, start, end)
    return Taken(_checked(changed, text, whole, None), raw, after)


def put_back(text: str, path: tuple[str, ...], key: str, taken: Taken) -> str:
    """The text with what was taken out of it, behind its old neighbour if that is still there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    value = _at(read(taken.raw), (*path, key))
    runs = _runs(statements(text), (*path, taken.after)) if taken.after is not None else []
    if runs and text[runs[-1][1] - 1 : runs[-1][1]] == "\n":
        place = runs[-1][1]
        changed = f"{text[:place]}{newline}{taken.raw.rstrip()}{newline}{text[place:]}"
    else:
        changed = _appended(text, taken.raw.rstrip(), newline)
    return _checked(changed, text, (*path, key), value)


def swap(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with another value for a key of a table; raises EditError if the key does not stand alone."""
    read(text)
    whole = (*path, key)
    for one in statements(text):
        if one.path == whole and one.value is not None:
            end = _value_end(text, one.value)
            changed = f"{text[: one.value]} {literal(value)}{text[end:]}"
            return _checked(changed, text, whole, value)
    raise EditError(f"{'.'.join(whole)} is not written as a key of its own")


def stands_alone(text: str, path: tuple[str, ...], key: str) -> bool:
    """Whether a table has headers of its own, in one piece, so that it can be moved as it is."""
    whole = (*path, key)
    own = [one for one in statements(text) if _is_below(one.path, whole) or one.path == whole]
    return bool(own) and own[0].value is None and len(_runs(statements(text), whole)) == 1


def table(path: tuple[str, ...], value: dict[str, object]) -> list[str]:
    """The lines of a table."""
    lines = [f"{name(key)} = {literal(one)}" for key, one in value.items()]
    return [f"[{'.'.join(map(name, path))}]", *lines]


def name(key: str) -> str:
    """A key as it is written."""
    return key if _BARE.fullmatch(key) else literal(key)


def literal(value: object) -> str:
    """A value as it is written, in one line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{name(str(key))} = {literal(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _skipped(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at


def _end(text: str, at: int) -> int:
    """Behind the line break that ends the statement here; strings and brackets may hold others."""
    return min(_line_end(text, _value_end(text, at)) + 1, len(text))


def _value_end(text: str, at: int) -> int:
    """Behind the last sign of what stands here, before its comment or line break."""
    depth, last = 0, at
    while at < len(text) and (depth or text[at] not in "#\n"):
        if text[at] == "#":
            at = _line_end(text, at)
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        found = _STRING.match(text, at) or _PLAIN.match(text, at)
        end = found.end() if found else at + 1
        last = at + len(text[at:end].rstrip()) if text[at:end].strip() else last
        at = end
    return last


def _line_end(text: str, at: int) -> int:
    stop = text.find("\n", at)
    return len(text) if stop < 0 else stop


def _equals(text: str, at: int) -> int:
    while text[at] != "=":
        found = _STRING.match(text, at)
        at = found.end() if found else at + 1
    return at


def _header(text: str) -> tuple[str, ...]:
    inside = text[: _value_end(text, 0)].strip().strip("[]")
    return _keys(inside)


def _keys(text: str) -> tuple[str, ...]:
    found: object = tomllib.loads(f"{text.strip()} = 0")
    keys = list[str]()
    while isinstance(found, dict):
        [(key, found)] = found.items()
        keys.append(str(key))
    return tuple(keys)


def _is_below(path: tuple[str, ...], above: tuple[str, ...]) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _runs(every: list[Statement], whole: tuple[str, ...]) -> list[tuple[int, int]]:
    """From where to where the statements about one thing stand, neighbours in one piece."""
    runs, is_open = list[tuple[int, int]](), False
    for one in every:
        is_ours = one.path == whole or _is_below(one.path, whole)
        if is_ours and is_open:
            runs[-1] = (runs[-1][0], one.end)
        elif is_ours:
            runs.append((one.start, one.end))
        is_open = is_ours
    return runs


def _appended(text: str, block: str, newline: str) -> str:
    """A block behind a text, an empty line between; the last line ends as it did before."""
    if not text.removeprefix("\ufeff"):
        return f"{text}{block}{newline}"
    if text.endswith("\n"):
        return f"{text}{newline}{block}{newline}"
    return f"{text}{newline}{newline}{block}"


def _cut(text: str, start: int, end: int) -> str:
    """Without a piece, and without the empty line above it."""
    head = _BLANK_LINE.sub("", text[:start])
    if not text[:end].endswith("\n"):
        head = head.removesuffix("\n").removesuffix("\r")
    return head + text[end:]


def _checked(changed: str, text: str, whole: tuple[str, ...], value: object) -> str:
    """The changed text, if it means what it should; else nothing is changed."""
    dotted = ".".join(whole)
    try:
        found = _pruned(read(changed), whole[:-1])
    except TomlError as error:
        raise EditError(f"{dotted} cannot be changed in this file: {error}") from None
    if found != _pruned(_expected(read(text), whole, value), whole[:-1]):
        raise EditError(f"{dotted} cannot be changed without harm to the rest of the file")
    return changed


def _at(whole: object, path: tuple[str, ...]) -> object:
    for key in path:
        whole = whole.get(key) if isinstance(whole, dict) else None
    return whole


def _expected(whole: object, path: tuple[str, ...], value: object) -> dict[str, object]:
    """What the text should mean; None: without it."""
    kept = {str(key): one for key, one in whole.items()} if isinstance(whole, dict) else {}
    key, *rest = path
    below = _expected(kept.get(key), tuple(rest), value) if rest else value
    return {one: other for one, other in (kept | {key: below}).items() if one != key or other is not None}


def _pruned(whole: dict[str, object], path: tuple[str, ...]) -> dict[str, object]:
    """Without empty tables on the way: with the last that was in them they may go, or stay."""
    if not path:
        return whole
    below = whole.get(path[0])
    inner = _pruned(below, path[1:]) if isinstance(below, dict) else below
    return {key: inner if key == path[0] else one for key, one in whole.items() if key != path[0] or inner}
