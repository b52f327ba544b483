"""`Injector` puts our scripts into tabs and frames; `BindingListener` handles the frames that they send.

A frame counts only for the page context of the execution context that, by the browser's word, sent it (B7).
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from afoot.providers.browser.cdp.connection import CdpConnection, CommandError
from afoot.providers.browser.cdp.contexts import (
    BINDING,
    PROBE,
    TITLE_CHARS,
    ByeFrame,
    CdpContexts,
    InjectedContext,
    OpenFrame,
    WakeFrame,
    WorldFrame,
    WorldNames,
    late_relay_script,
    page_script,
    relay_script,
    value_script,
)
from afoot.providers.browser.cdp.events import (
    BindingCalledEvent,
    ExecutionContext,
    FrameTreeAnswer,
    IsolatedWorldAnswer,
    decode_params,
    page_origin,
)
from afoot.providers.browser.cdp.session import CdpSession
from afoot.wire.browser_data import PageContext, PluginBundle, decode_page_json

IFRAME_FILTER = [{"type": "iframe"}]
WEB_SCHEMES = ("http://", "https://")
SCRIPT_READY_S = 3.0  # the longest time for which a new page is held back

SpawnTask = Callable[[Coroutine[Any, Any, object]], None]


class ValueFrame(Struct, frozen=True):
    """`value`: a plugin asks for a value of the page."""

    id: Any
    path: str


class Injector:
    """Prepares sessions. Most commands are sent without waiting: a browser runs them in order."""

    def __init__(self, connection: CdpConnection, names: WorldNames) -> None:
        self._connection = connection
        self.names = names

    async def prepare(self, session: CdpSession, plugins: Iterable[PluginBundle]) -> None:
        """Register our scripts for all future documents, then let a waiting page run.

        A popup may keep its first, empty window for its first document. So our scripts run at once in an
        empty page; they find out themselves whether another script has run before.
        """
        is_empty = session.pending_url in ("", "about:blank")
        self._post(session, "Page.enable")
        self._post(session, "Inspector.enable")
        for name in (*self.names.relays, *map(self.names.plugin, plugins)):
            self.add_binding(session, name)
        self._post(session, "Runtime.enable")
        follow = {
            "autoAttach": True,
            "waitForDebuggerOnStart": True,
            "flatten": True,
            "filter": IFRAME_FILTER,
        }
        self._post(session, "Target.setAutoAttach", **follow)
        script = "Page.addScriptToEvaluateOnNewDocument"
        self._post(session, script, source=page_script(), runImmediately=is_empty)
        relay = {"source": relay_script(), "worldName": self.names.relay, "runImmediately": is_empty}
        try:
            # Wait for the answer: a page that runs on may change its process, and the new process has the
            # scripts only after it.
            await self._connection.call_raw(script, relay, session.id, SCRIPT_READY_S)
        finally:
            self._post(session, "Runtime.runIfWaitingForDebugger")

    async def load_frame_urls(self, session: CdpSession) -> None:
        """Get the addresses of its frames: their events may have come before we were attached."""
        tree = decode_params(
            FrameTreeAnswer, await self._connection.call_raw("Page.getFrameTree", session=session.id)
        )
        for frame in tree.frame_tree.all():
            session.urls.setdefault(frame.id, frame.address)

    def add_binding(self, session: CdpSession, world: str) -> None:
        """Give worlds with this name, and no others, the function by which they send frames."""
        binding = {"name": BINDING, "executionContextName": world}
        self._post(session, "Runtime.addBinding", **binding)

    async def find_open_documents(self, session: CdpSession, contexts: CdpContexts) -> None:
        """Find documents that were open before: with a relay of an earlier gateway, or with native tools.

        A new tab is looked at too: it is held back until our scripts are there, but may have been faster.
        """
        tab = session.tab
        if not tab.url(tab.target).startswith(WEB_SCHEMES):
            return
        for world in session.worlds_named(*self.names.relays):
            if contexts.find(world) is None:
                contexts.post(session, world, "hello", {})
        for frame in list(session.urls):
            await self.start_late_relay(session, frame)

    async def start_late_relay(self, session: CdpSession, frame: str) -> None:
        """Start a relay for a document whose scripts have run, if it has native tools (WebMCP).

        The first document of a new tab is loaded again instead: the browser does not hold back a tab that it
        opens itself, as for `/json/new` of its debugging port.
        """
        if session.has_world(frame, *self.names.relays):
            return
        if session.may_reload and session.is_top(frame):
            session.may_reload = False
            self._post(session, "Page.reload")
            return
        where = {"frameId": frame, "worldName": self.names.late}
        answer = decode_params(
            IsolatedWorldAnswer,
            await self._connection.call_raw("Page.createIsolatedWorld", where, session.id),
        )
        world = session.worlds.get(answer.execution_context_id)
        if world is None:
            return
        found = await self._evaluate(session, world, PROBE)
        if session.has_world(frame, self.names.relay):
            return  # the frame has a new document by now
        if found == "native":
            await self._evaluate(session, world, late_relay_script())
        elif found == "none" and session.is_top(frame):
            session.why = "reload"

    def create_plugin_world(self, session: CdpSession, frame: str, bundle: PluginBundle) -> None:
        """Create the world of a plugin in a frame; its code runs when the world is reported."""
        where = {"frameId": frame, "worldName": self.names.plugin(bundle)}
        self._post(session, "Page.createIsolatedWorld", **where)

    def run_plugin(self, session: CdpSession, world: ExecutionContext, bundle: PluginBundle) -> None:
        """Run a plugin's code in its world."""
        for script in (bundle.body, bundle.files):
            if script:
                target = {"uniqueContextId": world.unique_id, "silent": True}
                self._post(session, "Runtime.evaluate", expression=script, **target)

    async def read_value(self, session: CdpSession, frame: str, path: str) -> object:
        """Read a value of the page, in the page's own world."""
        mains = (one for one in session.worlds.values() if one.aux_data.frame_id == frame)
        main = next((one for one in mains if one.aux_data.is_default), None)
        if main is None:
            return {"ok": False, "why": "the page is gone"}
        try:
            return await self._evaluate(session, main, value_script(path))
        except (CommandError, ConnectionError, TimeoutError) as error:
            return {"ok": False, "why": str(error)}

    async def _evaluate(self, session: CdpSession, world: ExecutionContext, script: str) -> object:
        command = {
            "expression": script, "uniqueContextId": world.unique_id, "returnByValue": True, "silent": True,
        }  # fmt: skip
        answer = await self._connection.call("Runtime.evaluate", command, session.id)
        if "exceptionDetails" in answer:
            raise CommandError(str(answer["exceptionDetails"].get("text", "")))
        return answer["result"].get("value")

    def _post(self, session: CdpSession, method: str, **params: object) -> None:
        self._connection.post(method, params, session.id)


