"""Events of a handshake-era stream that say where in their call they stand: it can be resumed (H2)."""

from collections.abc import Callable, Sequence

from afoot.serve.conversation import Conversation
from afoot.serve.http import Reply
from afoot.serve.site import Site
from afoot.wire import sse
from afoot.wire.mcp_2025 import LATEST
from afoot.wire.place import Place

RETRY_MS = 1000  # after which a client that lost its stream is to come back


class Numbered:
    """An outlet on HTTP whose events carry the number of the fact that they tell of."""

    def __init__(self, site: Site, reply: Reply, version: str) -> None:
        self._site = site
        self._reply = reply
        self._primes = version == LATEST  # older clients take an event without data for a broken one
        self._talk: Conversation | None = None
        self._place: Place | None = None
        self._is_left = False
        self._marks: list[tuple[int, int]] = []  # after how many frames, which fact

    def begin(self, talk: Conversation) -> None:
        """This request reads its call here."""
        epoch, want = self._site.engine.journal.epoch, talk.want
        seq = talk.after or 0
        self._place = Place(epoch, talk.live.call.id, seq, want.id, want.token, want.partial)
        self._talk, talk.mark = talk, self.mark
        if not self._primes:  # the first event, if it is no fact itself, says where the stream begins
            self.mark(1, self._place.seq)

    def mark(self, frames: int, seq: int) -> None:
        """So many frames, the last of which tells of this fact, or comes behind it."""
        if frames:  # else it is no event
            self._marks.append((frames, seq))

    def leave(self) -> None:
        """Another stream takes over."""
        self._is_left = True

    @property
    def gone(self) -> bool:
        return self._is_left or self._reply.gone

    @property
    def streaming(self) -> bool:
        return self._reply.streaming

    def watch(self, ring: Callable[[], object]) -> None:
        self._reply.watch(ring)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send frames as events, each with its number if it has one."""
        await self._reply.send((), raw=self._primer() + self._events(frames))

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last frame."""
        if self.gone or not (self._reply.streaming or frames):
            await self._reply.finish(frames, last)
            return
        whole = frames if last is None else [*frames, last]
        if last is not None and self._talk is not None:
            self.mark(len(whole), self._talk.live.recorded)
        raw = self._primer() + self._events(whole)
        await self._reply.send((), raw=raw or sse.comment("over"), more=False)

    async def keep_alive(self) -> None:
        """A comment; the first one tells where the stream begins."""
        await self._reply.send((), raw=self._primer() + sse.comment("alive"))

    def _primer(self) -> bytes:
        """An event of nothing, so that a reader that loses the stream early can come back."""
        if not self._primes or self._reply.streaming or self._place is None:
            return b""
        return f"id: {self._place.at(self._place.seq)}\nretry: {RETRY_MS}\ndata: \n\n".encode()

    def _events(self, frames: Sequence[bytes]) -> bytes:
        numbers = dict(self._marks)  # of several at one place, the last counts
        self._marks.clear()
        place = self._place
        return b"".join(
            sse.frame(frame, "message", "" if place is None or at not in numbers else place.at(numbers[at]))
            for at, frame in enumerate(frames, 1)
        )
