"""`Profiles` holds every browser profile that the gateway knows, with its tabs and open page contexts.

A page context is one document in which tools can run: a page's own tools, or the isolated world of a plugin.
A carrier (the extension's WebSocket, or CDP) sends frames to a browser and passes its frames to a listener.
"""

import asyncio
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct, field

from afoot.errors import RunnerDied
from afoot.providers.browser.tools.draft import ToolDraft
from afoot.wire.browser_data import PageContext, PageTool, Tab
from afoot.wire.extension import (
    FromBrowser,
    LinkHello,
    LinkWelcome,
    RunLog,
    RunProgress,
    RunResult,
    RunWaiting,
    ToBrowser,
)

RunFrame = RunProgress | RunWaiting | RunLog | RunResult


class Carrier(Protocol):
    """The connection to one browser profile. It identifies the profile; a frame cannot claim another one."""

    @property
    def name(self) -> str:
        """The browser's name, for people: "chrome (work)", "cdp"."""
        ...

    def send(self, message: ToBrowser) -> bool:
        """Send a frame, never waiting; False if the browser cannot be reached now."""
        ...


class BrowserListener(Protocol):
    """Receives the frames of all browsers. Carriers call it on the engine's loop."""

    def on_connect(self, carrier: Carrier, hello: LinkHello) -> LinkWelcome:
        """Take in a browser that has connected, for the first time or again; returns its welcome."""
        ...

    def on_frame(self, carrier: Carrier, message: FromBrowser) -> None:
        """Handle one frame; a frame that may not be believed is counted, and changes nothing (B7)."""
        ...

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """Note that a browser is gone; its runs end if it is not back within `grace_s`."""
        ...


class ContextRun(Protocol):
    """A run in a page context, as the listener sees it (`page_run.PageRun`)."""

    @property
    def id(self) -> str:
        """The run's id, which only its own page context knows."""
        ...

    @property
    def call_id(self) -> str:
        """The id of the call to which the run belongs."""
        ...

    def on_frame(self, frame: RunFrame) -> None:
        """Handle a frame that came from the run's own page context."""
        ...

    def fail(self, error: RunnerDied) -> None:
        """End the run with this error, unless it has ended."""
        ...

    def resume(self) -> None:
        """Go on after a lost link: the browser is back, and still has the run."""
        ...

    def check_impediment(self) -> None:
        """Report what slows or stops the run now, if that has changed."""
        ...


class OpenContext(Struct, eq=False):
    """A page context that is open: the tools it has, and the runs that were sent to it."""

    profile: "Profile"
    info: PageContext
    number: int  # counts page contexts in the order of their opening
    is_ready: bool = True  # a plugin's context is ready when its probe says so
    why: str = ""  # why it is not ready
    tools: list[PageTool] = []  # as the page listed them
    drafts: dict[str, ToolDraft] = {}  # those that can be offered, by key
    left_out: int = 0  # number of tools over the page's own limit
    runs: dict[str, ContextRun] = {}
    is_awaited: bool = False  # its browser came back without it, but may still announce it

    @property
    def tab(self) -> Tab:
        """The tab of this context, as far as its browser has described it."""
        info = self.info
        return self.profile.tabs.get(info.tab) or Tab(info.tab, title=info.title, url=info.url)

    @property
    def key(self) -> str:
        """The key of its tab, such as t3, by which people and models name it."""
        return self.profile.keys.get(self.info.tab, "")

    @property
    def can_run(self) -> bool:
        """Whether a tool can run in it now."""
        return self.is_ready and self.profile.is_up and not self.is_awaited

    def rank(self) -> tuple[bool, bool, bool, int, int]:
        """Sort key: the context nearest to what the person at the browser looks at is the highest."""
        tab = self.tab
        is_awake = not (tab.frozen or tab.discarded or self.info.frozen)
        in_front = tab.active and tab.focused
        return is_awake, in_front, tab.active, self.profile.used.get(tab.id, 0), self.number

    def impediment(self) -> tuple[str, str]:
        """Why tools are slow or stopped in it, and what to do; two empty texts if nothing impedes them."""
        tab, named = self.tab, f"tab {self.key}"
        if not self.profile.is_up or self.is_awaited:
            return "the link to its browser is lost", "see that the browser runs; it connects by itself"
        if tab.discarded:
            return "its tab is discarded", f"open {named} again"
        if tab.frozen or self.info.frozen:
            return "its tab is frozen", f"bring {named} to the front"
        if not self.info.visible:
            return "its tab is hidden, so its timers run slowly", f"bring {named} to the front"
        return "", ""


class Profile(Struct, eq=False):
    """One profile of one browser. It stays the same object while its link comes and goes."""

    id: str
    carrier: Carrier
    name: str = ""
    user_scripts: bool = True
    contexts: dict[str, OpenContext] = {}
    tabs: dict[str, Tab] = {}
    keys: dict[str, str] = {}  # keys of tabs, by the browser's own tab id
    used: dict[str, int] = {}  # by tab id; the tab that was in front last has the highest number
    is_up: bool = True
    until: float = 0.0  # end of the grace in which a lost link may come back
    timer: asyncio.TimerHandle | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # set when it is back, or gone for good

    def cancel_timer(self) -> None:
        """Stop waiting for a lost link or for missing page contexts."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class Profiles:
    """All profiles. Keys of tabs are unique over all browsers."""

    def __init__(self) -> None:
        self._known: dict[str, Profile] = {}
        self._last_key = 0
        self._last_used = 0

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def get(self, profile_id: str) -> Profile | None:
        """Find a profile by its id."""
        return self._known.get(profile_id)

    def add(self, profile: Profile) -> None:
        """Add a profile."""
        self._known[profile.id] = profile

    def remove(self, profile: Profile) -> None:
        """Remove a profile; one that is not there is ignored."""
        self._known.pop(profile.id, None)

    def of_carrier(self, carrier: Carrier) -> Profile | None:
        """Find the profile that this carrier reaches; None while its link is down."""
        return next((one for one in self if one.carrier is carrier and one.is_up), None)

    def contexts(self) -> list[OpenContext]:
        """Every open page context, in the order of their opening."""
        return sorted(
            (context for one in self for context in one.contexts.values()), key=lambda context: context.number
        )

    def set_tabs(self, profile: Profile, tabs: list[Tab]) -> None:
        """Replace the tabs of a browser. A tab keeps its key as long as it is open."""
        before = profile.tabs
        profile.tabs = {tab.id: tab for tab in tabs}
        for tab in tabs:
            self.key(profile, tab.id)
            was = before.get(tab.id)
            if tab.active and (was is None or not was.active or tab.focused > was.focused):
                self._last_used += 1
                profile.used[tab.id] = self._last_used
        living = profile.tabs.keys() | {context.info.tab for context in profile.contexts.values()}
        for known in (profile.keys, profile.used):
            for gone in known.keys() - living:
                known.pop(gone)

    def key(self, profile: Profile, tab: str) -> str:
        """The key of a tab; a new tab gets the next free key."""
        if tab not in profile.keys:
            self._last_key += 1
            profile.keys[tab] = f"t{self._last_key}"
        return profile.keys[tab]
