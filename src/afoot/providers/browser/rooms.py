"""Browsers as the gateway knows them: profiles, their tabs, and the rooms in which tools live."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field

from afoot.providers.browser.carrier import Carrier
from afoot.providers.browser.offers import Draft
from afoot.wire.room import PageTool, Room, Tab

if TYPE_CHECKING:
    from afoot.providers.browser.runs import Errand


class OpenRoom(Struct, eq=False):
    """A room, the tools that can be run in it, and the runs that were sent to it."""

    profile: "Profile"
    room: Room
    number: int  # in the order in which rooms were opened
    is_ready: bool = True  # a plugin's is, when its probe says so
    why: str = ""
    tools: list[PageTool] = []  # as it told them
    drafts: dict[str, Draft] = {}  # those that can be offered, by key
    left_out: int = 0  # tools over the page's own limit
    runs: "dict[str, Errand]" = {}
    is_awaited: bool = False  # its browser came back without it; it may follow

    @property
    def tab(self) -> Tab:
        """The tab it is in, as far as its browser has told."""
        room = self.room
        return self.profile.tabs.get(room.tab) or Tab(room.tab, title=room.title, url=room.url)

    @property
    def key(self) -> str:
        """What people and models call its tab."""
        return self.profile.keys.get(self.room.tab, "")

    @property
    def can_run(self) -> bool:
        """Whether a tool can be run in it now."""
        return self.is_ready and self.profile.is_up and not self.is_awaited

    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """How near it is to what the person at the browser looks at; the highest is chosen."""
        tab = self.tab
        is_awake = not (tab.frozen or tab.discarded or self.room.frozen)
        in_front = tab.active and tab.focused
        return is_awake, in_front, tab.active, self.profile.used.get(tab.id, 0), self.number

    def hindrance(self) -> tuple[str, str]:
        """What slows or stops tools in it, and what to do; nothing if nothing does."""
        tab, named = self.tab, f"tab {self.key}"
        if not self.profile.is_up or self.is_awaited:
            return "the link to its browser is lost", "see that the browser runs; it connects by itself"
        if tab.discarded:
            return "its tab is discarded", f"open {named} again"
        if tab.frozen or self.room.frozen:
            return "its tab is frozen", f"bring {named} to the front"
        if not self.room.visible:
            return "its tab is hidden, so its timers run slowly", f"bring {named} to the front"
        return "", ""


class Profile(Struct, eq=False):
    """One profile of one browser, however often its link comes and goes."""

    id: str
    carrier: Carrier
    name: str = ""
    user_scripts: bool = True
    rooms: dict[str, OpenRoom] = {}
    tabs: dict[str, Tab] = {}
    keys: dict[str, str] = {}  # of tabs, by the browser's own id
    used: dict[str, int] = {}  # when a tab was last in front, in order
    is_up: bool = True
    until: float = 0.0  # so long a lost link may come back
    timer: asyncio.TimerHandle | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)  # it is back, or gone for good

    def calm(self) -> None:
        """Nothing is waited for any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Profiles:
    """All profiles; who asks for a tab by its key finds it whichever browser has it."""

    def __init__(self) -> None:
        self._known: dict[str, Profile] = {}
        self._given = 0  # keys of tabs
        self._seen = 0  # tabs that came to the front

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def get(self, profile_id: str) -> Profile | None:
        """A profile by its own id."""
        return self._known.get(profile_id)

    def add(self, profile: Profile) -> None:
        """One more."""
        self._known[profile.id] = profile

    def remove(self, profile: Profile) -> None:
        """One less."""
        self._known.pop(profile.id, None)

    def of(self, carrier: Carrier) -> Profile | None:
        """The profile that this carrier carries now, and while its link is up."""
        return next((one for one in self if one.carrier is carrier and one.is_up), None)

    def rooms(self) -> list[OpenRoom]:
        """Every room, in the order in which they were opened."""
        return sorted((room for one in self for room in one.rooms.values()), key=lambda room: room.number)

    def set_tabs(self, profile: Profile, tabs: list[Tab]) -> None:
        """The tabs that a browser has now. One keeps its key as long as it lives."""
        before, profile.tabs = profile.tabs, {tab.id: tab for tab in tabs}
        for tab in tabs:
            self.key(profile, tab.id)
            was = before.get(tab.id)
            if tab.active and (was is None or not was.active or tab.focused > was.focused):
                self._seen += 1
                profile.used[tab.id] = self._seen
        living = profile.tabs.keys() | {room.room.tab for room in profile.rooms.values()}
        for known in (profile.keys, profile.used):
            for gone in known.keys() - living:
                known.pop(gone)

    def key(self, profile: Profile, tab: str) -> str:
        """The key of a tab; a new one gets the next."""
        if tab not in profile.keys:
            self._given += 1
            profile.keys[tab] = f"t{self._given}"
        return profile.keys[tab]
