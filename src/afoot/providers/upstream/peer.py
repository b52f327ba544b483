"""A connection that is kept up: opened when it is needed, one opening at a time, with back-off."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.connection import Connection
from afoot.wire.jsonrpc import Fault

BACK_OFF_S: Final = (0.5, 30.0)  # between attempts, doubling
SLACK_S: Final = 0.5  # a call that waits has the same limit, and is told here what is known of the server


class Peer:
    """The server as one of us sees it: idle, starting, ready, failed or stopped."""

    def __init__(
        self, name: str, connect: Callable[[], Awaitable[Connection]], start_s: float, limit: int
    ) -> None:
        """`connect` opens a connection or raises; `limit` attempts in a row are made."""
        self.name = name
        self.state = "idle"
        self.error = ""
        self.connection: Connection | None = None
        self._connect = connect
        self._start_s = start_s
        self._limit = limit
        self._failures = 0
        self._not_before = 0.0
        self._starting: asyncio.Task[Connection] | None = None
        self._dead: list[Connection] = []  # those of which something may be left

    @property
    def ready(self) -> Connection | None:
        """The connection, if it is up."""
        connection = self.connection
        return connection if connection is not None and connection.lost is None else None

    async def up(self) -> Connection:
        """The connection, once it is up; all who wait share one start. Raises ToolError."""
        if self.ready is not None:
            return self.ready
        if self.state == "stopped":
            raise ToolError.unavailable(f"server {self.name} was stopped")
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await self._shared(self._starting)

    @property
    def is_used(self) -> bool:
        """Whether somebody waits for it, or for an answer of it."""
        return self._starting is not None or (self.ready is not None and self.ready.is_busy)

    async def close(self) -> None:
        """End the connection for good."""
        self.state = "stopped"
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        here = [*self._dead, self.connection]  # it may have come up all the same
        self.connection = None
        self._dead.clear()
        for one in here:
            if one is not None:
                await one.close()

    async def _shared(self, starting: "asyncio.Task[Connection]") -> Connection:
        """Wait for a start that others wait for, too; where it is called off, its waiters are not."""
        waiter = asyncio.current_task()
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if not starting.cancelled() or (waiter is not None and waiter.cancelling()):
                raise
            raise ToolError.unavailable(f"server {self.name} was stopped") from None

    def _started(self, task: "asyncio.Task[Connection]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # looked at: perhaps nobody waits any more

    async def _start(self) -> Connection:
        self.state, self.error = "starting", ""  # what ended it before is no reason for this start
        try:
            async with asyncio.timeout(self._start_s - min(SLACK_S, self._start_s / 10)):
                self.connection = await self._attempts()
        except TimeoutError:
            late = f"it did not answer within {self._start_s:g} s (raise start_s)"
            raise self._failed(ToolError.unavailable(f"server {self.name}: {self.error or late}")) from None
        except ToolError as error:
            raise self._failed(error) from None
        except Exception as error:  # whatever it was, nothing is starting any more
            raise self._failed(ToolError.internal(f"server {self.name}: {error!r}")) from error
        self.state, self.error = "ready", ""
        self.connection.on_lost = self._lost
        if self.connection.lost is not None:
            self._lost()
        return self.connection

    async def _attempts(self) -> Connection:
        """Try, and try again while it may help: at most `limit` times in a row, once if that is used up."""
        while True:
            await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
            try:
                return await self._connect()
            except (RunnerDied, Fault, ToolError) as error:
                if isinstance(error, ToolError) and error.category == "auth":
                    raise  # waiting would not help, and whoever logs in does not want to wait
                self._count(str(error))
                is_hopeless = isinstance(error, ToolError) and not error.retryable
                if self._failures >= self._limit or is_hopeless:
                    raise self._reason(error) from None

    def _count(self, why: str) -> None:
        self.error = why
        self._failures += 1
        wait_s = min(BACK_OFF_S[0] * 2 ** (self._failures - 1), BACK_OFF_S[1])
        self._not_before = asyncio.get_running_loop().time() + wait_s

    def _reason(self, error: RunnerDied | Fault | ToolError) -> ToolError:
        if isinstance(error, ToolError):
            return error
        text = str(error) if isinstance(error, RunnerDied) else f"server {self.name}: {error}"
        return ToolError.unavailable(f"{text} while it was starting")

    def _failed(self, error: ToolError) -> ToolError:
        if self.state != "stopped":
            self.state, self.error = "failed", error.message
        return error

    def _lost(self) -> None:
        """It died under us. One that never answered anything counts as a failed start."""
        connection, self.connection = self.connection, None
        if self.state == "stopped" or connection is None:
            return
        self._dead = [*(one for one in self._dead if not one.is_buried), connection]
        self.state, self.error = "idle", connection.lost or ""
        if connection.answers:
            self._failures, self._not_before = 0, 0.0
        else:
            self._count(self.error)
