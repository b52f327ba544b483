"""What a tool says, made fit to be passed on: finite numbers, clean text, encoded data (P1, P4)."""

import re
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from pydantic_core import to_json

LARGEST: Final = 1.7976931348623157e308  # beyond it a number has no finite float
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BREAKS = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")
# Control characters, halves of surrogate pairs, and marks that turn the direction of the text around them.
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSEEN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_encode = msgspec.json.Encoder().encode


def number(value: object) -> float | None:
    """A finite number that is not negative, or None."""
    if value is None or isinstance(value, bool | str | bytes | bytearray):
        return None
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    try:
        plain = float(value)  # pyrefly: ignore[bad-argument-type]
    except Exception:  # a type of the author's own may raise anything
        return None
    return plain if 0 <= plain <= LARGEST else None


def line(value: object, limit: int) -> str | None:
    """One printable line of at most `limit` characters, its cut marked; None if there is nothing to show."""
    if value is None:
        return None
    try:
        text = value if type(value) is str else str(value)
    except Exception:  # a type of the author's own may raise anything
        return None
    text = text[: 4 * limit + 100]  # a huge text is not worth cleaning to its end
    text = _UNSEEN.sub("", _BREAKS.sub(" ", _ANSI.sub("", text))).strip()
    return cut(text, limit) or None


def lines(text: object, limit: int) -> str:
    """Text whose lines are kept, cleaned and cut like `line`."""
    said = str(text)[: 4 * limit + 100].replace("\r\n", "\n")
    return cut(_UNSEEN_LINES.sub("", _ANSI.sub("", said)), limit)


def cut(text: str, limit: int) -> str:
    """At most `limit` characters; a cut is marked."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def plain_text(text: str) -> str:
    """The same text without halves of surrogate pairs, which no wire can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def quoted(text: str) -> bytes:
    """The text as a JSON string."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(plain_text(text))


def encoded(value: Any) -> Raw:
    """Any value as JSON: models, dataclasses, dates and the like included; NaN becomes null.

    Raises ValueError, TypeError or RecursionError when it has no JSON form.
    """
    return Raw(to_json(value, inf_nan_mode="null", by_alias=True, fallback=_plain))


def _plain(value: Any) -> Any:
    """What pydantic does not know, but authors return: structs of msgspec, numbers and arrays of numpy."""
    if isinstance(value, Struct):
        return msgspec.to_builtins(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")
