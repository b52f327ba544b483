"""`Redactor` takes secrets out of JSON and out of text, before it is kept or shown (S4, S7).

A secret is known by the name of its field, flag or query parameter, by its own shape, because a JSON schema
says so (`writeOnly`, `format: password`, `x-secret`), or because its value was given to `recall`: the
gateway's tokens, and the secrets of servers. A tool gets what it was sent: only what is kept and shown is
cleaned.

Most texts hold no secret, and regular expressions are slow. So each search first looks for literals that
every secret of its kind contains. Arguments are looked through twice as fast as without, lines of text eight
times as fast.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from json import dumps
from operator import is_
from typing import AnyStr
from urllib.parse import parse_qsl, quote, quote_plus, unquote

from msgspec import DecodeError, Raw, Struct, json

MAX_SCHEMAS = 200  # that may hold for one value; a schema may refer to itself
DECLARES = re.compile(rb'"writeOnly"\s*:\s*true|"format"\s*:\s*"password"|"x-secret"\s*:\s*true')

Schema = Mapping[str, object]

REDACTED_KEY = "dev.afoot/redacted"
REDACTED_JSON = Raw(b'{"dev.afoot/redacted":true}')  # the mark that stands in place of a secret in JSON
REDACTED_TEXT = "[redacted]"  # the same in running text
SHOWN_KEY = "shown"  # in the mark of a string that is more than a secret: the string without the secret
MAX_DEPTH = 64  # a suspicious value that lies deeper is left out as a whole
MIN_KNOWN_CHARS = 8  # of a known secret that is looked for in any text: "1" is none
MIN_INNER_CHARS = 12  # of a known secret that is looked for within the strings of JSON: "postgres" is a word
MIN_OWN_CHARS = 4  # of a secret that stands in the arguments of the call that the text is about
MAX_PARTS = 10_000  # values within a suspicious one that are looked at; the others are left out unseen
MAX_OWN_TEXTS = (
    1000  # secrets of one call that are looked for in its texts; with more, all its text is hidden
)
ALL_TEXT = frozenset({""})  # in place of so many secrets: every text has this one
MAX_LENT = 100  # calls whose own secrets are kept out of texts that belong to no call
MAX_SHOWN_BYTES = 64 * 1024  # of JSON whose strings are shown around their secrets: nobody reads more
MAX_LINES = 128  # of a secret that is also looked for line by line: a key file has fewer

# In names `*` stands for anything, `_` also for `-`, `.`, a space or nothing; case does not count.
NAMES = (
    "*password*", "*passwd*", "*passphrase*", "*passcode*", "*secret*", "*token", "*api_key*", "*access_key*",
    "*private_key*", "*credential*", "*authorization", "*connection_string", "*db_pass", "*user_pass",
    "cookie", "set_cookie",
)  # fmt: skip
# A name is also that of a secret if this is its last word (`db_pass`, `userPin`), but not in `passenger`.
LAST_WORDS = ("auth", "creds", "dsn", "jwt", "otp", "pass", "pin", "pwd", "totp")
KEEP = (
    "progress_token", "*page_token", "*next_token", "*continuation_token", "max_token", "stop_token",
    # `key` is a last word too, where another word stands before it; these name things, and open nothing.
    "*primary_key", "*foreign_key", "*public_key", "*sort_key", "*partition_key", "*cache_key", "*hash_key",
    "*idempotency_key", "*row_key", "*group_key", "*object_key", "*unique_key", "*range_key", "*index_key",
    "*issue_key", "*project_key", "*file_key", "*parent_key", "*item_key", "*field_key", "*lookup_key",
    "*search_key", "*join_key", "*map_key", "*start_key", "*end_key", "*hot_key", "*shortcut_key",
    "*registry_key", "*translation_key", "*config_key", "*dedup_key",
)  # fmt: skip
# The shapes of values that are secrets under any name, each with literals of which every such value has one.
SHAPES = (
    (r"gh[pousr]_[A-Za-z0-9]{20,}", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    (r"github_pat_\w{20,}", ("github_pat_",)),
    (r"glpat-[\w-]{20,}", ("glpat-",)),
    (r"sk-[A-Za-z0-9_-]{20,}", ("sk-",)),
    (r"AKIA[0-9A-Z]{16}", ("AKIA",)),
    (r"AIza[\w-]{35}", ("AIza",)),
    (r"xox[abeprs]-[\w-]{10,}", ("xox",)),
    # A JWT; or, where it is glued to a word, its second part on. Each begins at one place of a long word.
    (r"eyJ(?<![\w-]eyJ)[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]+", ("eyJ",)),
    (r"(?<=[\w-]{13})\.eyJ[\w-]{10,}+\.[\w-]+", ("eyJ",)),
    (r"[Bb]earer [\w.~+/=-]{16,}", ("earer ",)),
    # In an address: a password, or a user as long as a key. JSON may have a backslash before each slash.
    (r":(?:\\?/){2}(?:[^/\s:@\"]*:[^/\s@\"]+|[^/\s:@\"]{20,}+)@", ("://", ":\\/\\/")),
    (r"[?&](?i:key|sig|signature|x-amz-signature)=[\w%.~+/=-]{16,}", ("?", "&")),
    (r"afoot_[A-Za-z0-9_-]{43}", ("afoot_",)),
    (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----))*+(?:-----END [A-Z ]*PRIVATE KEY-----)?",
        ("-----BEGIN",),
    ),
)

Scan = Callable[[Raw], object]
# The value in `name = value`: quoted, also within JSON that is text itself; or a word, maybe with its scheme.
# A "…" is no value: it stands for one in texts of ours, such as `Authorization: Bearer …`.
_SAID = (
    r"\\\"(?:[^\"\\]|\\[^\"])*\\\"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|(?:(?:basic|bearer|digest|negotiate|token|apikey)\s+)?+(?!…)[^\s,;&]+"
)
_COOKIES = re.compile(r"(?i)((?:set-)?cookie\s*:\s*)[^\r\n\"']+")
_VALUE = re.compile(_SAID, re.IGNORECASE)
# `--api-key X`, `--api-key=X`, and the same in a printed list: the name, and all that precedes the value.
_FLAG = re.compile(r"(?<![\w-])--?([A-Za-z][\w.-]*+)(=|\\?[\"']?\s*+,\s*+|\s++)(?!-)")
_QUERY = re.compile(r"[?&]([\w.%-]++)=(?=[^&\s])")  # a parameter in an address
_PREFIX = re.compile(r"[\w.-]*\Z")
_PREFIX_CHARS = 64  # before a word in text that may belong to the same name
_MAX_NAMES = 2000  # whose meaning is remembered
_EMPTY_BYTES = 2  # of JSON that can say nothing, such as the arguments of a tool that has none
# The last word of a name, where `{}` is any of LAST_WORDS: behind a separator, or with a capital of its own.
_LAST = (
    r"(?:(?<![A-Za-z])(?i:{0})|(?<=[a-z0-9])(?:{1})|(?<=[A-Za-z0-9][-_. ])(?i:key)|(?<=[a-z0-9])(?:Key|KEY))"
    r"[0-9]*"
)
_FIRST = re.compile(rb"\s*(.)", re.DOTALL)

_MARK_KEYS = frozenset((REDACTED_KEY, SHOWN_KEY))

_any = json.Decoder(list[Raw] | dict[str, Raw])


class RedactionRules(Struct, frozen=True, omit_defaults=True):
    """The settings for secrets: names of fields, names among them that are none after all, shapes of values.

    They add to NAMES, LAST_WORDS, KEEP and SHAPES, unless `usual` is False.
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
        usual, keep, shapes = (NAMES, KEEP, SHAPES) if rules.usual else ((), (), ())
        names = (*usual, *rules.names)
        self._names = re.compile("|".join(map(_glob, names)) or "(?!)", re.IGNORECASE | re.DOTALL)
        self._keep = re.compile(
            "|".join(map(_glob, (*keep, *rules.keep))) or "(?!)", re.IGNORECASE | re.DOTALL
        )
        last = _last_word() if rules.usual else "(?!)"
        self._last = re.compile(rf"{last}\Z")
        self._is_secret: dict[str, bool] = {}
        values = (*(one for one, _ in shapes), *rules.values)
        self._text = re.compile("|".join(f"(?:{one})" for one in values) or "(?!)")
        words = "|".join(_word(one) for one in names) or "(?!)"
        self._said = re.compile(rf"(?i)((?:{words})\w{{0,64}}+)(\\?[\"']?\s*+[=:]\s*+)")
        self._said_last = re.compile(rf"({last})(\\?[\"']?\s*+[=:]\s*+)")
        self._hides_cookies = self.is_secret("cookie")
        # One pass over the bytes of arguments tells whether they can be kept as they are: nearly always, and
        # then they are not decoded. A name is looked for only where a key can be: at a quote, with another
        # quote and a colon behind it. A key with an escape in it could be any name.
        key = rf'"(?=[^"]{{1,200}}"\s*:)(?:(?i:[^"]*?(?:{words}|\\))|[^"]*{last}")'
        self._keys = re.compile(key.encode())
        self._shapes = re.compile(self._text.pattern.encode())
        # The literals: one of them stands in every text that the expression of the same name finds.
        self._stems = _stems(names, has_last=rules.usual)
        self._marks = (
            None if rules.values else tuple(dict.fromkeys(one for _, some in shapes for one in some))
        )
        self.known: frozenset[str] = frozenset()
        self.forms: frozenset[str] = frozenset()  # of those, as they may stand in text
        self._lent: deque[Set[str]] = deque(maxlen=MAX_LENT)
        self._known_in_json: tuple[str, ...] = ()  # of those, as they may stand in JSON, a character a byte

    def add_named_secrets(self, secrets: Mapping[str, str]) -> None:
        """Look from now on for those values of variables or headers whose names mean secrets."""
        found = {one for name, one in secrets.items() if self.is_secret(name)}
        self.add_secrets(found)

    def secret_texts(self, named: Mapping[str, str]) -> frozenset[str]:
        """The forms in text of those values of headers whose names mean secrets, for one call (F1)."""
        return text_forms(
            one for name, one in named.items() if len(one) >= MIN_OWN_CHARS and self.is_secret(name)
        )

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Look from now on for these values, and for secrets within them, unless they are too short."""
        given = {*secrets}
        given |= {one.partition(" ")[2] for one in given}  # of "Bearer x", also the x
        for one in tuple(given):
            given.update(self.secrets_in_url(one))
        self.recall({one for one in given if len(one) >= MIN_KNOWN_CHARS})

    def add_words(self, words: Sequence[str]) -> None:
        """Look from now on for the secrets among the words of a command: behind flags, in addresses."""
        found: set[str] = set()
        for number, word in enumerate(words):
            name, equals, value = word.lstrip("-").partition("=")
            if not equals and not word.startswith("-"):
                name, equals, value = word.partition(":")  # a header
            following = words[number + 1] if number + 1 < len(words) else ""
            if equals and "/" not in name and self.is_secret(name.strip()):
                found.add(value.strip())
            elif word.startswith("-") and self.is_secret(name) and not following.startswith("-"):
                found.add(following)
            found.update(self.secrets_in_url(word))
        self.add_secrets(found)

    def secrets_in_url(self, text: str) -> Iterator[str]:
        """The password in an address, and those of its parameters whose names mean secrets."""
        if "://" not in text:
            return
        # By hand: an address may name several hosts, and the library refuses those with IPv6 among them.
        rest, _, query = text[text.index("://") + 3 :].partition("#")[0].partition("?")
        user, colon, password = rest.partition("/")[0].rpartition("@")[0].partition(":")
        for one in (password, "" if colon else user):
            yield from {one, unquote(one)}
        with suppress(ValueError):  # over so many parameters
            for name, one in parse_qsl(query):
                if self.is_secret(name) or name == "key":
                    yield from {one, quote(one, safe=""), quote_plus(one)}

    def recall(self, known: Set[str]) -> None:
        """Look from now on for these texts, whatever their names were."""
        known = known - ALL_TEXT
        if known <= self.known:
            return
        self.known |= known
        self.forms = text_forms(self.known)
        inner = [one.encode("utf-8", "replace").decode("latin-1") for one in self.forms]
        self._known_in_json = tuple(one if len(one) >= MIN_INNER_CHARS else f'"{one}"' for one in inner)

    def lend(self, forms: Set[str]) -> None:
        """Remember the secrets of one of the newest calls for `text_of_any_call`.

        Not so many that every text would be hidden: nobody may blind the log of a server that others use.
        """
        if forms and "" not in forms and forms not in self._lent:
            self._lent.append(forms)

    def take_over(self, before: "Redactor") -> None:
        """Know all that another redactor knows: a change of the rules forgets no secret."""
        self.recall(before.known)
        self._lent.extend(before._lent)

    def is_secret(self, name: str) -> bool:
        """Whether a field of this name holds a secret."""
        known = self._is_secret.get(name)
        if known is None:
            is_named = self._names.fullmatch(name) is not None or self._last.search(name) is not None
            known = is_named and self._keep.fullmatch(name) is None
            if len(self._is_secret) < _MAX_NAMES:
                self._is_secret[name] = known
        return known

    def scan(self, definition: Raw) -> Scan:
        """The search for suspicious arguments of this tool, in one pass; it is false if there are none."""
        return _always if DECLARES.search(definition) else self.is_suspicious

    def is_suspicious(self, body: Raw | bytes) -> bool:
        """Whether there may be a secret in JSON: the name of one, its shape, or one that is known."""
        if len(body) <= _EMPTY_BYTES:
            return False
        # Literals are found in a str eight times as fast as in bytes.
        text = bytes(body).decode("latin-1")
        if _has_escapes(text):
            body = _without_escapes(body)
            text = body.decode("latin-1")
        return self._has_secret_key(text, body) or self._has_secret_value(text, body)

    def value(self, body: Raw, declared: DeclaredSecrets | None = None) -> Raw:
        """JSON without its secrets; the very same object if nothing in it looks like one."""
        if not body:
            return body
        return self._clean(body, _Place(declared, [MAX_PARTS], shows=len(body) <= MAX_SHOWN_BYTES))

    def words(self, body: Raw, more: Set[str] = frozenset()) -> Raw:
        """JSON whose strings are without the secrets that stand in text; the very same object if none do."""
        return _with_texts(body, lambda one: self.text(one, more)) if body else body

    def without_known(self, body: Raw, more: Set[str] = frozenset()) -> Raw:
        """JSON whose strings are without the known secrets and `more`, and otherwise as they were."""
        if not body or not (self.forms or more):
            return body
        text = bytes(body).decode("utf-8", "replace")
        if _has_escapes(text):
            text = _without_escapes(body).decode("utf-8", "replace")
        if remove_texts(text, self.forms | more) == text:
            return body
        return _with_texts(body, lambda one: remove_texts(one, self.forms | more))

    def text(self, text: str, more: Set[str] = frozenset()) -> str:
        """Text without the secrets in it; `more`: the forms of secrets of one call."""
        text = self._without_values(text, more)
        if self._may_say_names(text) and (":" in text or "=" in text):
            if self._hides_cookies:  # of which there may be several
                text = _COOKIES.sub(rf"\1{REDACTED_TEXT}", text)
            text = self._without_said(text, self._said)
            text = self._without_said(text, self._said_last)
        return text

    def text_of_any_call(self, text: str) -> str:
        """Text that may be about any of the newest calls, such as a server's stderr, without secrets."""
        return self.text(text, frozenset().union(*self._lent))

    def prose(self, text: str, more: Set[str] = frozenset()) -> str:
        """The same for a sentence: `password: is needed` says none, `password=x` and `password: "x"` do."""
        text = self._without_values(text, more)
        if (":" in text or "=" in text) and self._may_say_names(text):
            text = self._without_said(text, self._said, is_prose=True)
            text = self._without_said(text, self._said_last, is_prose=True)
        return text

    def may_hide(self, text: str) -> bool:
        """Whether `prose` may find a secret in a text: the quick look at every message of progress.

        Each kind of secret has one of these signs. They are written out: `prose` itself, with its loops
        over literals, took three times as long for a message of 40 characters.
        """
        if (
            "=" in text or "-" in text or "_" in text or "/" in text
            or '"' in text or "'" in text or "asic " in text or "earer " in text
            or "AKIA" in text or "AIza" in text or "eyJ" in text
            or self._marks is None
        ):  # fmt: skip
            return True
        for one in self.forms:
            if one in text:
                return True
        return False

    def _without_values(self, text: str, more: Set[str]) -> str:
        """Text without known secrets, without those of a known shape, and without those behind flags."""
        text = remove_texts(text, self.forms | more if more else self.forms)
        if self._marks is None or _has_any(text, self._marks):
            text = self._text.sub(REDACTED_TEXT, text)
        if "-" in text and self._may_say_names(text):
            text = self._without_said(text, _FLAG)
        return text

    def _may_say_names(self, text: str) -> bool:
        return self._stems is None or _has_any(text.lower(), self._stems)

    def _without_said(self, text: str, names: re.Pattern[str], *, is_prose: bool = False) -> str:
        """Text without the values behind these names, where they mean secrets."""
        parts: list[str] = []
        at = 0
        for found in names.finditer(text):
            if found.start() < at or not self._means_secret(found):
                continue
            value = _VALUE.match(text, found.end())
            # What is hidden already, and the name of a variable, are no secrets.
            if value is None or value[0].strip("\\\"'") == REDACTED_TEXT or "${" in value[0]:
                continue
            # In a sentence a value stands behind `=`, in quotes, or behind the name of a scheme.
            if not is_prose or "=" in found[2] or value[0][0] in "\\\"'" or " " in value[0]:
                parts += text[at : found.end()], REDACTED_TEXT
                at = value.end()
        return "".join((*parts, text[at:])) if parts else text

    def _means_secret(self, found: re.Match[str]) -> bool:
        """Whether a word in text is the name of a secret, or ends it, as `key` does in `signing_key`."""
        whole = _before(found) + found[1]
        return self.is_secret(whole) or (self.is_secret(found[1]) and self._keep.fullmatch(whole) is None)

    def _has_secret_key(self, text: str, body: Raw | bytes) -> bool:
        return ("\\" in text or self._may_say_names(text)) and self._keys.search(body) is not None

    def _has_secret_value(self, text: str, body: Raw | bytes) -> bool:
        """Whether a secret stands in the strings of JSON; `text` is the body, a character for each byte."""
        if self._known_in_json and _has_any(text, self._known_in_json):
            return True
        if (self._marks is None or _has_any(text, self._marks)) and self._shapes.search(body):
            return True
        has_parameters = "=" in text and ("?" in text or "&" in text)
        if not (has_parameters or " -" in text or '"-' in text) or not self._may_say_names(text):
            return False
        return any(self.is_secret(one[1]) for one in _QUERY.finditer(text)) or any(
            self.is_secret(one[1]) for one in _FLAG.finditer(text)
        )

    def _clean(self, body: Raw, at: "_Place") -> Raw:
        """One value without its secrets; decoded only if it looks suspicious or something is declared."""
        begins = _FIRST.match(body)
        first = b"" if begins is None else begins[1]
        if first == b'"':
            plain = _without_escapes(body) if _has_escapes(bytes(body).decode("latin-1")) else bytes(body)
            if not self._has_secret_value(plain.decode("latin-1"), plain):
                return body
            return self._mark(body) if at.shows else REDACTED_JSON
        if first not in (b"{", b"["):
            return body
        # A value that is most of a suspicious one counts as suspicious unseen: else the same bytes would be
        # searched anew at every depth.
        is_most = 0 < at.size < 2 * len(body) and at.depth < MAX_DEPTH
        if not (at.declared or is_most or self.is_suspicious(body)):
            return body
        parts = None if at.depth >= MAX_DEPTH else _parts(body)
        if parts is None:
            return REDACTED_JSON
        above = _Place(at.declared, at.left, at.depth + 1, len(body), at.shows)
        if isinstance(parts, list):
            kept = [self._kept(number, one, above) for number, one in enumerate(parts)]
            for number in range(1, len(parts)):
                if self._is_flag(parts[number - 1]) and not bytes(parts[number]).startswith(b'"-'):
                    kept[number] = _hidden(parts[number])
            return Raw(json.encode(kept))
        # Written anew even where all is kept: where a name stands twice, only one value was looked at.
        return Raw(json.encode({name: self._kept(name, one, above) for name, one in parts.items()}))

    def _mark(self, body: Raw) -> Raw:
        """The mark for a string with a secret in it. Whatever else the string says is shown in the mark.

        A reviewer sees what a call is about to do, also if a secret stands in the same string (A2).
        """
        text = json.decode(body, type=str)
        shown = self.text(text)
        if shown == text or shown.strip() == REDACTED_TEXT or self._text.search(shown):
            return REDACTED_JSON
        return Raw(json.encode({REDACTED_KEY: True, SHOWN_KEY: shown}))

    def _kept(self, name: str | int, value: Raw, above: "_Place") -> Raw:
        """The value of this name or number inside another one, as it is kept."""
        above.left[0] -= 1
        if above.left[0] < 0:
            return _hidden(value)
        within = None if above.declared is None else above.declared.below(name)
        if (within is not None and within.is_secret) or (isinstance(name, str) and self.is_secret(name)):
            return _hidden(value)
        at = (
            above
            if within is above.declared
            else _Place(within, above.left, above.depth, above.size, above.shows)
        )
        return self._clean(value, at)

    def _is_flag(self, word: Raw) -> bool:
        """Whether a string of JSON is a flag such as `--api-key`, whose value comes next."""
        plain = bytes(word)
        return plain.startswith(b'"-') and self.is_secret(
            plain.strip(b'"').lstrip(b"-").decode(errors="replace")
        )


