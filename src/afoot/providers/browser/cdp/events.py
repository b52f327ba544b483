"""The CDP events and answers that are read, as structs; `decode_params` decodes one."""

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


def page_origin(origin: str) -> str:
    """An origin as a page would see it: "null" for one that is opaque."""
    return origin if "://" in origin and not origin.startswith("://") else "null"


def decode_params(kind: type[T], params: Raw) -> T:
    """Decode the params of an event, or an answer; raises msgspec.DecodeError."""
    return msgspec.json.decode(params, type=kind)
