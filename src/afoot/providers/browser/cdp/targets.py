"""Attaching to every tab and frame of a browser, and telling which there are (B5)."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from afoot.providers.browser.cdp import events
from afoot.providers.browser.cdp.connection import Connection, Message, Refusal
from afoot.providers.browser.cdp.rooms import Rooms, Tell
from afoot.providers.browser.cdp.session import Session
from afoot.providers.browser.cdp.setup import WEB, Setup
from afoot.providers.browser.cdp.speech import Speech
from afoot.providers.browser.cdp.worlds import Worlds
from afoot.wire.link import TabList
from afoot.wire.room import Tab

SETTLED_S = 3.0
LISTED_S = 0.05  # changes of tabs are gathered for so long
CONSOLE = 500  # lines of consoles whose objects the browser keeps for us
PAGES = [{"type": "page"}]
CLOSED = "closed to extensions"  # pages of the browser itself
OWN = ("devtools://", "chrome-extension://")  # no tabs to a person

Inner = Callable[[Session, Any], None]


class Parts(Struct, frozen=True):
    """What a connection is put together from."""

    setup: Setup
    rooms: Rooms
    speech: Speech
    worlds: Worlds
    tell: Tell


class Targets:
    """The tabs and frames of one connection."""

    def __init__(self, connection: Connection, parts: Parts) -> None:
        self._connection, self._tell = connection, parts.tell
        self._setup, self.worlds, self._rooms = parts.setup, parts.worlds, parts.rooms
        self._sessions: dict[str, Session] = {}
        self._infos: dict[str, events.Info] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._listing: asyncio.TimerHandle | None = None
        self._lines = 0
        speech, worlds = parts.speech, parts.worlds
        speech.spawn, speech.changed = self._spawn, self._list_soon
        self._outer: dict[str, tuple[type, Callable[[str, Any], None]]] = {
            "Target.targetCreated": (events.InfoChanged, self._informed),
            "Target.targetInfoChanged": (events.InfoChanged, self._informed),
            "Target.targetDestroyed": (events.Destroyed, self._destroyed),
            "Target.attachedToTarget": (events.Attached, self._attached),
            "Target.detachedFromTarget": (events.Detached, self._detached),
        }
        self._inner: dict[str, tuple[type, Inner]] = {
            "Runtime.bindingCalled": (events.Called, speech.hear),
            "Runtime.executionContextCreated": (events.WorldMade, worlds.made),
            "Runtime.executionContextDestroyed": (events.WorldGone, worlds.gone),
            "Page.frameStartedNavigating": (events.Navigating, worlds.navigating),
            "Page.frameNavigated": (events.Navigated, worlds.navigated),
            "Page.navigatedWithinDocument": (events.NavigatedWithin, worlds.moved),
            "Page.frameDetached": (events.FrameGone, worlds.removed),
            "Page.frameStoppedLoading": (events.Rested, worlds.rested),
        }

    def hear(self, message: Message) -> None:
        """Take an event; raises msgspec.DecodeError."""
        outer = self._outer.get(message.method)
        if outer is not None:
            outer[1](message.session, events.read(outer[0], message.params))
            return
        session = self._sessions.get(message.session)
        if session is None:
            return
        inner = self._inner.get(message.method)
        if inner is not None:
            inner[1](session, events.read(inner[0], message.params))
        elif message.method == "Runtime.executionContextsCleared":
            self.worlds.cleared(session)
        elif message.method == "Inspector.targetCrashed":
            self.worlds.crashed(session)
            self._list_soon()
        elif message.method == "Runtime.consoleAPICalled":
            self._forget(session)

    async def begin(self) -> None:
        """Attach to what is there, and to all that comes."""
        follow = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": PAGES}
        await self._connection.call("Target.setAutoAttach", follow)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SETTLED_S)  # a tab may hang

    async def discover(self) -> list[Tab]:
        """Every tab that is there."""
        await self._connection.call("Target.setDiscoverTargets", {"discover": True, "filter": PAGES})
        return self.tabs()

    def sessions(self) -> list[Session]:
        """Every tab and frame that we are attached to."""
        return list(self._sessions.values())

    def page(self, tab: str) -> Session | None:
        """The session of a tab."""
        return next((one for one in self.sessions() if one.parent is None and one.target == tab), None)

    def tabs(self) -> list[Tab]:
        """Every tab, as a person sees it."""
        return [self._tab(info) for info in self._infos.values() if not info.url.startswith(OWN)]

    def reload(self, tab: str) -> bool:
        """Load a tab anew; False if it is not there."""
        page = self.page(tab)
        return page is not None and self._connection.post("Page.reload", session=page.id)

    async def end(self) -> None:
        """Stop everything that was begun."""
        if self._listing is not None:
            self._listing.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Targets come and go.

    def _informed(self, _: str, event: events.InfoChanged) -> None:
        info = event.target_info
        if info.type != "page":
            return
        self._infos[info.target_id] = info
        self._list_soon()

    def _destroyed(self, _: str, event: events.Destroyed) -> None:
        if self._infos.pop(event.target_id, None) is not None:
            self._list_soon()

    def _attached(self, parent: str, event: events.Attached) -> None:
        info = event.target_info
        above = self._sessions.get(parent)
        session = Session(event.session_id, info.target_id, above)
        session.hint = info.url
        self._sessions[session.id] = session
        self._spawn(self._greet(session))

    async def _greet(self, session: Session) -> None:
        await self._setup.greet(session, self.worlds.plugins.values())
        await self._setup.learn(session)
        await self._setup.come_late(session, self._rooms)
        self.worlds.visit(session, self.worlds.plugins.values())
        self._list_soon()

    def _detached(self, _: str, event: events.Detached) -> None:
        session = self._sessions.pop(event.session_id, None)
        if session is None:
            return
        why = "closed" if session.parent is None else session.reason(session.target)
        for inside in self._rooms.all():
            if inside.session.is_within(session):
                self.worlds.end(inside, why)
        self._sessions = {key: one for key, one in self._sessions.items() if not one.is_within(session)}

    def _forget(self, session: Session) -> None:
        """The browser keeps what pages print for whoever listens; we do not."""
        self._lines += 1
        if self._lines % CONSOLE == 0:
            self._connection.post("Runtime.discardConsoleEntries", session=session.id)

    # The list of tabs.

    def _tab(self, info: events.Info) -> Tab:
        page = self.page(info.target_id)
        why = page.why if page is not None else ""
        return Tab(
            id=info.target_id,
            title=(page.title if page is not None else "") or info.title,
            url=info.url,
            active=page is not None and page.visible,
            why=why if info.url.startswith(WEB) else CLOSED,
        )

    def _list_soon(self) -> None:
        if self._listing is None:
            self._listing = asyncio.get_running_loop().call_later(LISTED_S, self._list)

    def _list(self) -> None:
        self._listing = None
        self._tell(TabList(self.tabs()))

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quietly(work: Coroutine[Any, Any, object]) -> None:
    """A tab may go while we do something with it."""
    with suppress(Refusal, ConnectionError, TimeoutError, msgspec.DecodeError):
        await work
