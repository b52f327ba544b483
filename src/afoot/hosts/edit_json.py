"""`insert`, `remove` and `replace_value` change a JSON text and leave everything else as it is.

Comments, order, indentation and line endings stay. Each change is verified: the new text is parsed and
compared with the expected value.
"""

import json
import re
from functools import lru_cache

from msgspec import Struct

from afoot.config.jsonc import JsoncDocument, JsoncError, JsoncMember, JsoncNode, parse

_parse = lru_cache(maxsize=4)(parse)
_REMOVED = object()


class EditError(ValueError):
    """The text cannot be changed without harm to the rest of it."""


class RemovedText(Struct, frozen=True):
    """A member that was removed: the remaining text, the raw value, and the key before it, if any."""

    text: str
    raw: str
    after: str | None


class _InsertPoint(Struct, frozen=True):
    """The position for a new member: a comma to add before it, the position, and whether a comma follows."""

    comma_at: int | None
    at: int
    is_followed: bool


class _ObjectLayout(Struct, frozen=True):
    """The layout of an object: all members on one line, or each on its own line with this indentation."""

    is_inline: bool
    newline: str
    outer: str
    inner: str


def read(text: str) -> object:
    """The value of a text; raises JsoncError."""
    return _parse(text).root.value


def insert(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with one more member at the end of the object at `path`; raises EditError, JsoncError."""
    document = _parse(text)
    node = _find_object(document, path)
    form = _layout_of(document, node)
    step = form.inner.removeprefix(form.outer) or "  "
    raw = _render_inline(value) if form.is_inline else render_lines(value, form.inner, step, form.newline)
    changed = _insert_raw(document, node, key, raw, node.members[-1] if node.members else None)
    return _verify(changed, text, path, key, value)


def reinsert(text: str, path: tuple[str, ...], key: str, taken: RemovedText) -> str:
    """The text with a removed member, at its old position if the member before it still exists."""
    document = _parse(text)
    node = _find_object(document, path)
    last = node.members[-1] if node.members else None
    before = node.get(taken.after) or last if taken.after is not None else None
    changed = _insert_raw(document, node, key, taken.raw, before)
    return _verify(changed, text, path, key, _parse(taken.raw).root.value)


def remove(text: str, path: tuple[str, ...], key: str) -> RemovedText:
    """Remove a member of the object at `path`; raises EditError if it does not stand there exactly once."""
    document = _parse(text)
    node = _find_object(document, path)
    found = [number for number, member in enumerate(node.members) if member.key == key]
    if len(found) != 1:
        raise EditError(f"{key} stands {len(found)} times in {'.'.join(path) or 'the file'}")
    member, number = node.members[found[0]], found[0]
    before = node.members[number - 1] if number else None
    changed = _cut_member(document, member, before)
    if len(node.members) == 1:
        changed = _collapse_empty(changed, path)
    checked = _verify(changed, text, path, key, _REMOVED)
    return RemovedText(checked, text[member.node.start : member.node.end], before.key if before else None)


def replace_value(text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The text with another value for a key; the rest of its object stays."""
    document = _parse(text)
    node = _find_object(document, path)
    member = node.get(key)
    if member is None:
        return insert(text, path, key, value)
    changed = text[: member.node.start] + _render_inline(value) + text[member.node.end :]
    return _verify(changed, text, path, key, value)


def render_lines(value: object, indent: str, step: str, newline: str) -> str:
    """A value as JSON over several lines; lists and empty objects stay on one line."""
    deeper = indent + step
    if isinstance(value, dict) and value:
        lines = [
            f"{deeper}{json.dumps(key, ensure_ascii=False)}: {render_lines(one, deeper, step, newline)}"
            for key, one in value.items()
        ]
        return "{" + newline + f",{newline}".join(lines) + newline + indent + "}"
    return _render_inline(value)


def _render_inline(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _find_object(document: JsoncDocument, path: tuple[str, ...]) -> JsoncNode:
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


def _layout_of(document: JsoncDocument, node: JsoncNode) -> _ObjectLayout:
    text = document.text
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, node.start)
    is_inline = bool(node.members) and "\n" not in text[node.start : node.end]
    own = next((one for one in node.members if _begins_line(text, one.start)), None)
    if own is not None:
        return _ObjectLayout(is_inline, newline, outer, _indent(text, own.start))
    first = next((one for one in document.root.members if _begins_line(text, one.start)), None)
    step = _indent(text, first.start) if first is not None else ""
    return _ObjectLayout(is_inline, newline, outer, outer + (step or "  "))


def _indent(text: str, at: int) -> str:
    """The indentation of the line at this position."""
    begin = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, begin)
    return found[0] if found else ""


