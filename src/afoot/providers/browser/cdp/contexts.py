"""`CdpContexts` keeps the page contexts of a browser that is connected by CDP, and passes frames to and fro.

A page context lives in an isolated world: an execution context of a frame's document with scripts of ours.
The scripts are those of the extension (see the functions below). Ids and addresses are those that the
browser reports, never those that a page claims (B7).
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING
from afoot.providers.browser.cdp.connection import CdpConnection
from afoot.providers.browser.cdp.events import ExecutionContext
from afoot.providers.browser.cdp.session import CdpSession
from afoot.wire import extension
from afoot.wire.browser_data import PageContext, PluginBundle, RunPosition

EXTENSION = Path(__file__).parents[3] / "extension"
BINDING = "afootSend"  # the function by which our worlds, and no others, send frames
RECEIVE = "afootReceive"  # the function by which the script in a world gets frames
# Asks a world that may be older than this connection whether our relay or native tools are there.
PROBE = f"typeof {RECEIVE} === 'function' ? 'relay' : 'modelContext' in document ? 'native' : 'none'"


TITLE_CHARS = 300
MAX_TIMERS = 1000  # of one page context; further ones are dropped
MAX_TIMER_MS = 3_600_000.0
# Methods of frames that go on to the gateway; all others are for this module and `injection`.
FORWARDED = frozenset(
    ("tab.tools", "tab.ready", "tab.state", "tool.progress", "tool.asking", "tool.log", "tool.result")
)
OnFrame = Callable[[extension.FromBrowser], None]


class WorldFrame(Struct, frozen=True):
    """A frame that the script in a world sends."""

    method: str
    params: Raw = NOTHING


class OpenRun(Struct, frozen=True):
    """A run that the script in a world knows, and the number of its last frame."""

    run: str
    seq: int = 0


class OpenFrame(Struct, frozen=True):
    """`open`: the first frame of a world, sent again to each new connection."""

    title: str = ""
    visible: bool = True
    frozen: bool = False
    key: str = ""
    running: list[OpenRun] = []


class ByeFrame(Struct, frozen=True):
    """`bye`: the document is about to end, or to enter the back/forward cache; `why`: the end of a plugin."""

    persisted: bool = False
    why: str = ""


class WakeFrame(Struct, frozen=True):
    """`wake`: asks for a timer, because the timers of a hidden page are slow."""

    id: Any
    ms: float


class InjectedContext(Struct):
    """A page context, and the world in which its script runs."""

    info: PageContext
    session: CdpSession
    world: ExecutionContext
    key: str = ""  # the key of its plugin, or "" for a page's own tools
    timers: int = 0

    @property
    def frame(self) -> str:
        """The id of the frame that it is in."""
        return self.world.aux_data.frame_id


class CdpContexts:
    """The open page contexts, by id and by world."""

    def __init__(self, connection: CdpConnection, on_frame: OnFrame, counts: Counter[str]) -> None:
        self._connection = connection
        self._on_frame = on_frame
        self._counts = counts
        self._by_id: dict[str, InjectedContext] = {}
        self._by_world: dict[str, InjectedContext] = {}

    def all(self) -> list[InjectedContext]:
        """Every open page context."""
        return list(self._by_id.values())

    def in_session(self, session: CdpSession) -> list[InjectedContext]:
        """Every page context of one session."""
        return [one for one in self.all() if one.session is session]

    def find(self, world: ExecutionContext) -> InjectedContext | None:
        """The page context of a world."""
        return self._by_world.get(world.unique_id)

    def open(self, context: InjectedContext, opening: OpenFrame) -> None:
        """Add a page context, or replace the one of the same world; it keeps its id then."""
        before = self._by_world.get(context.world.unique_id)
        if before is not None:
            context.info = msgspec.structs.replace(context.info, id=before.info.id)
        info = context.info
        self._by_id[info.id] = self._by_world[context.world.unique_id] = context
        running = [RunPosition(one.run, info.id, one.seq) for one in opening.running]
        self._on_frame(extension.PageContextOpened(info, running))

    def forward(self, context: InjectedContext, frame: WorldFrame) -> None:
        """Pass a frame on to the gateway, with the id of the page context that it came from."""
        if frame.method not in FORWARDED:
            self._counts["unknown method"] += 1
            return
        try:
            message = extension.read_frame(_with_context_id(frame, context.info.id))
        except extension.BadFrame:
            self._counts["bad frame"] += 1
            return
        if isinstance(message, extension.PageContextState):
            message = self._with_browser_url(context, message)
        self._on_frame(message)

    def _with_browser_url(
        self, context: InjectedContext, state: extension.PageContextState
    ) -> extension.PageContextState:
        """The state of a page, with the address that the browser reports."""
        session = context.session
        title = state.title[:TITLE_CHARS]
        if session.is_top(context.frame) and not context.key:
            session.visible = state.visible
            session.title = title
        url = session.url(context.frame) or context.info.url
        return msgspec.structs.replace(state, url=url, title=title)

    def send(self, context_id: str, method: str, params: object) -> bool:
        """Send a frame to a page context; False if it is not open."""
        context = self._by_id.get(context_id)
        if context is None:
            return False
        return self.post(context.session, context.world, method, params)

    def post(self, session: CdpSession, world: ExecutionContext, method: str, params: object) -> bool:
        """Send a frame to a world. The unique id is needed: plain ids are reused for other documents."""
        frame = msgspec.json.encode({"method": method, "params": params})
        command = {"expression": receive_script(frame), "uniqueContextId": world.unique_id, "silent": True}
        return self._connection.post("Runtime.evaluate", command, session.id)

    def start_timer(self, context: InjectedContext, wake: WakeFrame) -> None:
        """Start a timer for a page whose own timers may run only once a minute."""
        if context.timers >= MAX_TIMERS:
            self._counts["too many timers"] += 1
            return
        context.timers += 1
        delay_s = min(max(wake.ms, 0.0), MAX_TIMER_MS) / 1000
        asyncio.get_running_loop().call_later(delay_s, self._fire_timer, context, wake.id)

    def _fire_timer(self, context: InjectedContext, number: object) -> None:
        context.timers -= 1
        if self._by_id.get(context.info.id) is context:
            self.send(context.info.id, "woken", {"id": number})

    def close(self, context: InjectedContext, why: str) -> None:
        """Remove a page context, and report that it is gone."""
        if self._by_id.pop(context.info.id, None) is None:
            return
        if self._by_world.get(context.world.unique_id) is context:
            del self._by_world[context.world.unique_id]
        self._on_frame(extension.PageContextGone(context.info.id, why))


class WorldNames:
    """The names of our worlds; `mark` keeps those of two gateways at one browser apart."""

    def __init__(self, mark: str) -> None:
        self.relay = f"afoot.relay.{mark}"
        self.late = f"afoot.late.{mark}"  # for documents whose scripts had run before we attached
        self._plugin = f"afoot.plugin.{mark}."

    def plugin(self, bundle: PluginBundle) -> str:
        """The name of the world of a plugin's code; new code gets another world."""
        return f"{self._plugin}{bundle.name}@{bundle.hash}"

    @property
    def relays(self) -> tuple[str, str]:
        """The names of both worlds in which a relay may run."""
        return self.relay, self.late


