"""What a browser tells over the DevTools protocol, as far as we listen."""

from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")


class Info(Struct, frozen=True, rename="camel"):
    """A target: a tab, or a frame in a process of its own."""

    target_id: str
    type: str = ""
    title: str = ""
    url: str = ""


class InfoChanged(Struct, frozen=True, rename="camel"):
    """Target.targetCreated, Target.targetInfoChanged."""

    target_info: Info


class Destroyed(Struct, frozen=True, rename="camel"):
    """Target.targetDestroyed."""

    target_id: str


class Attached(Struct, frozen=True, rename="camel"):
    """Target.attachedToTarget: a session has begun."""

    session_id: str
    target_info: Info


class Detached(Struct, frozen=True, rename="camel"):
    """Target.detachedFromTarget: a session has ended."""

    session_id: str


class Place(Struct, frozen=True, rename="camel"):
    """Where a world is."""

    frame_id: str = ""
    is_default: bool = False


class World(Struct, frozen=True, rename="camel"):
    """An execution context. Its `unique_id` is never given twice, its `id` is."""

    id: int
    origin: str = ""
    name: str = ""
    unique_id: str = ""
    aux_data: Place = Place()


class WorldMade(Struct, frozen=True, rename="camel"):
    """Runtime.executionContextCreated."""

    context: World


class WorldGone(Struct, frozen=True, rename="camel"):
    """Runtime.executionContextDestroyed."""

    execution_context_id: int


class Called(Struct, frozen=True, rename="camel"):
    """Runtime.bindingCalled."""

    name: str
    payload: str
    execution_context_id: int


class Frame(Struct, frozen=True, rename="camel"):
    """A frame and the document in it."""

    id: str
    url: str = ""
    url_fragment: str = ""

    @property
    def address(self) -> str:
        """All of its address."""
        return self.url + self.url_fragment


class Navigated(Struct, frozen=True, rename="camel"):
    """Page.frameNavigated: a frame has another document now."""

    frame: Frame
    type: str = ""


class NavigatedWithin(Struct, frozen=True, rename="camel"):
    """Page.navigatedWithinDocument: the same document has another address (pushState)."""

    frame_id: str
    url: str = ""


class Navigating(Struct, frozen=True, rename="camel"):
    """Page.frameStartedNavigating."""

    frame_id: str
    navigation_type: str = ""


class FrameGone(Struct, frozen=True, rename="camel"):
    """Page.frameDetached: removed, or moved to another process (swap)."""

    frame_id: str
    reason: str = ""


class Rested(Struct, frozen=True, rename="camel"):
    """Page.frameStoppedLoading."""

    frame_id: str


class Tree(Struct, frozen=True, rename="camel"):
    """A frame and those in it."""

    frame: Frame
    child_frames: "list[Tree]" = []

    def all(self) -> list[Frame]:
        """Every frame of it."""
        return [self.frame, *(frame for child in self.child_frames for frame in child.all())]


class FrameTree(Struct, frozen=True, rename="camel"):
    """The answer to Page.getFrameTree."""

    frame_tree: Tree


class Version(Struct, frozen=True):
    """The answer to Browser.getVersion."""

    product: str = "a browser"


class NewWorld(Struct, frozen=True, rename="camel"):
    """The answer to Page.createIsolatedWorld."""

    execution_context_id: int


def read(kind: type[T], params: Raw) -> T:
    """Params as they should be; raises msgspec.DecodeError."""
    return msgspec.json.decode(params, type=kind)
