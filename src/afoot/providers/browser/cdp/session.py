"""`CdpSession` holds the state of one attached tab or frame: its worlds, addresses, and end."""

from collections.abc import Iterator

from afoot.providers.browser.cdp.events import ExecutionContext, page_origin


class CdpSession:
    """The state of one attached target. The id of a tab is that of its page's target."""

    def __init__(self, session: str, target: str, parent: "CdpSession | None") -> None:
        self.id = session
        self.target = target
        self.parent = parent
        self.worlds: dict[int, ExecutionContext] = {}
        self.urls: dict[str, str] = {}  # by frame
        self.pending_url = ""  # the address that it loads, until its frames are known
        self.may_reload = False  # a new tab whose first document may have begun before our scripts were there
        self.leaving: dict[str, str] = {}  # by frame: why its document is about to go
        self.title = ""  # of a tab's document, from our relay: the browser reports it late
        self.is_crashed = False
        self.visible = False  # its tab is in front
        self.why = ""  # why no tool can run here

    @property
    def tab(self) -> "CdpSession":
        """The session of the tab that this target is in."""
        return self if self.parent is None else self.parent.tab

    def is_within(self, other: "CdpSession") -> bool:
        """Whether this is the other session, or that of a frame below it."""
        return self is other or (self.parent is not None and self.parent.is_within(other))

    def is_top(self, frame: str) -> bool:
        """Whether a frame is the top frame of a tab: it has the same id as its target."""
        return self.parent is None and frame == self.target

    def origin(self, frame: str) -> str:
        """The origin of a frame's document, as the browser reports it; "null" if it has none."""
        found = (one for one in self.worlds.values() if one.aux_data.frame_id == frame)
        main = next((one for one in found if one.aux_data.is_default), None)
        return page_origin(main.origin) if main is not None else "null"

    def url(self, frame: str) -> str:
        """The address of a frame's document."""
        return self.urls.get(frame) or (self.pending_url if frame == self.target else "")

    def worlds_named(self, *names: str) -> Iterator[ExecutionContext]:
        """The worlds with one of these names."""
        return (one for one in list(self.worlds.values()) if one.name in names)

    def has_world(self, frame: str, *names: str) -> bool:
        """Whether a frame has a world with one of these names."""
        return any(one.aux_data.frame_id == frame for one in self.worlds_named(*names))

    def clear_leaving(self, frame: str) -> None:
        """Note that a frame's document stays; parents are told too, since events may come to them first."""
        above: CdpSession | None = self
        while above is not None:
            above.leaving.pop(frame, None)
            above = above.parent

    def end_reason(self, frame: str) -> str:
        """Why the document of this frame has gone; "" if that is not known yet."""
        if self.is_crashed or self.tab.is_crashed:
            return "crashed"
        if known := self.leaving.get(frame) or self.leaving.get(self.target):
            return known
        return self.parent.end_reason(self.target) if self.parent is not None else ""
