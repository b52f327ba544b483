"""The gateway's end of its socket: children and the keeper call in, say who they are, and are listened to."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol, cast

from afoot.providers.isolated.frames import (
    MOST,
    Frame,
    Frames,
    FromChild,
    FromKeeper,
    Garbage,
    Hello,
    Read,
    Up,
    frame,
)

GULP_S: Final = 0.005  # how long a flood of readings is left to gather
_log = logging.getLogger("afoot.providers")


class Ear(Protocol):
    """Who listens to one end."""

    def hear(self, said: Frame) -> None: ...

    def lost(self, why: str, *, is_garbage: bool) -> None: ...


class Line(asyncio.Protocol):
    """One connection. What is no frame ends it, and nothing else."""

    def __init__(self, greet: "Callable[[Line, Hello | Up], Ear | None]") -> None:
        self._greet = greet
        self._ear: Ear | None = None
        self._frames: Frames[FromChild | FromKeeper] = Frames(Hello | Up, MOST)
        self._transport: asyncio.Transport | None = None
        self._heard_at = 0.0

    @property
    def is_closing(self) -> bool:
        """Whether nothing that is sent leaves any more, though its ear may not know yet."""
        return self._transport is not None and self._transport.is_closing()

    def send(self, said: Frame) -> None:
        """Send, now or when the other side takes it; it never waits."""
        if self._transport is not None and not self.is_closing:
            self._transport.write(frame(said))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class

    def data_received(self, data: bytes) -> None:
        said: Frame | None = None
        try:
            for said in self._frames.feed(data):
                self._hear(said)
        except Garbage as error:
            self._lose(f"garbage on its pipe: {error}", is_garbage=True)
            self.close()
        if type(said) is Read:
            self._gulp()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose("it closed its pipe", is_garbage=False)

    def _hear(self, said: Frame) -> None:
        if self._ear is not None:
            try:
                self._ear.hear(said)
            except Exception:  # one that cannot be taken must not take the others with it
                _log.exception("a frame of a child process could not be taken")
        elif not isinstance(said, Hello | Up) or (ear := self._greet(self, said)) is None:
            self.close()
        else:
            self._ear = ear
            self._frames.expect(FromChild if isinstance(said, Hello) else FromKeeper)

    def _lose(self, why: str, *, is_garbage: bool) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.lost(why, is_garbage=is_garbage)

    def _gulp(self) -> None:
        """Waking for each reading of a flood would cost everybody else; what is full drops the older ones."""
        loop = asyncio.get_running_loop()
        before, self._heard_at = self._heard_at, loop.time()
        if self._heard_at - before < GULP_S and self._transport and not self._transport.is_closing():
            self._transport.pause_reading()
            loop.call_later(GULP_S, self._resume)

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