def _begins_line(text: str, at: int) -> bool:
    begin = text.rfind("\n", 0, at) + 1
    return begin > 0 and not text[begin:at].strip(" \t")


def _insert_raw(
    document: JsoncDocument, node: JsoncNode, key: str, raw: str, before: JsoncMember | None
) -> str:
    form = _layout_of(document, node)
    text, member = document.text, f"{json.dumps(key, ensure_ascii=False)}: {raw}"
    inside = text[node.start + 1 : node.end - 1]
    lead = " " if form.is_inline else form.newline + form.inner
    if not inside.strip(" \t\r\n"):
        return f"{text[: node.start + 1]}{lead}{member}{form.newline}{form.outer}{text[node.end - 1 :]}"
    hole = _insert_point(document, node, before)
    head, tail = text[: hole.at], text[hole.at :]
    if hole.comma_at is not None:
        head = f"{head[: hole.comma_at]},{head[hole.comma_at :]}"
    return f"{head}{lead}{member}{',' if hole.is_followed else ''}{tail}"


def _insert_point(document: JsoncDocument, node: JsoncNode, before: JsoncMember | None) -> _InsertPoint:
    if before is None:
        return _InsertPoint(None, _after_comments(document, node.start + 1), bool(node.members))
    if before.comma is None:
        return _InsertPoint(before.node.end, _after_comments(document, before.node.end), False)
    return _InsertPoint(None, _after_comments(document, before.comma + 1), True)


def _after_comments(document: JsoncDocument, at: int) -> int:
    """The position after the comments at the end of this line, which belong to the text before them."""
    text, position = document.text, at
    for start, end in document.comments:
        if start >= position and not text[position:start].strip(" \t"):
            position = end
    rest = re.compile(r"[ \t]*(\r?\n|\}|\Z)")
    return position if rest.match(text, position) else at


def _cut_member(document: JsoncDocument, member: JsoncMember, before: JsoncMember | None) -> str:
    text = document.text
    end = member.node.end
    comma = member.comma
    cuts = list[tuple[int, int]]()
    if comma is not None and not text[end:comma].strip(" \t\r\n"):
        end = comma + 1
    elif comma is not None:
        cuts.append((comma, comma + 1))
    elif before is not None and before.comma is not None:
        cuts.append((before.comma, before.comma + 1))
    cuts.append((_cut_start(document, member.start, end), end))
    for first, last in sorted(cuts, reverse=True):
        text = text[:first] + text[last:]
    return text


def _cut_start(document: JsoncDocument, start: int, end: int) -> int:
    """The start of the cut for a member, with the line break before it unless the rest needs that."""
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


def _collapse_empty(text: str, path: tuple[str, ...]) -> str:
    """The text with `{}` for an object that has no members and no comments left."""
    node = _find_object(_parse(text), path)
    blank = not text[node.start + 1 : node.end - 1].strip(" \t\r\n")
    return f"{text[: node.start + 1]}{text[node.end - 1 :]}" if blank else text


def _verify(changed: str, text: str, path: tuple[str, ...], key: str, value: object) -> str:
    """The changed text, if it has the expected value; raises EditError otherwise."""
    if read(changed) != _expected(read(text), path, key, value):
        raise EditError(f"{'.'.join((*path, key))} cannot be changed without harm to the rest of the file")
    return changed


def _expected(whole: object, path: tuple[str, ...], key: str, value: object) -> object:
    if not isinstance(whole, dict):
        return whole
    if path:
        return {**whole, path[0]: _expected(whole.get(path[0]), path[1:], key, value)}
    rest = {name: one for name, one in whole.items() if name != key}
    return rest if value is _REMOVED else {**rest, key: value}
