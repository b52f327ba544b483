"""What browsers say, and whether it may be believed: rooms open and close, links come and go (B6, B7)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex

from msgspec.structs import replace

from afoot.errors import RunnerDied
from afoot.providers.browser import deaths
from afoot.providers.browser.carrier import Carrier
from afoot.providers.browser.rooms import OpenRoom, Profile, Profiles
from afoot.providers.browser.sources import is_plugin
from afoot.wire.link import (
    Asking,
    Cancel,
    Ended,
    FromBrowser,
    Hello,
    Progressed,
    RoomGone,
    RoomOpened,
    RoomReady,
    RoomState,
    RoomTools,
    Said,
    Settled,
    TabList,
    Welcome,
)
from afoot.wire.room import Body, Room, Running

TOOLS = 1000  # of one room that are looked at
OVER = 1000  # runs whose end is remembered
UNKNOWN = "the gateway does not know this run"

Took = Callable[[OpenRoom], None]
OfRoom = RoomTools | RoomReady | RoomState | RoomGone
OfRun = Progressed | Asking | Said | Ended


class Hearing:
    """Hears every browser. `changed` is told when other tools may be offered, `took` of a room's tools."""

    def __init__(self, profiles: Profiles, changed: Callable[[], None], took: Took) -> None:
        self.counted: Counter[str] = Counter()  # what was dropped, and why
        self.grace_s = 5.0  # for rooms that do not come back with their browser
        self.bodies: list[Body] = []  # the plugins that browsers are to run
        self._profiles, self._changed, self._took = profiles, changed, took
        self._epoch = token_hex(8)
        self._numbers = count(1)
        self._over: dict[str, tuple[Profile, str]] = {}  # where runs were that have ended

    def count(self, what: str, times: int = 1) -> None:
        """Something was dropped or repaired."""
        self.counted[what] += times

    def joined(self, carrier: Carrier, hello: Hello) -> Welcome:
        """A browser is there. Runs that it and we know go on; any other ends, there or here."""
        profile = self._profiles.get(hello.profile)
        if profile is None:
            profile = Profile(hello.profile, carrier)
            self._profiles.add(profile)
        profile.carrier, profile.is_up = carrier, True
        profile.name, profile.user_scripts = hello.label or carrier.name, hello.user_scripts
        listed = {room.id for room in hello.rooms}
        for room in profile.rooms.values():
            room.is_awaited = room.room.id not in listed
        strange = {run for room in hello.rooms for run in self._enter(profile, room, hello.running)}
        for one in hello.running:
            room = profile.rooms.get(one.room)
            if room is None or one.run not in room.runs:
                strange.add(one.run)
        keep = [one.run for one in hello.running if one.run not in strange]
        self._profiles.set_tabs(profile, hello.tabs)
        self._await_rest(profile)
        _tell(profile)
        self._look(profile)
        self._changed()
        return Welcome(self._epoch, keep, sorted(strange), self.bodies)

    def left(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """A browser cannot be reached. It has its grace to come back, then its runs die."""
        profile = self._profiles.of(carrier)
        if profile is None:
            return
        profile.is_up = False
        profile.calm()
        loop = asyncio.get_running_loop()
        profile.until = loop.time() + grace_s
        if grace_s > 0:
            profile.timer = loop.call_at(profile.until, self._lost, profile, grace_s)
            self._look(profile)
            self._changed()
        else:
            self._lost(profile, grace_s)

    def told(self, carrier: Carrier, message: FromBrowser) -> None:
        """A browser says something; what may not be believed is counted, and changes nothing."""
        profile = self._profiles.of(carrier)
        if profile is None:
            self.count("frames of a link that is not open")
            return
        match message:
            case RoomOpened():
                for run in self._enter(profile, message.room, message.running):
                    profile.carrier.send(Cancel(message.room.id, run, UNKNOWN))
                self._changed()
            case TabList():
                self._profiles.set_tabs(profile, message.tabs)
                self._look(profile)
            case RoomTools() | RoomReady() | RoomState() | RoomGone():
                room = profile.rooms.get(message.room)
                if room is None:
                    self.count("frames about a room that is not open")
                else:
                    self._of_room(room, message)
            case Progressed() | Asking() | Said() | Ended():
                self._of_run(profile, message)
            case _:
                pass  # not about tools

    def close(self) -> None:
        """The gateway ends: nothing is waited for any more."""
        for profile in self._profiles:
            profile.calm()

    def _enter(self, profile: Profile, room: Room, running: Iterable[Running]) -> list[str]:
        """A room is there, for the first time or again; gives the runs in it that nobody waits for."""
        known = profile.rooms.get(room.id)
        if known is not None and room.document != known.room.document:
            self._remove(known, "reloaded")
            known = None
        if known is None:
            known = OpenRoom(profile, room, next(self._numbers), is_ready=not is_plugin(room))
            profile.rooms[room.id] = known
        was_awaited, known.is_awaited, known.room = known.is_awaited, False, room
        self._profiles.key(profile, room.tab)
        listed = [one.run for one in running if one.room == room.id]
        strange = [run for run in listed if run not in known.runs]
        for errand in list(known.runs.values()):
            if errand.id in listed:
                errand.returned()
            else:
                errand.die(deaths.ended_there(known))
                strange.append(errand.id)  # in case it is only starting there
        if was_awaited:
            _tell(profile)
        return strange

    def _of_room(self, room: OpenRoom, message: OfRoom) -> None:
        match message:
            case RoomTools():
                room.tools, room.left_out = message.tools[:TOOLS], max(0, message.left_out)
                room.left_out += max(0, len(message.tools) - TOOLS)
                self._took(room)
            case RoomReady():
                room.is_ready, room.why = message.ready, "" if message.ready else message.why
            case RoomState():
                told = {"url": message.url or room.room.url, "title": message.title or room.room.title}
                room.room = replace(room.room, visible=message.visible, frozen=message.frozen, **told)
                for errand in room.runs.values():
                    errand.look()
                return
            case RoomGone():
                self._remove(room, message.why)
        self._changed()

    def _of_run(self, profile: Profile, frame: OfRun) -> None:
        """What a room says of a run counts only from the room that it was sent to, while it is open (B7)."""
        room = profile.rooms.get(frame.room)
        errand = room.runs.get(frame.run) if room is not None else None
        if errand is None:
            self._doubt(profile, frame)
            return
        errand.tape("in", frame)
        match frame:
            case Progressed():
                errand.progressed(frame)
            case Asking():
                errand.asking(frame)
            case Said():
                errand.said(frame)
            case Ended():
                errand.ended(frame)
                self._over[frame.run] = profile, frame.room
                if len(self._over) > OVER:
                    del self._over[next(iter(self._over))]
                profile.carrier.send(Settled(frame.room, frame.run))

    def _doubt(self, profile: Profile, frame: OfRun) -> None:
        """Why a frame does not count. An end is told until it is settled: then that is said again."""
        place = self._over.get(frame.run)
        if place is not None and place[0] is profile and place[1] == frame.room:
            if isinstance(frame, Ended):
                profile.carrier.send(Settled(frame.room, frame.run))
            else:
                self.count("frames after the end of a run")
        elif place is not None or any(frame.run in room.runs for room in self._profiles.rooms()):
            self.count("frames of a room that the run was not sent to")
        else:
            self.count("frames about an unknown run")

    def _remove(self, room: OpenRoom, why: str) -> None:
        room.profile.rooms.pop(room.room.id, None)
        _end(room, deaths.gone(room, why))

    def _lost(self, profile: Profile, grace_s: float) -> None:
        """A browser did not come back in time."""
        profile.calm()
        self._profiles.remove(profile)
        rooms = list(profile.rooms.values())
        profile.rooms.clear()
        for room in rooms:
            _end(room, deaths.link_lost(room, grace_s))
        _tell(profile)
        self._changed()

    def _await_rest(self, profile: Profile) -> None:
        """Rooms that a browser came back without have the rest of its grace to follow."""
        profile.calm()
        if any(room.is_awaited for room in profile.rooms.values()):
            loop = asyncio.get_running_loop()
            until = profile.until if profile.until > loop.time() else loop.time() + self.grace_s
            profile.timer = loop.call_at(until, self._forget, profile)

    def _forget(self, profile: Profile) -> None:
        profile.timer = None
        for room in [room for room in profile.rooms.values() if room.is_awaited]:
            self._remove(room, "lost")
        _tell(profile)
        self._changed()

    def _look(self, profile: Profile) -> None:
        for room in profile.rooms.values():
            for errand in room.runs.values():
                errand.look()


def _end(room: OpenRoom, how: RunnerDied) -> None:
    for errand in list(room.runs.values()):
        errand.die(how)


def _tell(profile: Profile) -> None:
    """Whoever waits for this browser looks again."""
    news, profile.news = profile.news, asyncio.Event()
    news.set()
