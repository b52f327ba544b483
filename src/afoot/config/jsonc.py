"""`parse` reads JSON with comments and trailing commas, as hosts write it, and keeps all positions."""

import json
import re

from msgspec import Struct

MAX_DEPTH = 200

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


class JsoncNode(Struct, frozen=True):
    """A value with its start and end in the text; an object has members, a list has items."""

    start: int
    end: int
    value: object
    members: "tuple[JsoncMember, ...]" = ()
    items: "tuple[JsoncNode, ...]" = ()

    def get(self, key: str) -> "JsoncMember | None":
        """The member of that name; of two, the last one counts."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class JsoncMember(Struct, frozen=True):
    """A key of an object, with its value, and the position of the comma behind it, if there is one."""

    key: str
    start: int
    node: JsoncNode
    comma: int | None = None


class JsoncDocument(Struct, frozen=True):
    """A whole text: its value, and the positions of its comments."""

    text: str
    root: JsoncNode
    comments: tuple[tuple[int, int], ...] = ()


def loads(text: str) -> object:
    """The value of a text; raises JsoncError, a ValueError, with line and column."""
    return parse(text).root.value


def parse(text: str) -> JsoncDocument:
    """The document with the positions of everything in it; raises JsoncError."""
    reader = _Reader(text)
    root = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise JsoncError(text, reader.at, "nothing more may follow here")
    return JsoncDocument(text, root, tuple(reader.comments))


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
        """The error at this position."""
        return JsoncError(self.text, self.at, what)

    def sign(self) -> str:
        """The next sign that counts, empty at the end."""
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> JsoncNode:
        """Read a value."""
        sign = self.sign()
        if depth > MAX_DEPTH:
            raise self.wrong(f"nested deeper than {MAX_DEPTH}")
        if sign == "{":
            return self.table(depth)
        if sign == "[":
            return self.array(depth)
        start = self.at
        found = self.string() if sign == '"' else self.atom()
        return JsoncNode(start, self.at, found)

    def table(self, depth: int) -> JsoncNode:
        """Read an object, from its brace on."""
        start, members = self.at, list[JsoncMember]()
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
            members.append(JsoncMember(key, begin, node, self.comma("}")))
        self.at += 1
        value = {member.key: member.node.value for member in members}
        return JsoncNode(start, self.at, value, members=tuple(members))

    def array(self, depth: int) -> JsoncNode:
        """Read a list, from its bracket on."""
        start, items = self.at, list[JsoncNode]()
        self.at += 1
        while self.sign() != "]":
            items.append(self.value(depth + 1))
            self.comma("]")
        self.at += 1
        return JsoncNode(start, self.at, [item.value for item in items], items=tuple(items))

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
        try:
            value: object = json.loads(found[0])
        except ValueError:
            raise self.wrong("this number has too many digits") from None
        self.at = found.end()
        return value
