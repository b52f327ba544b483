"""`CdpSession` holds the state of one attached tab or frame; the structs are the CDP events that it needs."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")

# By CDP's navigation type: why the old document goes. Navigations that are not listed keep the document.
NAVIGATION_REASONS = {
    "reload": "reloaded",
    "reloadBypassingCache": "reloaded",
    "restore": "navigated",
    "restoreWithPost": "navigated",
    "historyDifferentDocument": "navigated",
    "differentDocument": "navigated",
}


class TargetInfo(Struct, frozen=True, rename="camel"):
    """A target: a tab, or a frame with a process of its own."""

    target_id: str
    type: str = ""
    title: str = ""
    url: str = ""


class TargetInfoEvent(Struct, frozen=True, rename="camel"):
    """Target.targetCreated, Target.targetInfoChanged."""

    target_info: TargetInfo


class TargetDestroyedEvent(Struct, frozen=True, rename="camel"):
    """Target.targetDestroyed."""

    target_id: str


class AttachedToTargetEvent(Struct, frozen=True, rename="camel"):
    """Target.attachedToTarget: a session has begun."""

    session_id: str
    target_info: TargetInfo


class DetachedFromTargetEvent(Struct, frozen=True, rename="camel"):
    """Target.detachedFromTarget: a session has ended."""

    session_id: str


class AuxData(Struct, frozen=True, rename="camel"):
    """The frame of an execution context; `is_default` for the page's own world."""

    frame_id: str = ""
    is_default: bool = False


class ExecutionContext(Struct, frozen=True, rename="camel"):
    """An execution context (a world of one document). Its `unique_id` is never reused, its `id` may be."""

    id: int
    origin: str = ""
    name: str = ""
    unique_id: str = ""
    aux_data: AuxData = AuxData()


class ContextCreatedEvent(Struct, frozen=True, rename="camel"):
    """Runtime.executionContextCreated."""

    context: ExecutionContext


class ContextDestroyedEvent(Struct, frozen=True, rename="camel"):
    """Runtime.executionContextDestroyed."""

    execution_context_id: int


class BindingCalledEvent(Struct, frozen=True, rename="camel"):
    """Runtime.bindingCalled."""

    name: str
    payload: str
    execution_context_id: int


class PageFrame(Struct, frozen=True, rename="camel"):
    """A frame and the document in it."""

    id: str
    url: str = ""
    url_fragment: str = ""

    @property
    def address(self) -> str:
        """The whole address, with the fragment."""
        return self.url + self.url_fragment


class FrameNavigatedEvent(Struct, frozen=True, rename="camel"):
    """Page.frameNavigated: a frame has another document now."""

    frame: PageFrame
    type: str = ""


class NavigatedWithinDocumentEvent(Struct, frozen=True, rename="camel"):
    """Page.navigatedWithinDocument: the same document has another address (pushState)."""

    frame_id: str
    url: str = ""


class FrameStartedNavigatingEvent(Struct, frozen=True, rename="camel"):
    """Page.frameStartedNavigating."""

    frame_id: str
    navigation_type: str = ""


class FrameDetachedEvent(Struct, frozen=True, rename="camel"):
    """Page.frameDetached: removed, or moved to another process (swap)."""

    frame_id: str
    reason: str = ""


class FrameStoppedLoadingEvent(Struct, frozen=True, rename="camel"):
    """Page.frameStoppedLoading."""

    frame_id: str


class FrameTree(Struct, frozen=True, rename="camel"):
    """A frame and the frames in it."""

    frame: PageFrame
    child_frames: "list[FrameTree]" = []

    def all(self) -> list[PageFrame]:
        """Every frame of the tree."""
        return [self.frame, *(frame for child in self.child_frames for frame in child.all())]


class FrameTreeAnswer(Struct, frozen=True, rename="camel"):
    """The answer to Page.getFrameTree."""

    frame_tree: FrameTree


class VersionAnswer(Struct, frozen=True):
    """The answer to Browser.getVersion."""

    product: str = "a browser"


class IsolatedWorldAnswer(Struct, frozen=True, rename="camel"):
    """The answer to Page.createIsolatedWorld."""

    execution_context_id: int


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


def page_origin(origin: str) -> str:
    """An origin as a page would see it: "null" for one that is opaque."""
    return origin if "://" in origin and not origin.startswith("://") else "null"


def decode_params(kind: type[T], params: Raw) -> T:
    """Decode the params of an event, or an answer; raises msgspec.DecodeError."""
    return msgspec.json.decode(params, type=kind)
