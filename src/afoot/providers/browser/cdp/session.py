"""One attached tab or frame: its frames, their worlds, and why they are about to go."""

from collections.abc import Iterator

from afoot.providers.browser.cdp.events import World

# What the browser calls a navigation, and what it is for a document that goes by it; it stays in all others.
WHY = {
    "reload": "reloaded",
    "reloadBypassingCache": "reloaded",
    "restore": "navigated",
    "restoreWithPost": "navigated",
    "historyDifferentDocument": "navigated",
    "differentDocument": "navigated",
}


class Session:
    """What is known of a target that we are attached to; a tab's id is that of its page's target."""

    def __init__(self, session: str, target: str, parent: "Session | None") -> None:
        self.id, self.target, self.parent = session, target, parent
        self.worlds: dict[int, World] = {}
        self.urls: dict[str, str] = {}  # by frame
        self.hint = ""  # where it is on the way to, until we know where it is
        self.leaving: dict[str, str] = {}  # by frame: why its document is about to go
        self.title = ""  # of the document in a tab, as our relay sees it: the browser tells of it late
        self.is_crashed = False
        self.visible = False  # its tab is in front
        self.why = ""  # why nothing can run here

    @property
    def tab(self) -> "Session":
        """The session of the page that this is in."""
        return self if self.parent is None else self.parent.tab

    def is_within(self, other: "Session") -> bool:
        """Whether it is that one, or of a frame below it."""
        return self is other or (self.parent is not None and self.parent.is_within(other))

    def is_top(self, frame: str) -> bool:
        """Whether a frame is the tab itself: a page's frame has the id of its target."""
        return self.parent is None and frame == self.target

    def origin(self, frame: str) -> str:
        """The origin of a frame's document, as the browser has it; "null" where it has none."""
        found = (one for one in self.worlds.values() if one.aux_data.frame_id == frame)
        main = next((one for one in found if one.aux_data.is_default), None)
        return plain(main.origin) if main is not None else "null"

    def url(self, frame: str) -> str:
        """The address of a frame's document."""
        return self.urls.get(frame) or (self.hint if frame == self.target else "")

    def named(self, *names: str) -> Iterator[World]:
        """The worlds with one of these names."""
        return (one for one in list(self.worlds.values()) if one.name in names)

    def has(self, frame: str, *names: str) -> bool:
        """Whether a frame has a world with one of these names."""
        return any(one.aux_data.frame_id == frame for one in self.named(*names))

    def stay(self, frame: str) -> None:
        """A frame has the document that it wanted: nothing is about to go. A parent may have heard first."""
        above: Session | None = self
        while above is not None:
            above.leaving.pop(frame, None)
            above = above.parent

    def reason(self, frame: str) -> str:
        """Why a document of this frame has gone, if that is known by now."""
        if self.is_crashed or self.tab.is_crashed:
            return "crashed"
        if known := self.leaving.get(frame) or self.leaving.get(self.target):
            return known
        return self.parent.reason(self.target) if self.parent is not None else ""


def plain(origin: str) -> str:
    """An origin as a page would see it."""
    return origin if "://" in origin and not origin.startswith("://") else "null"
