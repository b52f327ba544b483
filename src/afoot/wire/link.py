"""The frames between a browser and the gateway, as JSON-RPC notifications over either carrier (B1)."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING
from afoot.wire.mending import decode
from afoot.wire.room import Body, PageError, PageReport, PageTool, Room, Running, Tab

SUBPROTOCOL = "afoot.link.1"
BEAT_S = 20.0  # a message this often keeps the extension's worker alive
PROOF_S = 5.0  # so long either side may take to prove itself


# From the browser


class Proof(Struct, frozen=True, omit_defaults=True):
    """Proves that a side knows the key; a browser adds a nonce of its own."""

    mac: str
    nonce: str = ""


class Hello(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A browser is there, with all that it has open."""

    version: str
    profile: str
    rooms: list[Room] = []
    running: list[Running] = []
    tabs: list[Tab] = []
    user_scripts: bool = True  # whether plugins can run
    label: str = ""  # what a person calls this browser


class Ping(Struct, frozen=True):
    """Nothing but a sign of life; also its answer."""


class RoomOpened(Struct, frozen=True, omit_defaults=True):
    """A document has loaded, or is there again."""

    room: Room
    running: list[Running] = []


class RoomTools(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The tools of a room, all of them; `left_out` counts those over the page's own limit."""

    room: str
    tools: list[PageTool]
    left_out: int = 0


class RoomReady(Struct, frozen=True, omit_defaults=True):
    """What a plugin's readiness probe said."""

    room: str
    ready: bool
    why: str = ""


class RoomState(Struct, frozen=True, omit_defaults=True):
    """A document was hidden or shown, frozen or resumed, or has another title or address (pushState)."""

    room: str
    visible: bool = True
    frozen: bool = False
    url: str = ""
    title: str = ""


class RoomGone(Struct, frozen=True):
    """A document is there no more.

    `why`: closed, reloaded, navigated, crashed, discarded, cached, removed (its frame), replaced (a plugin's
    code), lost.
    """

    room: str
    why: str = "lost"


class TabList(Struct, frozen=True):
    """Every tab that the browser lets us see."""

    tabs: list[Tab]


class Progressed(Struct, frozen=True, omit_defaults=True):
    """Reports of a run, in order; `dropped` were too many."""

    room: str
    run: str
    seq: int
    reports: list[PageReport]
    dropped: int = 0


class Asking(Struct, frozen=True, omit_defaults=True):
    """A run waits for a person in its tab, or (no message) no more."""

    room: str
    run: str
    message: str | None = None


class Said(Struct, frozen=True, omit_defaults=True):
    """A line that a run logged."""

    room: str
    run: str
    text: str
    level: str = "info"


class Ended(Struct, frozen=True, omit_defaults=True):
    """How a run ended: a value (none: undefined) or an error. Sent again until it is settled."""

    room: str
    run: str
    seq: int
    value: Raw = NOTHING
    error: PageError | None = None
    aborted: bool = False


class PanelWatch(Struct, frozen=True):
    """The side panel was opened or closed."""

    on: bool


class PanelCancel(Struct, frozen=True, omit_defaults=True):
    """The person at the panel stops a call."""

    call: str
    reason: str = ""


class PanelAnswer(Struct, frozen=True, omit_defaults=True):
    """The person at the panel answers a question."""

    question: str
    action: str = "accept"
    content: Raw = NOTHING


# To the browser


class Challenge(Struct, frozen=True):
    """The first frame: prove that you know the key."""

    nonce: str


class Welcome(Struct, frozen=True, omit_defaults=True):
    """The browser is known; its runs are kept or must be aborted, and these plugins are to be run."""

    epoch: str
    keep: list[str] = []
    abort: list[str] = []
    plugins: list[Body] = []


class Reload(Struct, frozen=True):
    """The extension is to load itself anew: its files are newer now."""


class Plugins(Struct, frozen=True):
    """These plugins and no others are to be run."""

    plugins: list[Body]


class Dispatch(Struct, frozen=True):
    """Run a tool."""

    room: str
    run: str
    tool: str
    input: Raw


class Cancel(Struct, frozen=True, omit_defaults=True):
    """Stop a run."""

    room: str
    run: str
    reason: str = ""


class Settled(Struct, frozen=True):
    """The end of a run has arrived; nothing of it need be kept."""

    room: str
    run: str


class TabReload(Struct, frozen=True):
    """Load a tab anew."""

    tab: str


class PanelState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the side panel shows: live calls and open questions."""

    calls: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    tabs: list[dict[str, Any]] = []


class PanelSaid(Struct, frozen=True, omit_defaults=True):
    """What came of an answer or a stop."""

    about: str
    error: str = ""


FromBrowser = (
    Proof | Hello | Ping | RoomOpened | RoomTools | RoomReady | RoomState | RoomGone | TabList
    | Progressed | Asking | Said | Ended | PanelWatch | PanelCancel | PanelAnswer
)  # fmt: skip
ToBrowser = (
    Challenge | Proof | Welcome | Reload | Ping | Plugins | Dispatch | Cancel | Settled | TabReload
    | PanelState | PanelSaid
)  # fmt: skip

FROM_BROWSER: dict[str, type[FromBrowser]] = {
    "link.proof": Proof,
    "link.hello": Hello,
    "ping": Ping,
    "tab.opened": RoomOpened,
    "tab.tools": RoomTools,
    "tab.ready": RoomReady,
    "tab.state": RoomState,
    "tab.gone": RoomGone,
    "tab.list": TabList,
    "tool.progress": Progressed,
    "tool.asking": Asking,
    "tool.log": Said,
    "tool.result": Ended,
    "panel.watch": PanelWatch,
    "panel.cancel": PanelCancel,
    "panel.answer": PanelAnswer,
}
TO_BROWSER: dict[str, type[ToBrowser]] = {
    "link.challenge": Challenge,
    "link.proof": Proof,
    "link.welcome": Welcome,
    "link.reload": Reload,
    "ping": Ping,
    "plugin.sync": Plugins,
    "tool.dispatch": Dispatch,
    "tool.cancel": Cancel,
    "tool.settled": Settled,
    "tab.reload": TabReload,
    "panel.state": PanelState,
    "panel.said": PanelSaid,
}


class Frame(Struct, frozen=True):
    """A notification before its params are looked at."""

    method: str
    params: Raw = NOTHING


class BadFrame(Exception):
    """What came is no frame of the link; the message says why."""


_frame = msgspec.json.Decoder(Frame)
_readers = {method: msgspec.json.Decoder(kind) for method, kind in FROM_BROWSER.items()}
_methods = {kind: method for method, kind in (FROM_BROWSER | TO_BROWSER).items()}


def read(text: str | bytes) -> FromBrowser:
    """A frame that a browser sent; raises BadFrame."""
    try:
        frame = decode(_frame, text)
        reader = _readers.get(frame.method)
        if reader is None:
            raise BadFrame(f"unknown method {frame.method!r}")
        return reader.decode(frame.params or b"{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(str(error)) from None


def write(message: ToBrowser | FromBrowser) -> bytes:
    """A frame for a browser, or as one of its own looked."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": _methods[type(message)], "params": message})
