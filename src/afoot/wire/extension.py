"""The messages between a browser and the gateway, as JSON-RPC notifications over either transport (B1).

`read_frame` and `write_frame` decode and encode them. Both sides first prove that they know the shared key,
which is never sent (B7): see `proof_mac`.
"""

import hmac
import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING
from afoot.wire.browser_data import (
    PageContext,
    PageError,
    PageReport,
    PageTool,
    PluginBundle,
    RunPosition,
    Tab,
    decode_page_json,
)

SUBPROTOCOL = "afoot.link.1"
PING_S = 20.0  # a message at this interval keeps the extension's service worker alive
PROOF_S = 5.0  # how long either side may take to prove itself
COMING_BACK = "coming back"  # the reason with which a browser closes a socket that it opens again at once


# From the browser


class LinkProof(Struct, frozen=True, omit_defaults=True):
    """The proof that a side knows the key; a browser adds a nonce of its own."""

    mac: str
    nonce: str = ""


class LinkHello(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The browser's first message after the proofs: everything that it has open."""

    version: str
    profile: str
    rooms: list[PageContext] = []
    running: list[RunPosition] = []
    tabs: list[Tab] = []
    user_scripts: bool = True  # whether plugins can run
    label: str = ""  # the name that a person gave this browser


class Ping(Struct, frozen=True):
    """A sign of life; also its answer."""


class PageContextOpened(Struct, frozen=True, omit_defaults=True):
    """A document has loaded, or has come back from the cache."""

    room: PageContext
    running: list[RunPosition] = []


class PageContextTools(Struct, frozen=True, rename="camel", omit_defaults=True):
    """All tools of a page context; `left_out` counts those over the page's own limit."""

    room: str
    tools: list[PageTool]
    left_out: int = 0


class PageContextReady(Struct, frozen=True, omit_defaults=True):
    """The answer of a plugin's readiness probe."""

    room: str
    ready: bool
    why: str = ""


class PageContextState(Struct, frozen=True, omit_defaults=True):
    """A document was hidden or shown, frozen or resumed, or changed its title or address (pushState)."""

    room: str
    visible: bool = True
    frozen: bool = False
    url: str = ""
    title: str = ""


class PageContextGone(Struct, frozen=True):
    """A document is gone.

    `why`: closed, reloaded, navigated, crashed, discarded, cached, removed (its frame), replaced (a plugin's
    code), lost.
    """

    room: str
    why: str = "lost"


class TabList(Struct, frozen=True):
    """Every tab that the browser lets us see."""

    tabs: list[Tab]


class RunProgress(Struct, frozen=True, omit_defaults=True):
    """Reports of a run, in order; `dropped` counts reports over the rate limit."""

    room: str
    run: str
    seq: int
    reports: list[PageReport]
    dropped: int = 0


class RunWaiting(Struct, frozen=True, omit_defaults=True):
    """A run waits for a person in its tab; without a message, it waits no longer."""

    room: str
    run: str
    message: str | None = None


class RunLog(Struct, frozen=True, omit_defaults=True):
    """A line that a run logged."""

    room: str
    run: str
    text: str
    level: str = "info"


class RunResult(Struct, frozen=True, omit_defaults=True):
    """The end of a run: a value (none means undefined) or an error. Sent again until it is acknowledged."""

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


class LinkChallenge(Struct, frozen=True):
    """The gateway's first message: its nonce, over which the browser proves that it knows the key."""

    nonce: str


class LinkWelcome(Struct, frozen=True, omit_defaults=True):
    """The welcome for a browser: the runs that continue, the runs to abort, and the plugins to run."""

    epoch: str
    keep: list[str] = []
    abort: list[str] = []
    plugins: list[PluginBundle] = []


class ExtensionReload(Struct, frozen=True):
    """The extension is to reload itself: newer files are on the disk."""


class PluginSync(Struct, frozen=True):
    """The plugins to run, and no others."""

    plugins: list[PluginBundle]


class RunDispatch(Struct, frozen=True):
    """Run a tool."""

    room: str
    run: str
    tool: str
    input: Raw


class RunCancel(Struct, frozen=True, omit_defaults=True):
    """Stop a run."""

    room: str
    run: str
    reason: str = ""


class RunResultAck(Struct, frozen=True):
    """The result of a run has arrived; the page need not keep it."""

    room: str
    run: str


class TabReload(Struct, frozen=True):
    """Reload a tab."""

    tab: str


class PanelState(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The content of the side panel: live calls, calls that ended lately, open questions; and the time."""

    now: float | None = None
    calls: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    tabs: list[dict[str, Any]] = []


class PanelReply(Struct, frozen=True, omit_defaults=True):
    """The outcome of an answer or a cancel from the side panel."""

    about: str
    error: str = ""


FromBrowser = (
    LinkProof | LinkHello | Ping
    | PageContextOpened | PageContextTools | PageContextReady | PageContextState | PageContextGone | TabList
    | RunProgress | RunWaiting | RunLog | RunResult | PanelWatch | PanelCancel | PanelAnswer
)  # fmt: skip
ToBrowser = (
    LinkChallenge | LinkProof | LinkWelcome | ExtensionReload | Ping | PluginSync
    | RunDispatch | RunCancel | RunResultAck | TabReload | PanelState | PanelReply
)  # fmt: skip

FROM_BROWSER: dict[str, type[FromBrowser]] = {
    "link.proof": LinkProof,
    "link.hello": LinkHello,
    "ping": Ping,
    "tab.opened": PageContextOpened,
    "tab.tools": PageContextTools,
    "tab.ready": PageContextReady,
    "tab.state": PageContextState,
    "tab.gone": PageContextGone,
    "tab.list": TabList,
    "tool.progress": RunProgress,
    "tool.asking": RunWaiting,
    "tool.log": RunLog,
    "tool.result": RunResult,
    "panel.watch": PanelWatch,
    "panel.cancel": PanelCancel,
    "panel.answer": PanelAnswer,
}
TO_BROWSER: dict[str, type[ToBrowser]] = {
    "link.challenge": LinkChallenge,
    "link.proof": LinkProof,
    "link.welcome": LinkWelcome,
    "link.reload": ExtensionReload,
    "ping": Ping,
    "plugin.sync": PluginSync,
    "tool.dispatch": RunDispatch,
    "tool.cancel": RunCancel,
    "tool.settled": RunResultAck,
    "tab.reload": TabReload,
    "panel.state": PanelState,
    "panel.said": PanelReply,
}


class LinkNotification(Struct, frozen=True):
    """A notification whose params are not decoded yet."""

    method: str
    params: Raw = NOTHING


class BadFrame(Exception):
    """The text is no message of the link; the error says why."""


_notification_decoder = msgspec.json.Decoder(LinkNotification)
_param_decoders = {method: msgspec.json.Decoder(kind) for method, kind in FROM_BROWSER.items()}
_methods = {kind: method for method, kind in (FROM_BROWSER | TO_BROWSER).items()}


def read_frame(text: str | bytes) -> FromBrowser:
    """A message that a browser sent; raises BadFrame."""
    try:
        frame = decode_page_json(_notification_decoder, text)
        reader = _param_decoders.get(frame.method)
        if reader is None:
            raise BadFrame(f"unknown method {frame.method!r}")
        return reader.decode(frame.params or b"{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(str(error)) from None


def write_frame(message: ToBrowser | FromBrowser) -> bytes:
    """Encode a message of either side."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": _methods[type(message)], "params": message})


NONCE_BYTES = 32
BROWSER_SIDE, GATEWAY_SIDE = b"ext", b"gw"
_HEX = re.compile(r"[0-9a-f]{64}")


class Nonces(Struct, frozen=True):
    """The random values that both sides made for one connection; a proof holds for these alone."""

    gateway: bytes
    browser: bytes


def proof_mac(key: bytes, side: bytes, nonces: Nonces) -> str:
    """The proof of one side: an HMAC over its name and both nonces. The other side's proof differs."""
    return hmac.new(key, side + nonces.gateway + nonces.browser, "sha256").hexdigest()


def is_valid_proof(key: bytes, side: bytes, nonces: Nonces, given: str) -> bool:
    """Whether the proof is that side's, compared in constant time; a key that is too short proves nothing."""
    wanted = proof_mac(key, side, nonces)
    return len(key) >= NONCE_BYTES and hmac.compare_digest(wanted.encode(), given.encode(errors="replace"))


def read_nonce(text: str) -> bytes | None:
    """The bytes of a nonce; None if the text is none."""
    return bytes.fromhex(text) if _HEX.fullmatch(text) else None
