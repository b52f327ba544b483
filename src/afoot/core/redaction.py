"""`Redactor` takes secrets out of JSON and out of text, before it is kept or shown (S4).

A secret is known by the name of its field, by its own shape, or because a JSON schema says so (`writeOnly`,
`format: password`, `x-secret`). A tool gets what it was sent: only what is kept and shown is cleaned.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from json import dumps

from msgspec import DecodeError, Raw, Struct, json

MAX_SCHEMAS = 200  # that may hold for one value; a schema may refer to itself
DECLARES = re.compile(rb'"writeOnly"\s*:\s*true|"format"\s*:\s*"password"|"x-secret"\s*:\s*true')

Schema = Mapping[str, object]

REDACTED_KEY = "dev.afoot/redacted"
REDACTED_JSON = Raw(b'{"dev.afoot/redacted":true}')  # the mark that stands in place of a secret in JSON
REDACTED_TEXT = "[redacted]"  # the same in running text
MAX_DEPTH = 64  # a suspicious value that lies deeper is left out as a whole
MIN_KNOWN_CHARS = 8  # of a known secret that is looked for in any text: "1" is none
MIN_OWN_CHARS = 4  # of a secret that stands in the arguments of the call that the text is about
MAX_LINES = 128  # of a secret that is also looked for line by line: a key file has fewer

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
    # A JWT; or, where it is glued to a word, its second part on. Each begins at one place of a long word.
    r"eyJ(?<![\w-]eyJ)[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]+",
    r"(?<=[\w-]{13})\.eyJ[\w-]{10,}+\.[\w-]+",
    r"Bearer [\w.~+/=-]{16,}",
    r"bearer [\w.~+/=-]{16,}",
    r":(?:\\?/){2}[^/\s:@\"]*:[^/\s@\"]+@",  # JSON may have a backslash before each slash
    r"afoot_[A-Za-z0-9_-]{43}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)

Scan = Callable[[Raw], object]
# The value in `name = value`: quoted, also within JSON that is text itself; or a word, maybe with its scheme.
_SAID = (
    r"\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|(?:(?:basic|bearer|digest|negotiate|token|apikey)\s+)?[^\s,;&]+"
)
_COOKIES = re.compile(r"(?i)((?:set-)?cookie\s*:\s*)[^\r\n\"']+")
_FIRST = re.compile(rb"\s*(.)", re.DOTALL)
_ALWAYS = re.compile(b"").search
_any = json.Decoder(list[Raw] | dict[str, Raw])


class RedactionRules(Struct, frozen=True, omit_defaults=True):
    """The settings for secrets: names of fields, names among them that are none after all, shapes of values.

    They add to NAMES, KEEP and VALUES, unless `usual` is False.
    """

    names: list[str] = []
    keep: list[str] = []
    values: list[str] = []
    usual: bool = True


class DeclaredSecrets(Struct, frozen=True):
    """The parts of a schema that hold for one value, and what they say of its secrets."""

    root: Schema
    parts: tuple[Schema, ...]

    @property
    def is_secret(self) -> bool:
        """Whether the value itself is declared to be a secret."""
        return any(
            one.get("writeOnly") is True or one.get("format") == "password" or one.get("x-secret") is True
            for one in self.parts
        )

    def below(self, name: str | int) -> "DeclaredSecrets | None":
        """The same for the value inside it of this name or number; None if the schema says nothing of it."""
        found = [part for one in self.parts for part in _inside(one, name)]
        return DeclaredSecrets(self.root, _expanded(self.root, found)) if found else None


class Redactor:
    """Finds and takes out secrets by compiled rules. Raises re.error for a shape that is no pattern."""

    def __init__(self, rules: RedactionRules = RedactionRules()) -> None:  # noqa: B008
        self.rules = rules
        usual = (NAMES, KEEP, VALUES) if rules.usual else ((), (), ())
        names = (*usual[0], *rules.names)
        keep = (*usual[1], *rules.keep)
        values = (*usual[2], *rules.values)
        self._names = re.compile("|".join(map(_glob, names)) or "(?!)", re.IGNORECASE | re.DOTALL)
        self._keep = re.compile("|".join(map(_glob, keep)) or "(?!)", re.IGNORECASE | re.DOTALL)
        self._text = re.compile("|".join(f"(?:{one})" for one in values) or "(?!)")
        words = "|".join(_word(one) for one in names) or "(?!)"
        self._said = re.compile(rf"(?i)((?:{words})\w{{0,64}}+)(\\?[\"']?\s*[=:]\s*)({_SAID})")
        self._stems = [_longest_part(one) for one in names]
        self._hides_cookies = self.is_secret("cookie")
        # One pass over the bytes of arguments tells whether they can be kept as they are: nearly always, and
        # then they are not decoded. A name is looked for only where a key can be: at a quote, with another
        # quote and a colon behind it. A key with an escape in it could be any name.
        key = rf'"(?=[^"]{{1,200}}"\s*:)(?i:[^"]*?(?:{words}|\\))'
        self._shapes = re.compile(self._text.pattern.encode())
        self._scan = re.compile(f"{key}|{self._text.pattern}".encode())
        self.known: frozenset[str] = frozenset()
        self.forms: frozenset[str] = frozenset()  # of those, as they may stand in text

    def add_named_secrets(self, secrets: Mapping[str, str]) -> None:
        """Look from now on for those values of variables or headers whose names mean secrets."""
        found = {one for name, one in secrets.items() if self.is_secret(name)}
        found |= {one.partition(" ")[2] for one in found}  # of "Bearer x", also the x
        self.recall({one for one in found if len(one) >= MIN_KNOWN_CHARS})

    def recall(self, known: Set[str]) -> None:
        """Look from now on for these texts, whatever their names were."""
        if not known <= self.known:
            self.known |= known
            self.forms = text_forms(self.known)

    def is_secret(self, name: str) -> bool:
        """Whether a field of this name holds a secret."""
        return self._names.fullmatch(name) is not None and self._keep.fullmatch(name) is None

    def scan(self, definition: Raw) -> Scan:
        """The search for suspicious arguments of this tool, in one pass; it gives None if there are none."""
        return _ALWAYS if DECLARES.search(definition) else self._scan.search

    def value(self, body: Raw, declared: DeclaredSecrets | None = None) -> Raw:
        """JSON without its secrets; the very same object if nothing in it looks like one."""
        return self._clean(body, _Place(declared)) if body else body

    def text(self, text: str, more: Set[str] = frozenset()) -> str:
        """Text without the secrets in it; `more`: the forms of secrets of one call."""
        text = self._text.sub(REDACTED_TEXT, remove_texts(text, self.forms | more))
        if not self._may_name_secret(text):
            return text
        if self._hides_cookies:  # of which there may be several
            text = _COOKIES.sub(rf"\1{REDACTED_TEXT}", text)
        return self._said.sub(self._unsaid, text)

    def _may_name_secret(self, text: str) -> bool:
        """Whether `name = value` may stand in a text: it has a sign for it, and a part of a name.

        Most lines have no name, and this finds it 50 times faster than the patterns do. Letters that are not
        ASCII may be others in another case, so they are left to the patterns.
        """
        if "=" not in text and ":" not in text:
            return False
        if not text.isascii():
            return True
        lower = text.lower()
        return any([stem in lower for stem in self._stems])

    def _unsaid(self, found: re.Match[str]) -> str:
        """The replacement for `name = value`."""
        return f"{found[1]}{found[2]}{REDACTED_TEXT}" if self.is_secret(found[1]) else found[0]

    def _clean(self, body: Raw, at: "_Place") -> Raw:
        """One value without its secrets; decoded only if it looks suspicious or something is declared."""
        begins = _FIRST.match(body)
        first = b"" if begins is None else begins[1]
        if first == b'"':
            return REDACTED_JSON if self._shapes.search(body) else body
        if first not in (b"{", b"["):
            return body
        # A value that is most of a suspicious one counts as suspicious unseen: else the same bytes would be
        # searched anew at every depth.
        is_most = 0 < at.size < 2 * len(body) and at.depth < MAX_DEPTH
        if not (at.declared or is_most or self._scan.search(body)):
            return body
        parts = None if at.depth >= MAX_DEPTH else _parts(body)
        if parts is None:
            return REDACTED_JSON
        above = _Place(at.declared, at.depth + 1, len(body))
        if isinstance(parts, list):
            return Raw(json.encode([self._kept(number, one, above) for number, one in enumerate(parts)]))
        # Written anew even where all is kept: where a name stands twice, only one value was looked at.
        return Raw(json.encode({name: self._kept(name, one, above) for name, one in parts.items()}))

    def _kept(self, name: str | int, value: Raw, above: "_Place") -> Raw:
        """The value of this name or number inside another one, as it is kept."""
        within = None if above.declared is None else above.declared.below(name)
        if (within is not None and within.is_secret) or (isinstance(name, str) and self.is_secret(name)):
            return _hidden(value)
        at = above if within is above.declared else _Place(within, above.depth, above.size)
        return self._clean(value, at)


class _Place(Struct, frozen=True):
    """The place of a value: what is declared of it, its depth, and the size of the value around it."""

    declared: DeclaredSecrets | None
    depth: int = 0
    size: int = 0


def _parts(body: Raw) -> list[Raw] | dict[str, Raw] | None:
    """The parts of an array or an object; None if it is nested too deep to be read."""
    try:
        return _any.decode(body)
    except RecursionError:
        return None


def redacted_pointers(body: Raw) -> list[str]:
    """The JSON pointers to the marks in a JSON text; none in a text that is no JSON."""
    if not body or REDACTED_KEY.encode() not in bytes(body):
        return []
    try:
        return list(_marks(json.decode(body), ""))
    except (DecodeError, RecursionError):
        return []


def _marks(value: object, at: str) -> Iterator[str]:
    if value == {REDACTED_KEY: True}:
        yield at
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _marks(one, f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _marks(one, f"{at}/{number}")


def hidden_texts(real: Raw, kept: Raw) -> frozenset[str]:
    """The texts in real JSON that are marks in the JSON that is kept of it."""
    if kept is real or not kept or REDACTED_KEY.encode() not in bytes(kept):
        return frozenset()
    try:
        return text_forms(_behind(json.decode(real), json.decode(kept)))
    except (DecodeError, RecursionError):
        return frozenset()


def text_forms(texts: Iterable[str]) -> frozenset[str]:
    """The forms in which these may stand in other text: plain, as Python and JSON quote them, line by line.

    Every form is looked for in every line that is kept, so there may not be many.
    """
    found: set[str] = set()
    for one in texts:
        found |= {one, repr(one)[1:-1], dumps(one)[1:-1], dumps(one, ensure_ascii=False)[1:-1]}
        lines = one.splitlines()
        found.update(line for line in lines if len(line) >= MIN_KNOWN_CHARS and len(lines) <= MAX_LINES)
    return frozenset(found)


def remove_texts(text: str, secrets: Set[str]) -> str:
    """Text without these secrets, the longest first: one may be part of another."""
    for one in sorted([one for one in secrets if one in text], key=len, reverse=True):
        text = text.replace(one, REDACTED_TEXT)
    return text


def _behind(real: object, kept: object) -> Iterator[str]:
    """The texts behind the marks, except those too short to be found in other text."""
    if kept == {REDACTED_KEY: True}:
        yield from (one for one in _texts(real) if len(one) >= MIN_OWN_CHARS)
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
    return value if bytes(value) in (b"null", b"true", b"false", b'""', b"{}", b"[]") else REDACTED_JSON


def _glob(name: str) -> str:
    steps = {"*": ".*", "_": "[-_. ]*"}
    return "".join(steps.get(char) or re.escape(char) for char in name)


def _longest_part(name: str) -> str:
    """The longest part of a name that stands in every text which it matches; maybe nothing."""
    return max(re.split(r"[*_]", name.lower()), key=len) if name.isascii() else ""


def _word(name: str) -> str:
    """The pattern of a name that may stand anywhere in a key."""
    steps = {"*": '[^"]*', "_": "[-_. ]*"}
    return "".join(steps.get(char) or re.escape(char) for char in name.strip("*"))


def declared_in_schema(schema: Raw) -> DeclaredSecrets | None:
    """The secrets that a schema declares; None if there are none."""
    return _read(schema, "")


def declared_in_answer(schema: Raw) -> DeclaredSecrets | None:
    """The same for an answer as it is sent, or several by their keys: the schema is for its `content`."""
    asked = _read(schema, "")
    if asked is None:
        return None
    answer = {"properties": {"content": asked.root}}
    return DeclaredSecrets(asked.root, ({**answer, "additionalProperties": answer},))


def declared_in_tool(definition: Raw) -> DeclaredSecrets | None:
    """The secrets that the input schema of a tool declares; None if there are none."""
    return _read(definition, "inputSchema")


def _read(text: Raw, key: str) -> DeclaredSecrets | None:
    if not text or DECLARES.search(text) is None:
        return None
    try:
        found = json.decode(text)
    except (DecodeError, RecursionError):
        return None
    schema = found.get(key) if key and isinstance(found, dict) else found
    return DeclaredSecrets(schema, _expanded(schema, [schema])) if isinstance(schema, dict) else None


def _inside(schema: Schema, name: str | int) -> Iterator[object]:
    if isinstance(name, int):
        first = schema.get("prefixItems")
        yield first[name] if isinstance(first, list) and name < len(first) else schema.get("items")
        return
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        yield properties[name]
        return
    yield schema.get("additionalProperties")
    patterns = schema.get("patternProperties")
    if isinstance(patterns, dict):  # a pattern of a stranger is not run: all of them count
        yield from patterns.values()


def _expanded(root: Schema, found: list[object]) -> tuple[Schema, ...]:
    """These schemas, and all schemas that they refer to or are made of."""
    known: list[Schema] = []
    while found and len(known) < MAX_SCHEMAS:
        one = found.pop()
        if not isinstance(one, dict) or any(one is other for other in known):
            continue
        known.append(one)
        for key in ("allOf", "anyOf", "oneOf"):
            several = one.get(key)
            found += several if isinstance(several, list) else []
        found += [one[key] for key in ("then", "else") if key in one]
        if isinstance(ref := one.get("$ref"), str) and ref.startswith("#"):
            found.append(_referred(root, ref))
    return tuple(known)


def _referred(root: Schema, ref: str) -> object:
    at: object = root
    for step in ref.removeprefix("#").split("/")[1:]:
        at = at.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
    return at


DEFAULT_REDACTOR = Redactor()
