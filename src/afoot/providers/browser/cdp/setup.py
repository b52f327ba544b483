"""What a tab or frame is sent when we come to it: scripts for documents to come, a relay for an open one."""

from collections.abc import Iterable

from afoot.providers.browser.cdp import scripts
from afoot.providers.browser.cdp.connection import Connection, Refusal
from afoot.providers.browser.cdp.events import FrameTree, NewWorld, World, read
from afoot.providers.browser.cdp.rooms import Rooms
from afoot.providers.browser.cdp.session import Session
from afoot.wire.room import Body

FRAMES = [{"type": "iframe"}]
WEB = ("http://", "https://")
READY_S = 3.0  # a page is kept waiting no longer


class Setup:
    """Prepares sessions. Commands are only posted: a browser does them in order before a page runs."""

    def __init__(self, connection: Connection, names: scripts.Names) -> None:
        self._connection, self.names = connection, names

    async def greet(self, session: Session, plugins: Iterable[Body]) -> None:
        """Make ready for every document to come, then let a waiting page run.

        A popup may keep its first window for its first document, so there ours run at once: they see for
        themselves whether anything else has run before.
        """
        is_empty = session.hint in ("", "about:blank")
        self._post(session, "Page.enable")
        self._post(session, "Inspector.enable")
        for name in (*self.names.relays, *map(self.names.plugin, plugins)):
            self.bind(session, name)
        self._post(session, "Runtime.enable")
        follow = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": FRAMES}
        self._post(session, "Target.setAutoAttach", **follow)
        script = "Page.addScriptToEvaluateOnNewDocument"
        self._post(session, script, source=scripts.page(), runImmediately=is_empty)
        relay = {"source": scripts.relay(), "worldName": self.names.relay, "runImmediately": is_empty}
        try:
            # A page that runs on may get another process, which knows of the scripts only by this answer.
            await self._connection.ask(script, relay, session.id, READY_S)
        finally:
            self._post(session, "Runtime.runIfWaitingForDebugger")

    async def learn(self, session: Session) -> None:
        """Learn where its frames are: it may have told of that before we listened."""
        tree = read(FrameTree, await self._connection.ask("Page.getFrameTree", session=session.id))
        for frame in tree.frame_tree.all():
            session.urls.setdefault(frame.id, frame.address)

    def bind(self, session: Session, world: str) -> None:
        """Give worlds of a name the function that we are called by; no other world sees it."""
        binding = {"name": scripts.BINDING, "executionContextName": world}
        self._post(session, "Runtime.addBinding", **binding)

    async def come_late(self, session: Session, rooms: Rooms) -> None:
        """Find what was open before: an earlier gateway's relays, or pages with tools the browser knows.

        A new tab is held back until our scripts are there, but not always: it may have been faster.
        """
        tab = session.tab
        if not tab.url(tab.target).startswith(WEB):
            return
        for world in session.named(*self.names.relays):
            if rooms.of(world) is None:
                rooms.post(session, world, "hello", {})
        for frame in list(session.urls):
            await self.look_into(session, frame)

    async def look_into(self, session: Session, frame: str) -> None:
        """Start a relay beside a document whose scripts have run, if the browser itself has its tools."""
        if session.has(frame, *self.names.relays):
            return
        where = {"frameId": frame, "worldName": self.names.late}
        made = read(NewWorld, await self._connection.ask("Page.createIsolatedWorld", where, session.id))
        world = session.worlds.get(made.execution_context_id)
        if world is None:
            return
        found = await self._evaluate(session, world, scripts.PROBE)
        if session.has(frame, self.names.relay):
            return  # its next document came meanwhile
        if found == "native":
            await self._evaluate(session, world, scripts.late_relay())
        elif found == "none" and session.is_top(frame):
            session.why = "reload"

    def settle(self, session: Session, frame: str, body: Body) -> None:
        """Make the world of a plugin in a frame; its code follows when the world is there."""
        where = {"frameId": frame, "worldName": self.names.plugin(body)}
        self._post(session, "Page.createIsolatedWorld", **where)

    def run_plugin(self, session: Session, world: World, body: Body) -> None:
        """Run a plugin's code in its world."""
        for script in (body.body, body.files):
            if script:
                place = {"uniqueContextId": world.unique_id, "silent": True}
                self._post(session, "Runtime.evaluate", expression=script, **place)

    async def read_value(self, session: Session, frame: str, path: str) -> object:
        """What a value of the page is, as the page tells it."""
        mains = (one for one in session.worlds.values() if one.aux_data.frame_id == frame)
        main = next((one for one in mains if one.aux_data.is_default), None)
        if main is None:
            return {"ok": False, "why": "the page is gone"}
        try:
            return await self._evaluate(session, main, scripts.value_of(path))
        except (Refusal, ConnectionError, TimeoutError) as error:
            return {"ok": False, "why": str(error)}

    async def _evaluate(self, session: Session, world: World, script: str) -> object:
        command = {
            "expression": script, "uniqueContextId": world.unique_id, "returnByValue": True, "silent": True,
        }  # fmt: skip
        answer = await self._connection.call("Runtime.evaluate", command, session.id)
        if "exceptionDetails" in answer:
            raise Refusal(str(answer["exceptionDetails"].get("text", "")))
        return answer["result"].get("value")

    def _post(self, session: Session, method: str, **params: object) -> None:
        self._connection.post(method, params, session.id)
