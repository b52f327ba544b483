"""`Targets` attaches to every tab and frame of a browser, and reports the list of tabs (B5)."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from afoot.providers.browser.cdp import events
from afoot.providers.browser.cdp.connection import CdpConnection, CdpMessage, CommandError
from afoot.providers.browser.cdp.contexts import CdpContexts, OnFrame
from afoot.providers.browser.cdp.injection import WEB_SCHEMES, BindingListener, Injector
from afoot.providers.browser.cdp.session import CdpSession
from afoot.providers.browser.cdp.world_tracker import WorldTracker
from afoot.wire.browser_data import Tab
from afoot.wire.extension import TabList

ATTACH_S = 3.0
TAB_LIST_DELAY_S = 0.05  # changes of tabs are collected for this time
CONSOLE_ENTRIES = 500  # after so many, the browser is told to free them
PAGE_FILTER = [{"type": "page"}]
CLOSED_TO_EXTENSIONS = "closed to extensions"  # pages of the browser itself
HIDDEN_SCHEMES = ("devtools://", "chrome-extension://")  # pages that no person calls a tab

OnSessionEvent = Callable[[CdpSession, Any], None]


class ConnectionParts(Struct, frozen=True):
    """The objects that one connection consists of."""

    injector: Injector
    contexts: CdpContexts
    binding_listener: BindingListener
    worlds: WorldTracker
    on_frame: OnFrame


class Targets:
    """The tabs and frames of one connection."""

    def __init__(self, connection: CdpConnection, parts: ConnectionParts) -> None:
        self._connection = connection
        self._on_frame = parts.on_frame
        self._injector = parts.injector
        self.worlds = parts.worlds
        self._contexts = parts.contexts
        self._sessions: dict[str, CdpSession] = {}
        self._infos: dict[str, events.TargetInfo] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._listing: asyncio.TimerHandle | None = None
        self._lines = 0
        self._knows_open_tabs = False
        binding_listener, worlds = parts.binding_listener, parts.worlds
        binding_listener.spawn = self._spawn
        binding_listener.changed = self._schedule_tab_list
        self._browser_events: dict[str, tuple[type, Callable[[str, Any], None]]] = {
            "Target.targetCreated": (events.TargetInfoEvent, self._on_target_info),
            "Target.targetInfoChanged": (events.TargetInfoEvent, self._on_target_info),
            "Target.targetDestroyed": (events.TargetDestroyedEvent, self._on_target_destroyed),
            "Target.attachedToTarget": (events.AttachedToTargetEvent, self._on_attached),
            "Target.detachedFromTarget": (events.DetachedFromTargetEvent, self._on_detached),
        }
        self._session_events: dict[str, tuple[type, OnSessionEvent]] = {
            "Runtime.bindingCalled": (events.BindingCalledEvent, binding_listener.on_binding_called),
            "Runtime.executionContextCreated": (events.ContextCreatedEvent, worlds.on_context_created),
            "Runtime.executionContextDestroyed": (events.ContextDestroyedEvent, worlds.on_context_destroyed),
            "Page.frameStartedNavigating": (
                events.FrameStartedNavigatingEvent,
                worlds.on_frame_started_navigating,
            ),
            "Page.frameNavigated": (events.FrameNavigatedEvent, worlds.on_frame_navigated),
            "Page.navigatedWithinDocument": (
                events.NavigatedWithinDocumentEvent,
                worlds.on_navigated_within_document,
            ),
            "Page.frameDetached": (events.FrameDetachedEvent, worlds.on_frame_detached),
            "Page.frameStoppedLoading": (events.FrameStoppedLoadingEvent, worlds.on_frame_stopped_loading),
        }

    def on_event(self, message: CdpMessage) -> None:
        """Handle an event; raises msgspec.DecodeError."""
        browser_event = self._browser_events.get(message.method)
        if browser_event is not None:
            kind, handle = browser_event
            handle(message.session, events.decode_params(kind, message.params))
            return
        session = self._sessions.get(message.session)
        if session is None:
            return
        session_event = self._session_events.get(message.method)
        if session_event is not None:
            kind, handle_in_session = session_event
            handle_in_session(session, events.decode_params(kind, message.params))
        elif message.method == "Runtime.executionContextsCleared":
            self.worlds.on_contexts_cleared(session)
        elif message.method == "Inspector.targetCrashed":
            self.worlds.on_target_crashed(session)
            self._schedule_tab_list()
        elif message.method == "Runtime.consoleAPICalled":
            self._discard_console(session)

    async def attach(self) -> None:
        """Attach to all tabs, also to future ones."""
        follow = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": PAGE_FILTER}
        await self._connection.call("Target.setAutoAttach", follow)
        self._knows_open_tabs = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ATTACH_S)  # a tab may hang

    async def discover(self) -> list[Tab]:
        """Ask for all tabs, and list them."""
        await self._connection.call("Target.setDiscoverTargets", {"discover": True, "filter": PAGE_FILTER})
        return self.tabs()

    def sessions(self) -> list[CdpSession]:
        """Every tab and frame that we are attached to."""
        return list(self._sessions.values())

    def page(self, tab: str) -> CdpSession | None:
        """The session of a tab."""
        return next((one for one in self.sessions() if one.parent is None and one.target == tab), None)

    def tabs(self) -> list[Tab]:
        """Every tab that a person would call so."""
        return [self._tab(info) for info in self._infos.values() if not info.url.startswith(HIDDEN_SCHEMES)]

    def reload(self, tab: str) -> bool:
        """Reload a tab; False if it is not there."""
        page = self.page(tab)
        return page is not None and self._connection.post("Page.reload", session=page.id)

    async def close(self) -> None:
        """Cancel the timer and all tasks."""
        if self._listing is not None:
            self._listing.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Targets come and go.

    def _on_target_info(self, _: str, event: events.TargetInfoEvent) -> None:
        info = event.target_info
        if info.type != "page":
            return
        self._infos[info.target_id] = info
        self._schedule_tab_list()

    def _on_target_destroyed(self, _: str, event: events.TargetDestroyedEvent) -> None:
        if self._infos.pop(event.target_id, None) is not None:
            self._schedule_tab_list()

    def _on_attached(self, parent: str, event: events.AttachedToTargetEvent) -> None:
        info = event.target_info
        above = self._sessions.get(parent)
        session = CdpSession(event.session_id, info.target_id, above)
        session.pending_url = info.url
        session.may_reload = self._knows_open_tabs and above is None
        self._sessions[session.id] = session
        self._spawn(self._prepare(session))

    async def _prepare(self, session: CdpSession) -> None:
        await self._injector.prepare(session, self.worlds.plugins.values())
        await self._injector.load_frame_urls(session)
        await self._injector.find_open_documents(session, self._contexts)
        self.worlds.start_plugins(session, self.worlds.plugins.values())
        self._schedule_tab_list()

    def _on_detached(self, _: str, event: events.DetachedFromTargetEvent) -> None:
        session = self._sessions.pop(event.session_id, None)
        if session is None:
            return
        why = "closed" if session.parent is None else session.end_reason(session.target)
        for context in self._contexts.all():
            if context.session.is_within(session):
                self.worlds.close_context(context, why)
        self._sessions = {key: one for key, one in self._sessions.items() if not one.is_within(session)}

    def _discard_console(self, session: CdpSession) -> None:
        """Let the browser free the objects of console entries, which it keeps for an attached client."""
        self._lines += 1
        if self._lines % CONSOLE_ENTRIES == 0:
            self._connection.post("Runtime.discardConsoleEntries", session=session.id)

    # The list of tabs.

    def _tab(self, info: events.TargetInfo) -> Tab:
        page = self.page(info.target_id)
        why = page.why if page is not None else ""
        return Tab(
            id=info.target_id,
            title=(page.title if page is not None else "") or info.title,
            url=info.url,
            active=page is not None and page.visible,
            why=why if info.url.startswith(WEB_SCHEMES) else CLOSED_TO_EXTENSIONS,
        )

    def _schedule_tab_list(self) -> None:
        if self._listing is None:
            self._listing = asyncio.get_running_loop().call_later(TAB_LIST_DELAY_S, self._send_tab_list)

    def _send_tab_list(self) -> None:
        self._listing = None
        self._on_frame(TabList(self.tabs()))

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = asyncio.create_task(_unless_gone(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _unless_gone(work: Coroutine[Any, Any, object]) -> None:
    """Run a task, and ignore the errors of a tab that goes away meanwhile."""
    with suppress(CommandError, ConnectionError, TimeoutError, msgspec.DecodeError):
        await work
