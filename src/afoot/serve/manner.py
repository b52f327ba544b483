"""What a conversation needs of its transport and of its era, as Protocols."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from afoot.core.facts import Answered, Question

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation


class Outlet(Protocol):
    """Where the frames of one request go. `gone`: nobody is there any more; `streaming`: frames can flow."""

    @property
    def gone(self) -> bool: ...

    @property
    def streaming(self) -> bool: ...

    async def send(self, frames: Sequence[bytes]) -> None: ...

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None: ...

    async def keep_alive(self) -> None: ...

    def watch(self, ring: Callable[[], object]) -> None: ...


class Manner(Protocol):
    """How an era asks its caller and takes its leaving; `capped`: a large result cannot go on a stream."""

    capped: bool
    modern: bool
    version: str  # of the protocol

    def ask(self, talk: "Conversation", asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Frames that ask, and the last frame if asking ends this request."""
        ...

    def postpone(self, talk: "Conversation") -> bytes:
        """The last frame in place of a result that is too large for the stream."""
        ...

    def part(self, talk: "Conversation") -> bytes:
        """The last frame for a caller that cannot wait longer; its call runs on (H5)."""
        ...

    def settled(self, talk: "Conversation", fact: Answered) -> list[bytes]:
        """Frames for a question that was answered."""
        ...

    def over(self, talk: "Conversation") -> list[bytes]:
        """Frames for the questions that nobody needs answered by this caller any more."""
        ...

    def left(self, talk: "Conversation") -> None:
        """The caller went away before the last frame."""
        ...
