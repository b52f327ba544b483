"""Changes in a JSON text that leave the rest as it stands: comments, order, indentation, line endings."""

import json
import re
from functools import lru_cache

from msgspec import Struct

from afoot.jsonc import Document, JsoncError, Member, Node, parse

_parse = lru_cache(maxsize=4)(parse)


class EditError(ValueError):
    """The text cannot be changed without harm to the rest of it."""


class Taken(Struct, frozen=True):
    """What was taken out of an object: the text of its value, and the key it stood behind, if any."""

    text: str
    raw: str
    after: str | None


class _Hole(Struct, frozen=True):
    """Where a member goes: a comma to set first, the place, and whether a comma follows it."""

    comma_at: int | None
    at: int
    is_followed: bool


class _Form(Struct, frozen=True):
    """How members of an object are written: all in its line, or each in a line of its own."""

    is_inline: bool
    newline: str
    outer: str
    inner: str


def read(text: str) -> object:
    """The value of a text; raises JsoncError."""
    return _parse(text).root.value


def put(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with a member more at the end of the object at `path`; raises EditError, JsoncError."""
    document = _parse(text)
    node = _object(document, path)
    form = _form(document, node)
    step = form.inner.removeprefix(form.outer) or "  "
    raw = _rendered(value) if form.is_inline else rendered(value, form.inner, step, form.newline)
    changed = _insert(document, node, key, raw, node.members[-1] if node.members else None)
    return _checked(changed, text, path, key, value)


def put_back(text: str, path: tuple[str, ...], key: str, taken: Taken) -> str:
    """The text with what was taken out of it, where it was if its neighbour is still there."""
    document = _parse(text)
    node = _object(document, path)
    last = node.members[-1] if node.members else None
    before = node.get(taken.after) or last if taken.after is not None else None
    changed = _insert(document, node, key, taken.raw, before)
    return _checked(changed, text, path, key, _parse(taken.raw).root.value)


def take(text: str, path: tuple[str, ...], key: str) -> Taken:
    """Take a member out of the object at `path`; raises EditError if there is none, or more than one."""
    document = _parse(text)
    node = _object(document, path)
    found = [number for number, member in enumerate(node.members) if member.key == key]
    if len(found) != 1:
        raise EditError(f"{key} stands {len(found)} times in {'.'.join(path) or 'the file'}")
    member, number = node.members[found[0]], found[0]
    before = node.members[number - 1] if number else None
    changed = _without(document, member, before)
    if len(node.members) == 1:
        changed = _collapsed(changed, path)
    checked = _checked(changed, text, path, key, _GONE)
    return Taken(checked, text[member.node.start : member.node.end], before.key if before else None)


def swap(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with another value for a key; the rest of its object stays."""
    document = _parse(text)
    node = _object(document, path)
    member = node.get(key)
    if member is None:
        return put(text, path, key, value)
    changed = text[: member.node.start] + _rendered(value) + text[member.node.end :]
    return _checked(changed, text, path, key, value)


def rendered(value: object, indent: str, step: str, newline: str) -> str:
    """A value over several lines; lists and objects without anything inside them keep to one."""
    deeper = indent + step
    if isinstance(value, dict) and value:
        lines = [
            f"{deeper}{json.dumps(key, ensure_ascii=False)}: {rendered(one, deeper, step, newline)}"
            for key, one in value.items()
        ]
        return "{" + newline + f",{newline}".join(lines) + newline + indent + "}"
    return _rendered(value)


def _rendered(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(document: Document, path: tuple[str, ...]) -> Node:
    node = document.root
    for number in range(len(path) + 1):
        if not isinstance(node.value, dict):
            name = path[number - 1] if number else "the file"
            raise JsoncError(document.text, node.start, f"{name} must be an object")
        if number == len(path):
            break
        member = node.get(path[number])
        if member is None:
            raise EditError(f"there is no {path[number]}")
        node = member.node
    return node


def _form(document: Document, node: Node) -> _Form:
    text = document.text
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, node.start)
    is_inline = bool(node.members) and "\n" not in text[node.start : node.end]
    own = next((one for one in node.members if _begins_line(text, one.start)), None)
    if own is not None:
        return _Form(is_inline, newline, outer, _indent(text, own.start))
    first = next((one for one in document.root.members if _begins_line(text, one.start)), None)
    step = _indent(text, first.start) if first is not None else ""
    return _Form(is_inline, newline, outer, outer + (step or "  "))


def _indent(text: str, at: int) -> str:
    """The blanks that the line of this place begins with."""
    begin = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    return found[0] if found else ""


def _begins_line(text: str, at: int) -> bool:
    begin = text.rfind("\n", 0, at) + 1
    return begin > 0 and not text[begin:at].strip(" \t")


def _insert(document: Document, node: Node, key: str, raw: str, before: Member | None) -> str:
    form = _form(document, node)
    text, member = document.text, f"{json.dumps(key, ensure_ascii=False)}: {raw}"
    inside = text[node.start + 1 : node.end - 1]
    lead = " " if form.is_inline else form.newline + form.inner
    if not inside.strip(" \t\r\n"):
        return f"{text[: node.start + 1]}{lead}{member}{form.newline}{form.outer}{text[node.end - 1 :]}"
    hole = _hole(document, node, before)
    head, tail = text[: hole.at], text[hole.at :]
    if hole.comma_at is not None:
        head = f"{head[: hole.comma_at]},{head[hole.comma_at :]}"
    return f"{head}{lead}{member}{',' if hole.is_followed else ''}{tail}"


def _hole(document: Document, node: Node, before: Member | None) -> _Hole:
    if before is None:
        return _Hole(None, _behind_comments(document, node.start + 1), bool(node.members))
    if before.comma is None:
        return _Hole(before.node.end, _behind_comments(document, before.node.end), False)
    return _Hole(None, _behind_comments(document, before.comma + 1), True)


def _behind_comments(document: Document, at: int) -> int:
    """Behind the comments that end this line: they are about what stands before them."""
    text, place = document.text, at
    for start, end in document.comments:
        if start >= place and not text[place:start].strip(" \t"):
            place = end
    rest = re.compile(r"[ \t]*(\r?\n|\}|\Z)")
    return place if rest.match(text, place) else at


def _without(document: Document, member: Member, before: Member | None) -> str:
    text, end, comma = document.text, member.node.end, member.comma
    cuts = list[tuple[int, int]]()
    if comma is not None and not text[end:comma].strip(" \t\r\n"):
        end = comma + 1
    elif comma is not None:
        cuts.append((comma, comma + 1))
    elif before is not None and before.comma is not None:
        cuts.append((before.comma, before.comma + 1))
    cuts.append((_begin(document, member.start, end), end))
    for first, last in sorted(cuts, reverse=True):
        text = text[:first] + text[last:]
    return text


def _begin(document: Document, start: int, end: int) -> int:
    """From where a member is cut: with the line break before it, if nothing behind it needs that."""
    text = document.text
    begin = len(text[:start].rstrip(" \t"))
    if not text[:begin].endswith("\n"):
        return begin
    rest = text[end:].lstrip(" \t")
    above = len(text[:begin].removesuffix("\n").removesuffix("\r"))
    is_comment_above = any(
        last == above and text.startswith("//", first) for first, last in document.comments
    )
    if not rest or rest.startswith(("\n", "\r\n")) or (rest.startswith("}") and not is_comment_above):
        return above
    return start


def _collapsed(text: str, path: tuple[str, ...]) -> str:
    """An object with nothing left in it, not even a comment, is `{}`."""
    node = _object(_parse(text), path)
    blank = not text[node.start + 1 : node.end - 1].strip(" \t\r\n")
    return f"{text[: node.start + 1]}{text[node.end - 1 :]}" if blank else text


_GONE = object()


def _checked(changed: str, text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The changed text, if it means what it should; else nothing is changed."""
    if read(changed) != _expected(read(text), path, key, value):
        raise EditError(f"{'.'.join((*path, key))} cannot be changed without harm to the rest of the file")
    return changed


def _expected(whole: object, path: tuple[str, ...], key: str, value: object) -> object:
    if not isinstance(whole, dict):
        return whole
    if path:
        return {**whole, path[0]: _expected(whole.get(path[0]), path[1:], key, value)}
    rest = {name: one for name, one in whole.items() if name != key}
    return rest if value is _GONE else {**rest, key: value}