class _Place(Struct, frozen=True):
    """The place of a value: what is declared of it, its depth, and the size of the value around it.

    `left`: how many more values may be looked at, one number for all places. `shows`: a string is shown
    around its secrets.
    """

    declared: DeclaredSecrets | None
    left: list[int]
    depth: int = 0
    size: int = 0
    shows: bool = False


def _always(_: Raw) -> bool:
    """The search for arguments of a tool that declares secrets: all are looked at."""
    return True


def _has_escapes(text: str) -> bool:
    """Whether characters in JSON may be written as escapes, as Go does with `&`, and PHP with `/`."""
    return "\\u" in text or "\\/" in text


def _without_escapes(body: Raw | bytes) -> bytes:
    """The same JSON with every character as itself, where JSON allows it; as it is, if it cannot be read."""
    try:
        return json.encode(json.decode(body))
    except (DecodeError, RecursionError):
        return bytes(body)


def _parts(body: Raw) -> list[Raw] | dict[str, Raw] | None:
    """The parts of an array or an object; None if it is nested too deep to be read."""
    try:
        return _any.decode(body)
    except RecursionError:
        return None


def _with_texts(body: Raw, clean: Callable[[str], str], depth: int = 0) -> Raw:
    """JSON with each of its strings cleaned; the very same object if all stay. Too deep: the mark."""
    begins = _FIRST.match(body)
    first = b"" if begins is None else begins[1]
    if first == b'"':
        text = json.decode(body, type=str)
        left = clean(text)
        return body if left == text else Raw(json.encode(left))
    if first not in (b"{", b"["):
        return body
    parts = None if depth >= MAX_DEPTH else _parts(body)
    if parts is None:
        return REDACTED_JSON
    if isinstance(parts, list):
        kept = [_with_texts(one, clean, depth + 1) for one in parts]
        return body if all(map(is_, kept, parts)) else Raw(json.encode(kept))
    named = {name: _with_texts(one, clean, depth + 1) for name, one in parts.items()}
    return body if all(map(is_, named.values(), parts.values())) else Raw(json.encode(named))


