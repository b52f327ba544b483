"""What browsers have: rooms in which tools live, tabs, the tools and their words, plugins (B2, B3)."""

from msgspec import Raw, Struct

from afoot.core.facts import NOTHING


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
    icon: str = ""  # the address of a picture


class Room(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One world of one document in which tools live: the page's own, or a plugin's."""

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
    """A tab as its browser sees it; `why` says why nothing can run there."""

    id: str
    window: str = ""
    title: str = ""
    url: str = ""
    active: bool = False  # the one in front of its window
    focused: bool = False  # its window is in front, too
    frozen: bool = False
    discarded: bool = False
    why: str = ""  # "", reload, ungranted, closed to extensions


class Running(Struct, frozen=True):
    """A run that a room knows, and the number of the newest frame it made about it."""

    run: str
    room: str
    seq: int = 0


class PageReport(Struct, frozen=True, omit_defaults=True):
    """What a tool says of its progress; `alive` alone is a heartbeat."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    alive: bool = False


class PageError(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a tool threw; `code` and `category` are its own words."""

    name: str = "Error"
    message: str = ""
    code: str = ""
    category: str = ""
    retryable: bool = False
    retry_after_ms: float | None = None


class Body(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A plugin, ready to run: the SDK, then its files, two scripts of one world; `key` names it.

    Apart, because a syntax error in the files would otherwise take the one away who can tell of it.
    """

    name: str
    hash: str
    key: str
    matches: list[str]
    excludes: list[str] = []
    body: str = ""
    files: str = ""