class BindingListener:
    """Handles the frames that worlds send, and opens page contexts for them."""

    def __init__(
        self, injector: Injector, contexts: CdpContexts, counts: Counter[str], numbers: Iterator[int]
    ) -> None:
        self._injector = injector
        self._contexts = contexts
        self._counts = counts
        self._numbers = numbers
        self._frame = msgspec.json.Decoder(WorldFrame)
        # Every plugin whose code may still run in a page, by the name of its world.
        self.plugins: Mapping[str, PluginBundle] = {}
        self.spawn: SpawnTask = lambda work: work.close()
        self.changed: Callable[[], None] = lambda: None

    def on_binding_called(self, session: CdpSession, called: BindingCalledEvent) -> None:
        """Runtime.bindingCalled: handle one frame of one world."""
        world = session.worlds.get(called.execution_context_id)
        if called.name != BINDING or world is None:
            self._counts["unknown world"] += 1
            return
        if world.name not in self._injector.names.relays and world.name not in self.plugins:
            return  # a world of another gateway
        try:
            frame = decode_page_json(self._frame, called.payload)
            self._on_world_frame(session, world, frame)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            self._counts["bad frame"] += 1

    def _on_world_frame(self, session: CdpSession, world: ExecutionContext, frame: WorldFrame) -> None:
        params = frame.params or msgspec.Raw(b"{}")
        if frame.method == "open":
            self._open(session, world, msgspec.json.decode(params, type=OpenFrame))
            return
        context = self._contexts.find(world)
        if context is None:
            self._counts["no room"] += 1
        elif frame.method == "bye":
            self._on_bye(context, msgspec.json.decode(params, type=ByeFrame))
        elif frame.method == "wake":
            self._contexts.start_timer(context, msgspec.json.decode(params, type=WakeFrame))
        elif frame.method == "value" and context.key:
            self.spawn(self._answer_value(context, msgspec.json.decode(params, type=ValueFrame)))
        else:
            self._contexts.forward(context, frame)
            if frame.method == "tab.state":
                self.changed()

    def _open(self, session: CdpSession, world: ExecutionContext, opening: OpenFrame) -> None:
        frame, tab = world.aux_data.frame_id, session.tab
        if not tab.url(tab.target).startswith(WEB_SCHEMES):
            return  # a page of the browser itself, or no page yet
        bundle = self.plugins.get(world.name)
        if opening.key != (bundle.key if bundle is not None else ""):
            self._counts["wrong key"] += 1
            return
        is_top, origin = session.is_top(frame), page_origin(world.origin)
        info = PageContext(
            id=f"r{next(self._numbers)}",
            tab=tab.target,
            frame="0" if is_top else frame,
            document=world.unique_id,
            origin=origin,
            top=origin if is_top else tab.origin(tab.target),
            url=session.url(frame),
            title=opening.title[:TITLE_CHARS],
            source=f"plugin:{bundle.name}@{bundle.hash}" if bundle is not None else "page",
            visible=opening.visible,
            frozen=opening.frozen,
        )
        if is_top and bundle is None:
            session.may_reload = False
            session.visible = opening.visible
            session.title = opening.title[:TITLE_CHARS]
            session.why = ""
        self._contexts.open(InjectedContext(info, session, world, opening.key), opening)
        self.changed()

    def _on_bye(self, context: InjectedContext, bye: ByeFrame) -> None:
        if bye.persisted:
            self._contexts.close(context, "cached")
        elif bye.why == "replaced" and context.key:
            self._contexts.close(context, "replaced")
        # Otherwise the document goes, and the browser reports the reason.

    async def _answer_value(self, context: InjectedContext, wanted: ValueFrame) -> None:
        value = await self._injector.read_value(context.session, context.frame, wanted.path)
        answer = value if isinstance(value, dict) else {"ok": False, "why": "it could not be read"}
        self._contexts.send(context.info.id, "valued", {**answer, "id": wanted.id})