def redacted_pointers(body: Raw) -> list[str]:
    """The JSON pointers to the marks in a JSON text; none in a text that is no JSON."""
    if not body or REDACTED_KEY.encode() not in bytes(body):
        return []
    try:
        return list(_marks(json.decode(body), ""))
    except (DecodeError, RecursionError):
        return []


def _marks(value: object, at: str) -> Iterator[str]:
    if _is_mark(value):
        yield at
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _marks(one, f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _marks(one, f"{at}/{number}")


def _is_mark(value: object) -> bool:
    return isinstance(value, dict) and value.get(REDACTED_KEY) is True and value.keys() <= _MARK_KEYS


def hidden_texts(real: Raw, kept: Raw) -> frozenset[str]:
    """The texts in real JSON that are marks in the JSON that is kept of it."""
    if kept is real or not kept or REDACTED_KEY.encode() not in bytes(kept):
        return frozenset()
    try:
        texts = set[str]()
        for one in _behind(json.decode(real), json.decode(kept)):
            texts.add(one)
            if len(texts) > MAX_OWN_TEXTS:
                return ALL_TEXT
    except (DecodeError, RecursionError):
        return frozenset()
    return text_forms(texts)


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
    if "" in secrets:
        return REDACTED_TEXT if text else text
    found = [one for one in secrets if one in text]
    for one in sorted(found, key=len, reverse=True) if found else ():
        text = text.replace(one, REDACTED_TEXT)
    return text


def _behind(real: object, kept: object) -> Iterator[str]:
    """The texts behind the marks, except those too short to be found in other text."""
    if isinstance(kept, dict) and _is_mark(kept):
        shown = kept.get(SHOWN_KEY)
        texts = _texts(real) if shown is None else _left_out(str(real), str(shown))
        yield from (one for one in texts if len(one) >= MIN_OWN_CHARS)
    elif isinstance(real, dict) and isinstance(kept, dict):
        for name in real.keys() & kept.keys():
            yield from _behind(real[name], kept[name])
    elif isinstance(real, list) and isinstance(kept, list):
        for pair in zip(real, kept, strict=False):
            yield from _behind(*pair)


def _left_out(real: str, shown: str) -> Iterator[str]:
    """The parts of a text that are marks in what is shown of it, and the text itself; of `Bearer x`, also x.

    Each part ends at the next place where what is shown goes on. No regular expression does this: it would
    try all the places that there are, and who sends the text could make them many.
    """
    yield real
    first, *rest = shown.split(REDACTED_TEXT)
    at = len(first)
    for literal in rest:
        end = real.find(literal, at) if literal else len(real)
        if end < 0:
            return
        part = real[at:end]
        yield from {part, part.partition(" ")[2]}
        at = end + len(literal)


def _texts(value: object) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _texts(one)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _hidden(value: Raw) -> Raw:
    """The mark, unless there is nothing to hide: no secret is null, true, false or empty."""
    return value if bytes(value) in (b"null", b"true", b"false", b'""', b"{}", b"[]") else REDACTED_JSON


def _before(found: re.Match[str]) -> str:
    """The part of a name in text that stands before the word that was found."""
    start = found.start()
    prefix = _PREFIX.search(found.string, max(0, start - _PREFIX_CHARS), start)
    return "" if prefix is None else prefix[0]


def _has_any(text: AnyStr, literals: tuple[AnyStr, ...]) -> bool:
    for one in literals:  # a loop is twice as fast as `any`
        if one in text:
            return True
    return False


def _stems(names: Iterable[str], *, has_last: bool) -> tuple[str, ...] | None:
    """Literals in lower case of which each of these names has one; None if a name is all wildcards."""
    found = {*LAST_WORDS, "key"} if has_last else set[str]()
    for name in names:
        parts = [one for one in re.split(r"[*_\W]", name.lower()) if one and one.isascii()]
        if not parts:
            return None
        if not any(_has_any(one, tuple(found)) for one in parts):
            found.add(max(parts, key=len))
    shortest_first = sorted(found, key=lambda one: (len(one), one))
    return tuple(
        one for at, one in enumerate(shortest_first) if not _has_any(one, tuple(shortest_first[:at]))
    )


def _last_word() -> str:
    """The expression for the last word of a name."""
    capitals = "|".join(form for one in LAST_WORDS for form in (one.title(), one.upper()))
    return _LAST.format("|".join(LAST_WORDS), capitals)


def _glob(name: str) -> str:
    steps = {"*": ".*", "_": "[-_. ]*"}
    return "".join(steps.get(char) or re.escape(char) for char in name)


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
    """Expand schemas by all schemas that they refer to or contain."""
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
