"""Secrets: which values are some, and the same things without them (S4).

A secret is known by the name of its field, by its own shape, or because the schema says so. What is looked at
here is what is kept and shown; a tool gets what it was sent.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from json import dumps

from msgspec import DecodeError, Raw, Struct, json

from afoot.core.declared import DECLARES, Declared

KEY = "dev.afoot/redacted"
MARK = Raw(b'{"dev.afoot/redacted":true}')  # what stands where a secret was
WORD = "[redacted]"  # the same in running text
DEEPEST = 64  # what lies deeper and looks suspicious is left out as a whole
LEAST = 8  # characters of a known secret that is looked for in text: "1" is none
SHORTEST = 4  # the same for one that stands in the arguments of the very call that text is about
MOST_LINES = 128  # of a secret that is looked for line by line, too: a key file has fewer

# In names `*` stands for anything, `_` also for `-`, `.`, a space or nothing; case does not count.
NAMES = (
    "*password*", "*passwd*", "*passphrase*", "*secret*", "*token", "*api_key*", "*access_key*",
    "*private_key*", "*credential*", "*authorization", "cookie", "set_cookie",
)  # fmt: skip
KEEP = ("progress_token", "*page_token", "*next_token", "*continuation_token", "max_token", "stop_token")
VALUES = (
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_\w{20,}",
    r"glpat-[\w-]{20,}",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"AKIA[0-9A-Z]{16}",
    r"AIza[\w-]{35}",
    r"xox[abeprs]-[\w-]{10,}",
    # A JWT, or behind what it is glued to the part of it that matters; either begins once in a long word.
    r"eyJ(?<![\w-]eyJ)[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]+",
    r"(?<=[\w-]{13})\.eyJ[\w-]{10,}+\.[\w-]+",
    r"Bearer [\w.~+/=-]{16,}",
    r"bearer [\w.~+/=-]{16,}",
    r":(?:\\?/){2}[^/\s:@\"]*:[^/\s@\"]+@",  # JSON may have a backslash before each slash
    r"afoot_[A-Za-z0-9_-]{43}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)

Scan = Callable[[Raw], object]
# What somebody says a secret is: quoted, also within JSON that is text itself; or a word, with its scheme.
_SAID = (
    r"\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|(?:(?:basic|bearer|digest|negotiate|token|apikey)\s+)?[^\s,;&]+"
)
_COOKIES = re.compile(r"(?i)((?:set-)?cookie\s*:\s*)[^\r\n\"']+")
_FIRST = re.compile(rb"\s*(.)", re.DOTALL)
_ALWAYS = re.compile(b"").search
_any = json.Decoder(list[Raw] | dict[str, Raw])


class Rules(Struct, frozen=True, omit_defaults=True):
    """What counts as a secret: names of fields, those of them that are none after all, shapes of values.

    All of it besides what usually is one, unless that is switched off.
    """

    names: list[str] = []
    keep: list[str] = []
    values: list[str] = []
    usual: bool = True


class Redactor:
    """The rules, compiled. Raises re.error for a shape that is no regular expression."""

    def __init__(self, rules: Rules = Rules()) -> None:  # noqa: B008
        self.rules = rules
        usual = (NAMES, KEEP, VALUES) if rules.usual else ((), (), ())
        names, keep, values = (*usual[0], *rules.names), (*usual[1], *rules.keep), (*usual[2], *rules.values)
        self._names = re.compile("|".join(map(_glob, names)) or "(?!)", re.IGNORECASE | re.DOTALL)
        self._keep = re.compile("|".join(map(_glob, keep)) or "(?!)", re.IGNORECASE | re.DOTALL)
        self._text = re.compile("|".join(f"(?:{one})" for one in values) or "(?!)")
        words = "|".join(_word(one) for one in names) or "(?!)"
        self._said = re.compile(rf"(?i)((?:{words})\w{{0,64}}+)(\\?[\"']?\s*[=:]\s*)({_SAID})")
        self._hides_cookies = self.is_secret("cookie")
        # A name is looked for only where a key can be: at a quote, with another and a colon behind it. One
        # with an escape in it could be any.
        key = rf'"(?=[^"]{{1,200}}"\s*:)(?i:[^"]*?(?:{words}|\\))'
        self._shapes = re.compile(self._text.pattern.encode())
        self._scan = re.compile(f"{key}|{self._text.pattern}".encode())
        self.known: frozenset[str] = frozenset()
        self.forms: frozenset[str] = frozenset()  # of those, as they may stand in text

    def know(self, secrets: Mapping[str, str]) -> None:
        """Look for these in text, too: values of variables and headers, by their names."""
        found = {one for name, one in secrets.items() if self.is_secret(name)}
        found |= {one.partition(" ")[2] for one in found}  # of "Bearer x", also the x
        self.recall({one for one in found if len(one) >= LEAST})

    def recall(self, known: Set[str]) -> None:
        """Look for these in text, whatever their names were."""
        if not known <= self.known:
            self.known |= known
            self.forms = written(self.known)

    def is_secret(self, name: str) -> bool:
        """Whether a field of this name holds a secret."""
        return self._names.fullmatch(name) is not None and self._keep.fullmatch(name) is None

    def scan(self, definition: Raw) -> Scan:
        """What finds suspicious arguments of this tool in one pass over their bytes: None if they are not."""
        return _ALWAYS if DECLARES.search(definition) else self._scan.search

    def value(self, body: Raw, declared: Declared | None = None) -> Raw:
        """JSON without its secrets; the very same object if nothing in it looks like one."""
        return self._clean(body, _Place(declared)) if body else body

    def text(self, text: str, more: Set[str] = frozenset()) -> str:
        """Text without the secrets in it; `more`: forms of some that others need not know."""
        text = self._text.sub(WORD, without(text, self.forms | more))
        if self._hides_cookies:  # of which there may be several
            text = _COOKIES.sub(rf"\1{WORD}", text)
        return self._said.sub(self._unsaid, text)

    def _unsaid(self, found: re.Match[str]) -> str:
        """What is left of `name = value`."""
        return f"{found[1]}{found[2]}{WORD}" if self.is_secret(found[1]) else found[0]

    def _clean(self, body: Raw, at: "_Place") -> Raw:
        """One value; it is read only as far as something in it looks suspicious, or is declared."""
        begins = _FIRST.match(body)
        first = b"" if begins is None else begins[1]
        if first == b'"':
            return MARK if self._shapes.search(body) else body
        if first not in (b"{", b"["):
            return body
        # Most of what is suspicious is taken to be so itself: else it would be searched anew at every depth.
        is_most = 0 < at.size < 2 * len(body) and at.depth < DEEPEST
        if not (at.declared or is_most or self._scan.search(body)):
            return body
        parts = None if at.depth >= DEEPEST else _parts(body)
        if parts is None:
            return MARK
        above = _Place(at.declared, at.depth + 1, len(body))
        if isinstance(parts, list):
            return Raw(json.encode([self._kept(number, one, above) for number, one in enumerate(parts)]))
        # Written anew even where all is kept: of a name that stands there twice, one was not looked at.
        return Raw(json.encode({name: self._kept(name, one, above) for name, one in parts.items()}))

    def _kept(self, name: str | int, value: Raw, above: "_Place") -> Raw:
        """What is kept of a value inside another."""
        within = None if above.declared is None else above.declared.below(name)
        if (within is not None and within.is_secret) or (isinstance(name, str) and self.is_secret(name)):
            return _hidden(value)
        at = above if within is above.declared else _Place(within, above.depth, above.size)
        return self._clean(value, at)


class _Place(Struct, frozen=True):
    """Where a value lies: what is declared of it, or of what it lies in, how deep, and in how much."""

    declared: Declared | None
    depth: int = 0
    size: int = 0


def _parts(body: Raw) -> list[Raw] | dict[str, Raw] | None:
    """What lies in an array or an object; None if it is nested deeper than anybody can read."""
    try:
        return _any.decode(body)
    except RecursionError:
        return None


def redacted(body: Raw) -> list[str]:
    """Where marks stand in JSON, as JSON pointers; none in what is no JSON."""
    if not body or KEY.encode() not in bytes(body):
        return []
    try:
        return list(_marks(json.decode(body), ""))
    except (DecodeError, RecursionError):
        return []


def _marks(value: object, at: str) -> Iterator[str]:
    if value == {KEY: True}:
        yield at
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _marks(one, f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _marks(one, f"{at}/{number}")


def hidden(real: Raw, kept: Raw) -> frozenset[str]:
    """The texts that stand in JSON where marks stand in what is kept of it."""
    if kept is real or not kept or KEY.encode() not in bytes(kept):
        return frozenset()
    try:
        return written(_behind(json.decode(real), json.decode(kept)))
    except (DecodeError, RecursionError):
        return frozenset()


def written(texts: Iterable[str]) -> frozenset[str]:
    """These as they may stand in other text: plain, as Python and JSON quote them, or line by line.

    Every form is looked for in every line that is kept, so there are only so many.
    """
    found: set[str] = set()
    for one in texts:
        found |= {one, repr(one)[1:-1], dumps(one)[1:-1], dumps(one, ensure_ascii=False)[1:-1]}
        lines = one.splitlines()
        found.update(line for line in lines if len(line) >= LEAST and len(lines) <= MOST_LINES)
    return frozenset(found)


def without(text: str, secrets: Set[str]) -> str:
    """Text without these, the longest first: one may be part of another."""
    for one in sorted([one for one in secrets if one in text], key=len, reverse=True):
        text = text.replace(one, WORD)
    return text


def _behind(real: object, kept: object) -> Iterator[str]:
    """What the marks hide, as far as it can be told from other text."""
    if kept == {KEY: True}:
        yield from (one for one in _texts(real) if len(one) >= SHORTEST)
    elif isinstance(real, dict) and isinstance(kept, dict):
        for name in real.keys() & kept.keys():
            yield from _behind(real[name], kept[name])
    elif isinstance(real, list) and isinstance(kept, list):
        for pair in zip(real, kept, strict=False):
            yield from _behind(*pair)


def _texts(value: object) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _texts(one)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _hidden(value: Raw) -> Raw:
    """The mark, unless there is nothing to hide: no secret is null, true, false or empty."""
    return value if bytes(value) in (b"null", b"true", b"false", b'""', b"{}", b"[]") else MARK


def _glob(name: str) -> str:
    steps = {"*": ".*", "_": "[-_. ]*"}
    return "".join(steps.get(char) or re.escape(char) for char in name)


def _word(name: str) -> str:
    """The same where it may be anywhere in a key."""
    steps = {"*": '[^"]*', "_": "[-_. ]*"}
    return "".join(steps.get(char) or re.escape(char) for char in name.strip("*"))


USUAL = Redactor()
