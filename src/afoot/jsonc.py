"""JSON as hosts write it, with comments and trailing commas: read, with the place of every key and value."""

import json
import re

from msgspec import Struct

DEEPEST = 200

_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_ATOM = re.compile(
    r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w)", re.ASCII
)


class JsoncError(ValueError):
    """The text is no JSON; the message begins with line and column, both counted from 1."""

    def __init__(self, text: str, at: int, what: str) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - text.rfind("\n", 0, at)
        super().__init__(f"line {self.line}, column {self.column}: {what}")


class Node(Struct, frozen=True):
    """A value, and from where to where it stands; the members of an object, the items of a list."""

    start: int
    end: int
    value: object
    members: "tuple[Member, ...]" = ()
    items: "tuple[Node, ...]" = ()

    def get(self, key: str) -> "Member | None":
        """The member of that name; of two, the one that counts, which is the last."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class Member(Struct, frozen=True):
    """A key of an object, with its value, and the place of the comma behind it, if there is one."""

    key: str
    start: int
    node: Node
    comma: int | None = None


class Document(Struct, frozen=True):
    """A whole text: its value, and where comments stand."""

    text: str
    root: Node
    comments: tuple[tuple[int, int], ...] = ()


def loads(text: str) -> object:
    """The value of a text; raises JsoncError, a ValueError, with line and column."""
    return parse(text).root.value


def parse(text: str) -> Document:
    """The text with the place of everything in it; raises JsoncError."""
    reader = _Reader(text)
    root = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise JsoncError(text, reader.at, "nothing more may follow here")
    return Document(text, root, tuple(reader.comments))


class _Reader:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = len("\ufeff") if text.startswith("\ufeff") else 0
        self.comments: list[tuple[int, int]] = []

    def skip(self) -> None:
        """Go to the next sign that counts."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                break
            self.comments.append(comment.span())
            self.at = comment.end()
        if self.text.startswith("/*", self.at):
            raise self.wrong("this comment has no end")

    def wrong(self, what: str) -> JsoncError:
        """What is wrong here."""
        return JsoncError(self.text, self.at, what)

    def sign(self) -> str:
        """The next sign that counts, empty at the end."""
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        """Read a value."""
        sign = self.sign()
        if depth > DEEPEST:
            raise self.wrong(f"nested deeper than {DEEPEST}")
        if sign == "{":
            return self.table(depth)
        if sign == "[":
            return self.array(depth)
        start = self.at
        found = self.string() if sign == '"' else self.atom()
        return Node(start, self.at, found)

    def table(self, depth: int) -> Node:
        """Read an object, from its brace on."""
        start, members = self.at, list[Member]()
        self.at += 1
        while self.sign() != "}":
            begin = self.at
            if self.sign() != '"':
                raise self.wrong('a key in "quotes" or } must stand here')
            key = self.string()
            if self.sign() != ":":
                raise self.wrong(f"a colon must follow the key {json.dumps(key)}")
            self.at += 1
            node = self.value(depth + 1)
            members.append(Member(key, begin, node, self.comma("}")))
        self.at += 1
        value = {member.key: member.node.value for member in members}
        return Node(start, self.at, value, members=tuple(members))

    def array(self, depth: int) -> Node:
        """Read a list, from its bracket on."""
        start, items = self.at, list[Node]()
        self.at += 1
        while self.sign() != "]":
            items.append(self.value(depth + 1))
            self.comma("]")
        self.at += 1
        return Node(start, self.at, [item.value for item in items], items=tuple(items))

    def comma(self, closing: str) -> int | None:
        """Read a comma, or see the closing sign."""
        sign = self.sign()
        if sign == closing:
            return None
        if sign != ",":
            raise self.wrong(f"a comma or {closing} must stand here")
        self.at += 1
        return self.at - 1

    def string(self) -> str:
        """Read a string, from its quote on."""
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.wrong(
                "this string has no end, or an escape or a control character that JSON does not know"
            )
        self.at = found.end()
        return str(json.loads(found[0]))

    def atom(self) -> object:
        """Read a number or a word."""
        found = _ATOM.match(self.text, self.at)
        if found is None:
            raise self.wrong("a value must stand here")
        self.at = found.end()
        return json.loads(found[0])
