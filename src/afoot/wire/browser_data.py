"""The data of browsers: page contexts in which tools live, tabs, tools and their reports, plugins (B2, B3).

`decode_page_json` reads JSON that browsers write: their texts may hold a lone surrogate, which other readers
refuse.
"""

import re
from typing import TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from afoot.core.facts import NOTHING

T = TypeVar("T")
_ESCAPED_BACKSLASH = r"\\"  # a backslash in a text: it begins no escape

# Either half of a surrogate pair, without the other.
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


class PageTool(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tool as a page or a plugin describes it; all of it is untrusted."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Raw = NOTHING
    output_schema: Raw = NOTHING
    annotations: Raw = NOTHING
    progress: bool = True  # whether it can report; native and form tools cannot
    form: bool = False  # whether it waits for a person to send a form
    icon: str = ""  # the URL of an image


class PageContext(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One JavaScript world of one document in which tools live: the page's own, or a plugin's."""

    id: str
    tab: str
    frame: str = "0"
    document: str = ""
    origin: str = ""  # the frame's; "null" where it has none
    top: str = ""  # the tab's
    url: str = ""
    title: str = ""
    source: str = "page"  # or plugin:NAME@HASH
    visible: bool = True
    frozen: bool = False


class Tab(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tab as its browser describes it; `why` says why nothing can run there."""

    id: str
    window: str = ""
    title: str = ""
    url: str = ""
    active: bool = False  # the one in front of its window
    focused: bool = False  # its window is in front, too
    frozen: bool = False
    discarded: bool = False
    why: str = ""  # "", reload, ungranted, closed to extensions


class RunPosition(Struct, frozen=True):
    """A run that a page context knows, and the number of the newest message about it."""

    run: str
    room: str
    seq: int = 0


class PageReport(Struct, frozen=True, omit_defaults=True):
    """One report of a tool about its progress; `alive` alone is a heartbeat."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    alive: bool = False


class PageError(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An error that a tool threw; `code` and `category` are the tool's own words."""

    name: str = "Error"
    message: str = ""
    code: str = ""
    category: str = ""
    retryable: bool = False
    retry_after_ms: float | None = None


class PluginBundle(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A plugin, ready to run: the SDK and its files, as two scripts of one world; `key` names it.

    There are two scripts because a syntax error in the files would otherwise also stop the SDK, which reports
    it.
    """

    name: str
    hash: str
    key: str
    matches: list[str]
    excludes: list[str] = []
    body: str = ""
    files: str = ""


def decode_page_json(decoder: Decoder[T], text: str | bytes) -> T:
    """Decode JSON, with lone surrogates replaced; raises DecodeError, UnicodeError, RecursionError."""
    try:
        return decoder.decode(text)
    except (DecodeError, UnicodeError):
        whole = text if isinstance(text, str) else text.decode(errors="replace")
        mended = _without_lone_surrogates(whole)
        if mended == text:
            raise
        return decoder.decode(mended)


def _without_lone_surrogates(text: str) -> str:
    parts = [_LONE_SURROGATE.sub(r"\\ufffd", part) for part in text.split(_ESCAPED_BACKSLASH)]
    return _ESCAPED_BACKSLASH.join(parts).encode(errors="replace").decode()
