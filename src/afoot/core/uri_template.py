"""`UriTemplate` reads the values of a URI's variables by an RFC 6570 template.

Supported are `{name}`, `{+name}`, `{#name}`, `{.name}`, `{/name}`, `{/names*}` and, at the end, `{?a,b}`. A
template in which two variables cannot be told apart is refused. Matching takes time in proportion to the
length of the URI, whatever the template: a stranger chooses the URI.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

from msgspec import Struct

Values = dict[str, str | list[str]]

MAX_URI_CHARS = 4096  # a longer URI fits no template
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATORS = "+#./?&;=,!@|"
_SEGMENT_END = "/?#"  # a variable that is one segment ends before these
_LITERAL_BEFORE = {"#": "#", ".": ".", "/": "/"}  # the text that an operator puts before its first variable


class _Part(Struct, frozen=True):
    """A literal text, or a variable with the characters that it cannot contain."""

    text: str = ""
    variable: str = ""
    barred: str = ""
    is_list: bool = False
    is_wide: bool = False  # it may take several segments


class UriTemplate:
    """A URI template. Raises ValueError that says what is wrong with it."""

    def __init__(self, template: str) -> None:
        self.template = template
        self._parts: list[_Part] = []
        self.query: tuple[str, ...] = ()  # variables that may be left out
        self._parse(template)
        self._check()

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all variables, in their order."""
        return (*(part.variable for part in self._parts if part.variable), *self.query)

    @property
    def is_fixed(self) -> bool:
        """Whether the template has no variables: it is the URI of one resource."""
        return not self.variables

    def match(self, uri: str) -> Values | None:
        """The decoded values of the variables in this URI; None if it does not come from this template."""
        if len(uri) > MAX_URI_CHARS:
            return None
        if not self.query:
            return self._match_parts(uri)
        head, _, tail = uri.partition("?")
        found = self._match_parts(head)
        return None if found is None else found | self._read_query(tail)

    def expand(self, values: Values) -> str:
        """The URI for these values; variables of the query that are left out do not occur in it."""
        made: list[str] = []
        for part in self._parts:
            if not part.variable:
                made.append(part.text)
                continue
            safe = "/" if part.is_wide and not part.is_list else ""
            made.append("/".join(quote(one, safe=safe) for one in _as_list(values[part.variable])))
        pairs = [
            f"{name}={quote(one, safe='')}"
            for name in self.query
            if name in values
            for one in _as_list(values[name])
        ]
        return "".join(made) + ("?" + "&".join(pairs) if pairs else "")

    def covers(self, other: "UriTemplate") -> bool:
        """Whether every URI of the other template fits this one, too."""
        return all(self.match(uri) is not None for uri in other._samples())

    def _samples(self) -> list[str]:
        """URIs that fit this template, with values of which a narrower template takes only some."""
        wide: Values = {}
        narrow: Values = {}
        for part in self._parts:
            if part.variable:
                wide[part.variable] = ["s1", "s2", "s3"] if part.is_list else "s1/s2/s3"
                if not part.is_wide:
                    wide[part.variable] = "s1,s2"
                narrow[part.variable] = ["s"] if part.is_list else "s"
        return [self.expand(wide), self.expand(narrow)]

    def _parse(self, template: str) -> None:
        rest = template
        while rest:
            literal, brace, rest = rest.partition("{")
            if "}" in literal:
                raise ValueError(f"{template!r} has a }} without its {{")
            if literal:
                self._parts.append(_Part(literal))
            if brace:
                expression, end, rest = rest.partition("}")
                if not end:
                    raise ValueError(f"{template!r} has a {{ without its }}")
                if self.query:
                    raise ValueError(f"{{?…}} must be the end of {template!r}")
                self._add_expression(expression)
            elif self.query and literal:
                raise ValueError(f"{{?…}} must be the end of {template!r}")

    def _add_expression(self, expression: str) -> None:
        operator = expression[:1] if expression[:1] in _OPERATORS else ""
        if operator not in ("", "+", "#", ".", "/", "?"):
            known = "{name}, {+name}, {#name}, {.name}, {/name}, {/names*} and {?a,b}"
            raise ValueError(f"{{{expression}}} is not supported; there are {known}")
        specs = expression[len(operator) :].split(",")
        for at, spec in enumerate(specs):
            name = spec.removesuffix("*")
            is_list = spec.endswith("*")
            if not _NAME.fullmatch(name):
                raise ValueError(f"{{{expression}}}: {spec!r} is no name of a parameter")
            if is_list and operator not in ("/", "?"):
                raise ValueError(f"{{{expression}}}: a list is written as {{/{name}*}}")
            if operator == "?":
                self.query = (*self.query, name)
                continue
            before = _LITERAL_BEFORE.get(operator, "") if at == 0 or operator in "./" else ""
            before = before or ("," if at else "")
            if before:
                self._parts.append(_Part(before))
            is_wide = operator in ("+", "#") or is_list
            barred = "?#" if is_list else "" if is_wide else _SEGMENT_END
            self._parts.append(_Part("", name, barred, is_list, is_wide))

    def _check(self) -> None:
        names = self.variables
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{self.template!r} names {twice} twice")
        for before, part in zip(self._parts, self._parts[1:], strict=False):
            if before.variable and part.variable:
                both = f"{before.variable} and {part.variable}"
                raise ValueError(
                    f"{self.template!r}: put a text between {both}, else they cannot be told apart"
                )
        if sum(part.is_wide for part in self._parts) > 1:
            raise ValueError(f"{self.template!r}: only one variable may take several segments")
        scheme = self._parts[0].text if self._parts else ""
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", scheme):
            raise ValueError(f"{self.template!r} is no URI: it must begin with a scheme, such as file:///")

    def _match_parts(self, uri: str) -> Values | None:
        """Carry the set of possible positions through the parts, then read the values from the end."""
        reached: list[set[int]] = [{0}]
        for part in self._parts:
            after = (
                _after_variable(reached[-1], uri, part)
                if part.variable
                else _after_text(reached[-1], uri, part)
            )
            if not after:
                return None
            reached.append(after)
        end = len(uri)
        if end not in reached[-1]:
            return None
        found: Values = {}
        for part, starts in zip(reversed(self._parts), reversed(reached[:-1]), strict=True):
            if part.variable:
                start = next(at for at in range(end - 1, -1, -1) if at in starts)
                found[part.variable] = _decode(uri[start:end], part.is_list)
                end = start
            else:
                end -= len(part.text)
        return {name: found[name] for name in self.variables if name in found}

    def _read_query(self, query: str) -> Values:
        """The values of the query that the template names; others are left alone."""
        found: Values = {}
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            name, text = unquote(name), unquote(value.replace("+", " "))
            if name in self.query:
                before = found.get(name)
                if before is None:
                    found[name] = text
                else:
                    found[name] = [*_as_list(before), text]
        return found


