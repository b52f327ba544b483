"""The rooms of a browser reached by CDP: who is in which world, and the frames that go in and out (B7)."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING
from afoot.providers.browser.cdp.connection import Connection
from afoot.providers.browser.cdp.events import World
from afoot.providers.browser.cdp.scripts import receive
from afoot.providers.browser.cdp.session import Session
from afoot.wire import link
from afoot.wire.room import Room, Running

TITLE = 300
TIMERS = 1000  # that one room may have open; what is over is dropped
LONGEST_MS = 3_600_000.0
# What a room may say that goes on to the gateway; all else is between it and us.
CARRIED = frozenset(
    ("tab.tools", "tab.ready", "tab.state", "tool.progress", "tool.asking", "tool.log", "tool.result")
)
Tell = Callable[[link.FromBrowser], None]


class Frame(Struct, frozen=True):
    """What a world says."""

    method: str
    params: Raw = NOTHING


class Kept(Struct, frozen=True):
    """A run that a world knows."""

    run: str
    seq: int = 0


class Opening(Struct, frozen=True):
    """`open`: the first frame of a world, whenever somebody new listens."""

    title: str = ""
    visible: bool = True
    frozen: bool = False
    key: str = ""
    running: list[Kept] = []


class Bye(Struct, frozen=True):
    """`bye`: the document is about to go, or into the back/forward cache; `why` a plugin ends."""

    persisted: bool = False
    why: str = ""


class Wake(Struct, frozen=True):
    """`wake`: a timer that runs in hidden pages, too."""

    id: Any
    ms: float


class Inside(Struct):
    """A world that has opened a room."""

    room: Room
    session: Session
    world: World
    key: str = ""  # a plugin's
    timers: int = 0

    @property
    def frame(self) -> str:
        """The frame it is in."""
        return self.world.aux_data.frame_id


class Rooms:
    """Rooms by their ids and by their worlds. A room is what the browser says of it, never what it says."""

    def __init__(self, connection: Connection, tell: Tell, counts: Counter[str]) -> None:
        self._connection, self._tell, self._counts = connection, tell, counts
        self._by_id: dict[str, Inside] = {}
        self._by_world: dict[str, Inside] = {}

    def all(self) -> list[Inside]:
        """Every room that is open."""
        return list(self._by_id.values())

    def within(self, session: Session) -> list[Inside]:
        """Every room of one session."""
        return [one for one in self.all() if one.session is session]

    def of(self, world: World) -> Inside | None:
        """The room of a world."""
        return self._by_world.get(world.unique_id)

    def open(self, inside: Inside, opening: Opening) -> None:
        """A room is there, for the first time or again."""
        before = self._by_world.get(inside.world.unique_id)
        if before is not None:
            inside.room = msgspec.structs.replace(inside.room, id=before.room.id)
        room = inside.room
        self._by_id[room.id] = self._by_world[inside.world.unique_id] = inside
        running = [Running(one.run, room.id, one.seq) for one in opening.running]
        self._tell(link.RoomOpened(room, running))

    def carry(self, inside: Inside, frame: Frame) -> None:
        """Pass a frame on, with the room it came from."""
        if frame.method not in CARRIED:
            self._counts["unknown method"] += 1
            return
        try:
            message = link.read(_placed(frame, inside.room.id))
        except link.BadFrame:
            self._counts["bad frame"] += 1
            return
        if isinstance(message, link.RoomState):
            message = self._stated(inside, message)
        self._tell(message)

    def _stated(self, inside: Inside, said: link.RoomState) -> link.RoomState:
        """The address is the browser's."""
        session = inside.session
        title = said.title[:TITLE]
        if session.is_top(inside.frame) and not inside.key:
            session.visible, session.title = said.visible, title
        url = session.url(inside.frame) or inside.room.url
        return msgspec.structs.replace(said, url=url, title=title)

    def send(self, room: str, method: str, params: object) -> bool:
        """Hand a frame to a room; False if it is not there."""
        inside = self._by_id.get(room)
        if inside is None:
            return False
        return self.post(inside.session, inside.world, method, params)

    def post(self, session: Session, world: World, method: str, params: object) -> bool:
        """Hand a frame to a world. The unique id: another document's world may have the same number."""
        frame = msgspec.json.encode({"method": method, "params": params})
        command = {"expression": receive(frame), "uniqueContextId": world.unique_id, "silent": True}
        return self._connection.post("Runtime.evaluate", command, session.id)

    def wake(self, inside: Inside, wake: Wake) -> None:
        """Tick for a page whose own timers may run once a minute."""
        if inside.timers >= TIMERS:
            self._counts["too many timers"] += 1
            return
        inside.timers += 1
        delay_s = min(max(wake.ms, 0.0), LONGEST_MS) / 1000
        asyncio.get_running_loop().call_later(delay_s, self._woken, inside, wake.id)

    def _woken(self, inside: Inside, number: object) -> None:
        inside.timers -= 1
        if self._by_id.get(inside.room.id) is inside:
            self.send(inside.room.id, "woken", {"id": number})

    def close(self, inside: Inside, why: str) -> None:
        """A room is there no more."""
        if self._by_id.pop(inside.room.id, None) is None:
            return
        if self._by_world.get(inside.world.unique_id) is inside:
            del self._by_world[inside.world.unique_id]
        self._tell(link.RoomGone(inside.room.id, why))


def _placed(frame: Frame, room: str) -> bytes:
    """The frame with its room, which stands last and so wins over one that it may claim."""
    params = bytes(frame.params).strip() or b"{}"
    if not params.startswith(b"{"):
        raise link.BadFrame("params are no object")
    inner = params[1:-1].strip()
    inner += b"," if inner else b""
    method = msgspec.json.encode(frame.method)
    return b'{"method":%s,"params":{%s"room":%s}}' % (method, inner, msgspec.json.encode(room))
