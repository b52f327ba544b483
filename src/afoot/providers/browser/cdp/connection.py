"""Commands to a browser over the DevTools protocol, their answers, and its events."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING
from afoot.providers.browser.cdp.wires import Wire
from afoot.wire.mending import decode

log = logging.getLogger("afoot")

ANSWER_S = 10.0
OUTGOING = 64 << 20  # bytes that may wait for a browser that does not read


class Fault(Struct, frozen=True):
    """Why a command was refused."""

    message: str = ""
    code: int = 0


class Message(Struct, frozen=True):
    """What a browser sends: the answer to a command, or an event."""

    id: int | None = None
    method: str = ""
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Fault | None = None
    session: str = msgspec.field(name="sessionId", default="")


class Refusal(Exception):
    """The browser refused a command."""


Hear = Callable[[Message], None]


class Connection:
    """One browser: commands are sent in order, events are heard in order; nothing here waits to be sent."""

    def __init__(self, wire: Wire, hear: Hear) -> None:
        """`hear` gets every event, on the loop, in order."""
        self._wire, self._hear = wire, hear
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Raw]] = {}
        self._outgoing: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._more = asyncio.Event()
        self._read = msgspec.json.Decoder(Message)
        self.garbage = 0  # messages that could not be read
        self.is_gone = False

    async def run(self) -> None:
        """Carry messages until the browser is gone; everything still open is refused then."""
        writing = asyncio.create_task(self._write())
        try:
            async for message in self._wire.messages():
                self._take(message)
        finally:
            self.is_gone = True
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            for future in self._open.values():
                if not future.done():
                    future.set_exception(ConnectionError("the browser is gone"))
                    future.exception()  # whoever asked may not wait any more
            self._open.clear()
            await self._wire.close()

    def post(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> bool:
        """Send a command whose answer nobody waits for; False if it cannot be sent."""
        return self._send(next(self._numbers), method, params, session)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        session: str = "",
        limit_s: float = ANSWER_S,
    ) -> Any:
        """Send a command and give its result; raises Refusal, ConnectionError, TimeoutError."""
        return msgspec.json.decode(await self.ask(method, params, session, limit_s))

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        session: str = "",
        limit_s: float = ANSWER_S,
    ) -> Raw:
        """As `call`, but the result is not decoded."""
        number = next(self._numbers)
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._open[number] = future
        try:
            if not self._send(number, method, params, session):
                raise ConnectionError("the browser is gone, or does not read")
            async with asyncio.timeout(limit_s):
                return await future
        except TimeoutError:
            raise TimeoutError(f"no answer to {method} within {limit_s:g} s") from None
        finally:
            self._open.pop(number, None)

    def _send(self, number: int, method: str, params: Mapping[str, Any] | None, session: str) -> bool:
        command: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            command["sessionId"] = session
        text = msgspec.json.encode(command)
        if self.is_gone or self._waiting_bytes + len(text) > OUTGOING:
            return False
        self._outgoing.append(text)
        self._waiting_bytes += len(text)
        self._more.set()
        return True

    async def _write(self) -> None:
        with suppress(ConnectionError):
            while True:
                while self._outgoing:
                    text = self._outgoing.popleft()
                    await self._wire.send(text)
                    self._waiting_bytes -= len(text)
                self._more.clear()
                await self._more.wait()

    def _take(self, text: bytes | str) -> None:
        try:
            message = decode(self._read, text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.garbage += 1
            log.debug("a browser sent what is no message: %s", error)
            return
        if message.id is None:
            self._hear(message)
            return
        future = self._open.get(message.id)
        if future is None or future.done():
            return
        if message.error is not None:
            future.set_exception(Refusal(message.error.message))
        else:
            future.set_result(message.result)