def unsafe_value(values: Values, query: Sequence[str]) -> str:
    """Why a value of the path may not be used as a part of a file's path; empty if it may (S1).

    A value that leaves the folder to which its author joins it would read any file of this machine.
    """
    for name, given in values.items():
        for value in () if name in query else _as_list(given):
            if "\x00" in value:
                return f"{name} must not contain a null character"
            if value.startswith(("/", "\\")):
                return f"{name} must not begin with a slash"
            if ".." in re.split(r"[/\\]", value):
                return f"{name} must not contain '..'"
    return ""


def _after_text(places: set[int], uri: str, part: _Part) -> set[int]:
    return {at + len(part.text) for at in places if uri.startswith(part.text, at)}


def _after_variable(places: set[int], uri: str, part: _Part) -> set[int]:
    """The positions behind a variable of at least one character that begins at one of these."""
    found: set[int] = set()
    lives = False
    for at, letter in enumerate(uri):
        lives = (lives or at in places) and letter not in part.barred
        if lives:
            found.add(at + 1)
    return found


def _as_list(given: str | list[str]) -> list[str]:
    return given if isinstance(given, list) else [given]


def _decode(text: str, is_list: bool) -> str | list[str]:
    return [unquote(one) for one in text.split("/")] if is_list else unquote(text)
