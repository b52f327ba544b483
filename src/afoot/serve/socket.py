"""A WebSocket in one task: what comes is heard as it comes, what goes waits in a queue that has a bound."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from afoot.core.ports import Clock
from afoot.engine.bell import Bell
from afoot.serve.asgi import Message, Receive, Send

FAILED, FULL = 1011, 4413
MOST_FRAMES = 10_000
MOST_BYTES = 64 * 1024 * 1024
A_SECOND = 5000  # frames that are read; the rest waits in the browser
AT_ONCE = 64  # frames that are read before anybody else has a turn

log = logging.getLogger("afoot.serve")


class Socket:
    """One accepted WebSocket; `hear` gets each text that comes, on the engine's loop."""

    def __init__(self, receive: Receive, send: Send, clock: Clock, hear: Callable[[str], None]) -> None:
        self._send = send
        self._clock = clock
        self._hear = hear
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._reader = Reader(receive, self._came, clock)
        self._farewell: Message | None = None
        self.bell = Bell()
        self.heard = clock.now()
        self.over = ""  # why there will be no more
        self.odd = 0  # what came and was no text

    def put(self, frame: bytes) -> bool:
        """Send a frame when its turn comes; False if the socket is over. Too much is the end of it."""
        if self.over:
            return False
        if len(self._waiting) >= MOST_FRAMES or self._size + len(frame) > MOST_BYTES:
            self.close(FULL, "the browser takes nothing any more")
            return False
        self._waiting.append(frame)
        self._size += len(frame)
        self.bell.ring()
        return True

    def close(self, code: int, why: str) -> None:
        """Say why, and end."""
        if not self.over:
            self.over = why
            self._farewell = {"type": "websocket.close", "code": code, "reason": why}
            self.bell.ring()

    def listen(self) -> None:
        """Begin to hear."""
        self._reader.step()

    async def turn(self, until: float, stuck_s: float) -> None:
        """Send what waits, then wait until something happens, or until then."""
        while self._waiting and not self.over:
            frame = self._waiting.popleft()
            self._size -= len(frame)
            await self._transmit({"type": "websocket.send", "text": frame.decode(errors="replace")}, stuck_s)
        if not self.over:
            timer = self._clock.at(until, self.bell.ring)
            await self.bell.wait()
            timer.cancel()

    def hush(self) -> None:
        """Hear no more."""
        self._reader.close()

    async def part(self, stuck_s: float) -> None:
        """Say farewell, if it was us who ended it."""
        if self._farewell is not None:
            await self._transmit(self._farewell, stuck_s)

    async def _transmit(self, message: Message, stuck_s: float) -> None:
        try:
            async with asyncio.timeout(stuck_s):
                await self._send(message)
        except TimeoutError:
            self.over = self.over or f"the browser took nothing for {stuck_s:g} s"
        except OSError:  # the browser has gone, which is heard as well
            self.over = self.over or "the connection broke"

    def _came(self, message: Message) -> None:
        if self.over:
            return
        if message["type"] != "websocket.receive":
            self.over = message.get("reason") or f"the browser closed the connection ({message.get('code')})"
            self.bell.ring()
            return
        self.heard = self._clock.now()
        text = message.get("text")
        if text is None:
            self.odd += 1
            return
        try:
            self._hear(text)
        except Exception:
            log.exception("a frame from a browser could not be taken in")
            self.close(FAILED, "the gateway failed")


class Reader:
    """Receives without a task of its own: the future that `receive` waits on calls back here."""

    def __init__(self, receive: Receive, hear: Callable[[Message], None], clock: Clock) -> None:
        self._receive = receive
        self._hear = hear
        self._clock = clock
        self._coroutine: Generator[Any, None, Message] | None = None
        self._is_closed = False
        self._began, self._count = 0.0, 0

    def close(self) -> None:
        """Receive no more."""
        self._is_closed = True
        coroutine, self._coroutine = self._coroutine, None
        if coroutine is not None:
            coroutine.close()

    def step(self, _: object = None) -> None:
        """Hear what is there, and wait for more."""
        for _turn in range(AT_ONCE):
            if self._is_closed or self._is_fast():
                return
            if self._coroutine is None:
                self._coroutine = self._receive().__await__()
            try:
                waited = next(self._coroutine)
            except StopIteration as came:
                self._coroutine = None
                self._count += 1
                self._hear(came.value)
                if came.value["type"] == "websocket.disconnect":
                    return
                continue
            if waited is None:
                break
            waited._asyncio_future_blocking = False  # as Task does for the future it is handed
            waited.add_done_callback(self.step)
            return
        asyncio.get_running_loop().call_soon(self.step)

    def _is_fast(self) -> bool:
        """Whether as much was read as may be in a second; then it goes on when that is over."""
        now = self._clock.now()
        if now - self._began >= 1:
            self._began, self._count = now, 0
        is_fast = self._count >= A_SECOND
        if is_fast:
            self._clock.at(self._began + 1, self.step)
        return is_fast
