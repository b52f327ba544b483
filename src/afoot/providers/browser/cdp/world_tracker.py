"""`WorldTracker` follows the execution contexts of attached tabs and frames (B6).

It starts plugins in new documents, and closes page contexts with the reason why their document went.
"""

import asyncio
from collections.abc import Iterable

from afoot.providers.browser.cdp import events
from afoot.providers.browser.cdp.contexts import CdpContexts, InjectedContext
from afoot.providers.browser.cdp.events import NAVIGATION_REASONS
from afoot.providers.browser.cdp.injection import WEB_SCHEMES, BindingListener, Injector
from afoot.providers.browser.cdp.session import CdpSession
from afoot.providers.browser.plugins.match_patterns import covers_url
from afoot.wire.browser_data import PluginBundle

BFCACHE_RESTORE = "BackForwardCacheRestore"
REASON_WAIT_S = 0.05  # the reason may come this long after the end of an execution context


class WorldTracker:
    """Follows the worlds of all sessions, and closes page contexts with the right reason."""

    def __init__(self, injector: Injector, contexts: CdpContexts, binding_listener: BindingListener) -> None:
        self._injector = injector
        self._contexts = contexts
        self._binding_listener = binding_listener
        self.plugins: dict[str, PluginBundle] = {}  # the current ones, by the name of their world

    def on_context_created(self, session: CdpSession, event: events.ContextCreatedEvent) -> None:
        """Runtime.executionContextCreated: run a plugin's code if this is its world."""
        world = event.context
        session.worlds[world.id] = world
        bundle = self.plugins.get(world.name)
        if bundle is not None and session.is_top(world.aux_data.frame_id):
            self._injector.run_plugin(session, world, bundle)

    def on_context_destroyed(self, session: CdpSession, event: events.ContextDestroyedEvent) -> None:
        """Runtime.executionContextDestroyed: a frame was removed, or has another document."""
        world = session.worlds.pop(event.execution_context_id, None)
        context = self._contexts.find(world) if world is not None else None
        if context is not None:
            self.close_context(context, session.end_reason(context.frame))

    def on_contexts_cleared(self, session: CdpSession) -> None:
        """Runtime.executionContextsCleared: the whole document is gone, with the frames of this process."""
        session.worlds.clear()
        for context in self._contexts.in_session(session):
            self.close_context(context, session.end_reason(context.frame) or "navigated")

    def on_target_crashed(self, session: CdpSession) -> None:
        """Inspector.targetCrashed."""
        session.is_crashed = True
        session.worlds.clear()
        for context in self._contexts.in_session(session):
            self.close_context(context, "crashed")

    def close_context(self, context: InjectedContext, why: str) -> None:
        """Close a page context; without a reason, a moment later: it may be that the whole tab closes."""
        if why:
            self._contexts.close(context, why)
        else:
            asyncio.get_running_loop().call_later(REASON_WAIT_S, self._close_unexplained, context)

    def _close_unexplained(self, context: InjectedContext) -> None:
        is_top = context.session.is_top(context.frame)
        why = context.session.end_reason(context.frame) or ("navigated" if is_top else "removed")
        self._contexts.close(context, why)

    def on_frame_started_navigating(
        self, session: CdpSession, event: events.FrameStartedNavigatingEvent
    ) -> None:
        """Page.frameStartedNavigating: note why the document of a frame goes, if it does."""
        why = NAVIGATION_REASONS.get(event.navigation_type)
        if why is not None:
            session.leaving[event.frame_id] = why

    def on_frame_navigated(self, session: CdpSession, event: events.FrameNavigatedEvent) -> None:
        """Page.frameNavigated: a frame has another document."""
        frame = event.frame
        session.clear_leaving(frame.id)
        session.urls[frame.id] = frame.address
        self._greet_relays(session, frame.id, was_cached=event.type == BFCACHE_RESTORE)
        if frame.id == session.target:
            session.why = ""
            session.title = ""
            session.is_crashed = False
            self.start_plugins(session, self.plugins.values())

    def _greet_relays(self, session: CdpSession, frame: str, *, was_cached: bool) -> None:
        """Greet relays that still run: a document is back from the cache, or a window has another one."""
        for world in session.worlds_named(*self._injector.names.relays):
            if world.aux_data.frame_id == frame:
                context = self._contexts.find(world)
                if context is not None and not was_cached:
                    self._contexts.close(context, "navigated")
                self._contexts.post(session, world, "hello", {})

    def on_navigated_within_document(
        self, session: CdpSession, event: events.NavigatedWithinDocumentEvent
    ) -> None:
        """Page.navigatedWithinDocument: the document stays (pushState), but a plugin may match now."""
        session.urls[event.frame_id] = event.url
        if event.frame_id == session.target:
            self.start_plugins(session, self.plugins.values())

    def on_frame_detached(self, session: CdpSession, event: events.FrameDetachedEvent) -> None:
        """Page.frameDetached: the frame was removed, or its next document is in another process."""
        session.urls.pop(event.frame_id, None)
        for context in self._contexts.in_session(session):
            if context.frame == event.frame_id and event.reason == "swap":
                self.close_context(context, "navigated")

    def on_frame_stopped_loading(self, session: CdpSession, event: events.FrameStoppedLoadingEvent) -> None:
        """Page.frameStoppedLoading: a navigation came to nothing, or we missed the start of a document."""
        frame = event.frame_id
        session.clear_leaving(frame)
        is_web = session.url(frame).startswith(WEB_SCHEMES)
        if is_web and not session.has_world(frame, *self._injector.names.relays):
            self._binding_listener.spawn(self._injector.start_late_relay(session, frame))

    def set_plugins(self, bundles: Iterable[PluginBundle], sessions: Iterable[CdpSession]) -> None:
        """Run these plugins and no others, also in open documents."""
        before = self.plugins
        self.plugins = {self._injector.names.plugin(one): one for one in bundles}
        open_worlds = {
            context.world.name for context in self._contexts.all()
        }  # includes old code that finishes its runs
        old = {name: bundle for name, bundle in self._binding_listener.plugins.items() if name in open_worlds}
        self._binding_listener.plugins = {**old, **self.plugins}
        added = [bundle for name, bundle in self.plugins.items() if name not in before]
        for session in sessions:
            for bundle in added:
                self._injector.add_binding(session, self._injector.names.plugin(bundle))
            self.start_plugins(session, added)
        for context in self._contexts.all():
            if context.key:
                is_current = context.world.name in self.plugins
                self._contexts.send(context.info.id, "revive" if is_current else "retire", {})

    def start_plugins(self, session: CdpSession, bundles: Iterable[PluginBundle]) -> None:
        """Start plugins whose patterns match the tab's address; they never run in frames."""
        top = session.target
        if session.parent is not None:
            return
        for bundle in bundles:
            if not covers_url(bundle.matches, bundle.excludes, session.url(top)):
                continue
            worlds = list(session.worlds_named(self._injector.names.plugin(bundle)))
            if not worlds:
                self._injector.create_plugin_world(session, top, bundle)
            for world in worlds:
                if self._contexts.find(world) is None:  # it was retired here; its code may run again
                    self._injector.run_plugin(session, world, bundle)
