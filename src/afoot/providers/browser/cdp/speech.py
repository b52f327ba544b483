"""What worlds say: each is believed only for the room that the browser says it is (B7)."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from afoot.providers.browser.cdp.events import Called, World
from afoot.providers.browser.cdp.rooms import TITLE, Bye, Frame, Inside, Opening, Rooms, Wake
from afoot.providers.browser.cdp.scripts import BINDING
from afoot.providers.browser.cdp.session import Session, plain
from afoot.providers.browser.cdp.setup import WEB, Setup
from afoot.wire.mending import decode
from afoot.wire.room import Body, Room

Spawn = Callable[[Coroutine[Any, Any, object]], None]


class Wanted(Struct, frozen=True):
    """`value`: a plugin wants to know a value of the page."""

    id: Any
    path: str


class Speech:
    """Takes what worlds say, and opens rooms for them."""

    def __init__(self, setup: Setup, rooms: Rooms, counts: Counter[str], numbers: Iterator[int]) -> None:
        self._setup, self._rooms, self._counts, self._numbers = setup, rooms, counts, numbers
        self._frame = msgspec.json.Decoder(Frame)
        self.plugins: Mapping[str, Body] = {}  # every plugin whose code may run somewhere, by its world
        self.spawn: Spawn = lambda work: work.close()
        self.changed: Callable[[], None] = lambda: None

    def hear(self, session: Session, called: Called) -> None:
        """Take one frame of one world."""
        world = session.worlds.get(called.execution_context_id)
        if called.name != BINDING or world is None:
            self._counts["unknown world"] += 1
            return
        if world.name not in self._setup.names.relays and world.name not in self.plugins:
            return  # another gateway's
        try:
            frame = decode(self._frame, called.payload)
            self._take(session, world, frame)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            self._counts["bad frame"] += 1

    def _take(self, session: Session, world: World, frame: Frame) -> None:
        params = frame.params or msgspec.Raw(b"{}")
        if frame.method == "open":
            self._open(session, world, msgspec.json.decode(params, type=Opening))
            return
        inside = self._rooms.of(world)
        if inside is None:
            self._counts["no room"] += 1
        elif frame.method == "bye":
            self._bye(inside, msgspec.json.decode(params, type=Bye))
        elif frame.method == "wake":
            self._rooms.wake(inside, msgspec.json.decode(params, type=Wake))
        elif frame.method == "value" and inside.key:
            self.spawn(self._value(inside, msgspec.json.decode(params, type=Wanted)))
        else:
            self._rooms.carry(inside, frame)
            if frame.method == "tab.state":
                self.changed()

    def _open(self, session: Session, world: World, opening: Opening) -> None:
        frame, tab = world.aux_data.frame_id, session.tab
        if not tab.url(tab.target).startswith(WEB):
            return  # a page of the browser itself, or none yet
        body = self.plugins.get(world.name)
        if opening.key != (body.key if body is not None else ""):
            self._counts["wrong key"] += 1
            return
        is_top, origin = session.is_top(frame), plain(world.origin)
        room = Room(
            id=f"r{next(self._numbers)}",
            tab=tab.target,
            frame="0" if is_top else frame,
            document=world.unique_id,
            origin=origin,
            top=origin if is_top else tab.origin(tab.target),
            url=session.url(frame),
            title=opening.title[:TITLE],
            source=f"plugin:{body.name}@{body.hash}" if body is not None else "page",
            visible=opening.visible,
            frozen=opening.frozen,
        )
        if is_top and body is None:
            session.visible, session.title, session.why = opening.visible, opening.title[:TITLE], ""
        self._rooms.open(Inside(room, session, world, opening.key), opening)
        self.changed()

    def _bye(self, inside: Inside, bye: Bye) -> None:
        if bye.persisted:
            self._rooms.close(inside, "cached")
        elif bye.why == "replaced" and inside.key:
            self._rooms.close(inside, "replaced")
        # Else the document goes, and the browser says why.

    async def _value(self, inside: Inside, wanted: Wanted) -> None:
        read = await self._setup.read_value(inside.session, inside.frame, wanted.path)
        answer = read if isinstance(read, dict) else {"ok": False, "why": "it could not be read"}
        self._rooms.send(inside.room.id, "valued", {**answer, "id": wanted.id})
