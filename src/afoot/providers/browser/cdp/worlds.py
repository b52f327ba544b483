"""What happens inside attached tabs and frames: worlds come and go, documents change (B6)."""

import asyncio
from collections.abc import Iterable

from afoot.providers.browser.cdp import events
from afoot.providers.browser.cdp.rooms import Inside, Rooms
from afoot.providers.browser.cdp.session import WHY, Session
from afoot.providers.browser.cdp.setup import WEB, Setup
from afoot.providers.browser.cdp.speech import Speech
from afoot.providers.browser.patterns import covers
from afoot.wire.room import Body

RESTORED = "BackForwardCacheRestore"
UNKNOWN_S = 0.05  # so long the reason of an end may come after it


class Worlds:
    """Follows the worlds of all sessions, and ends rooms with the right reason."""

    def __init__(self, setup: Setup, rooms: Rooms, speech: Speech) -> None:
        self._setup, self._rooms, self._speech = setup, rooms, speech
        self.plugins: dict[str, Body] = {}  # those of now, by the name of their world

    def made(self, session: Session, event: events.WorldMade) -> None:
        """Runtime.executionContextCreated: a plugin's world gets its code."""
        world = event.context
        session.worlds[world.id] = world
        body = self.plugins.get(world.name)
        if body is not None and session.is_top(world.aux_data.frame_id):
            self._setup.run_plugin(session, world, body)

    def gone(self, session: Session, event: events.WorldGone) -> None:
        """Runtime.executionContextDestroyed: a frame went, or got another document."""
        world = session.worlds.pop(event.execution_context_id, None)
        inside = self._rooms.of(world) if world is not None else None
        if inside is not None:
            self.end(inside, session.reason(inside.frame))

    def cleared(self, session: Session) -> None:
        """Runtime.executionContextsCleared: the whole document went, with the frames of this process."""
        session.worlds.clear()
        for inside in self._rooms.within(session):
            self.end(inside, session.reason(inside.frame) or "navigated")

    def crashed(self, session: Session) -> None:
        """Inspector.targetCrashed."""
        session.is_crashed = True
        session.worlds.clear()
        for inside in self._rooms.within(session):
            self.end(inside, "crashed")

    def end(self, inside: Inside, why: str) -> None:
        """End a room now, or, where the reason is not known, a moment later: it may be the whole tab."""
        if why:
            self._rooms.close(inside, why)
        else:
            asyncio.get_running_loop().call_later(UNKNOWN_S, self._end_unknown, inside)

    def _end_unknown(self, inside: Inside) -> None:
        is_top = inside.session.is_top(inside.frame)
        why = inside.session.reason(inside.frame) or ("navigated" if is_top else "removed")
        self._rooms.close(inside, why)

    def navigating(self, session: Session, event: events.Navigating) -> None:
        """Page.frameStartedNavigating: why the document of a frame will go, if it comes to that."""
        why = WHY.get(event.navigation_type)
        if why is not None:
            session.leaving[event.frame_id] = why

    def navigated(self, session: Session, event: events.Navigated) -> None:
        """Page.frameNavigated: a frame has another document."""
        frame = event.frame
        session.stay(frame.id)
        session.urls[frame.id] = frame.address
        self._greet_again(session, frame.id, was_cached=event.type == RESTORED)
        if frame.id == session.target:
            session.why, session.title, session.is_crashed = "", "", False
            self.visit(session, self.plugins.values())

    def _greet_again(self, session: Session, frame: str, *, was_cached: bool) -> None:
        """A relay that lives on: its document was put away and is back, or its window got another one."""
        for world in session.named(*self._setup.names.relays):
            if world.aux_data.frame_id == frame:
                inside = self._rooms.of(world)
                if inside is not None and not was_cached:
                    self._rooms.close(inside, "navigated")
                self._rooms.post(session, world, "hello", {})

    def moved(self, session: Session, event: events.NavigatedWithin) -> None:
        """Page.navigatedWithinDocument: pushState ends nothing, but a plugin may match now."""
        session.urls[event.frame_id] = event.url
        if event.frame_id == session.target:
            self.visit(session, self.plugins.values())

    def removed(self, session: Session, event: events.FrameGone) -> None:
        """Page.frameDetached: for good, or into another process, where its next document is."""
        session.urls.pop(event.frame_id, None)
        for inside in self._rooms.within(session):
            if inside.frame == event.frame_id and event.reason == "swap":
                self.end(inside, "navigated")

    def rested(self, session: Session, event: events.Rested) -> None:
        """Page.frameStoppedLoading: nothing came of a navigation, or we missed the start of a document."""
        frame = event.frame_id
        session.stay(frame)
        is_web = session.url(frame).startswith(WEB)
        if is_web and not session.has(frame, *self._setup.names.relays):
            self._speech.spawn(self._setup.look_into(session, frame))

    def adopt(self, bodies: Iterable[Body], sessions: Iterable[Session]) -> None:
        """Run these plugins and no others, also in documents that are open."""
        before, self.plugins = self.plugins, {self._setup.names.plugin(one): one for one in bodies}
        heard = {inside.world.name for inside in self._rooms.all()}  # old code that still finishes its runs
        old = {name: body for name, body in self._speech.plugins.items() if name in heard}
        self._speech.plugins = {**old, **self.plugins}
        added = [body for name, body in self.plugins.items() if name not in before]
        for session in sessions:
            for body in added:
                self._setup.bind(session, self._setup.names.plugin(body))
            self.visit(session, added)
        for inside in self._rooms.all():
            if inside.key:
                is_current = inside.world.name in self.plugins
                self._rooms.send(inside.room.id, "revive" if is_current else "retire", {})

    def visit(self, session: Session, bodies: Iterable[Body]) -> None:
        """Start plugins where they match: in tabs themselves, never in frames."""
        top = session.target
        if session.parent is not None:
            return
        for body in bodies:
            if not covers(body.matches, body.excludes, session.url(top)):
                continue
            worlds = list(session.named(self._setup.names.plugin(body)))
            if not worlds:
                self._setup.settle(session, top, body)
            for world in worlds:
                if self._rooms.of(world) is None:  # it was retired here; running it again is harmless
                    self._setup.run_plugin(session, world, body)