@cache
def page_script() -> str:
    """The script that runs in the page's own world, before any script of the page."""
    return _join_files("page")


@cache
def relay_script() -> str:
    """The script that runs in an isolated world beside the page."""
    return _join_files("relay")


def late_relay_script() -> str:
    """The relay for a page whose scripts have run: it opens no channel to the page's own world."""
    return f"globalThis.afootLate = true;\n{relay_script()}"


@cache
def read_value_script() -> str:
    """A function that reads a value of the page, in the page's own world."""
    return (EXTENSION / "background" / "page_value.js").read_text().replace("export function", "function", 1)


def receive_script(frame: bytes) -> str:
    """The script that delivers a frame to a world."""
    return f"{RECEIVE}({json.dumps(frame.decode())})"


def value_script(path: str) -> str:
    """The script that reads a value of the page."""
    return f"(() => {{ {read_value_script()}\nreturn readValue({json.dumps(path)}); }})()"


def _join_files(part: str) -> str:
    """The extension's files for a world, in their order, as one script."""
    names: list[str] = json.loads((EXTENSION / "content" / "files.json").read_text())[part]
    return "\n".join((EXTENSION / name).read_text() for name in names)


def _with_context_id(frame: WorldFrame, context_id: str) -> bytes:
    """The frame with its page context's id; it stands last, so it replaces an id that the page claims."""
    params = bytes(frame.params).strip() or b"{}"
    if not params.startswith(b"{"):
        raise extension.BadFrame("params are no object")
    inner = params[1:-1].strip()
    inner += b"," if inner else b""
    method = msgspec.json.encode(frame.method)
    return b'{"method":%s,"params":{%s"room":%s}}' % (method, inner, msgspec.json.encode(context_id))
