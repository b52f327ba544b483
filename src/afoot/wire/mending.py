"""JSON that browsers write: a text of theirs may hold half a character, which no other reader takes."""

import re
from typing import TypeVar

from msgspec import DecodeError
from msgspec.json import Decoder

T = TypeVar("T")
_ESCAPED = r"\\"  # a backslash in a text: what follows it is no escape
# Either half of a surrogate pair, without the other.
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def decode(decoder: Decoder[T], text: str | bytes) -> T:
    """What the text says, half characters replaced; raises DecodeError, UnicodeError, RecursionError."""
    try:
        return decoder.decode(text)
    except (DecodeError, UnicodeError):
        whole = text if isinstance(text, str) else text.decode(errors="replace")
        mended = _mended(whole)
        if mended == text:
            raise
        return decoder.decode(mended)


def _mended(text: str) -> str:
    parts = [_HALF.sub(r"\\ufffd", part) for part in text.split(_ESCAPED)]
    return _ESCAPED.join(parts).encode(errors="replace").decode()
