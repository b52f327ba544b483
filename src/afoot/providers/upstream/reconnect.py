"""`Reconnecting` keeps one connection up: opened when needed, one start at a time, with back-off."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.connection import McpConnection
from afoot.wire.jsonrpc import Fault

BACK_OFF_S: Final = (0.5, 30.0)  # between attempts, doubling
STABLE_S: Final = 10.0  # a connection that lived so long did not die at once
START_MARGIN_S: Final = 0.5  # a call that waits has the same limit; this error comes first, and says more


class Reconnecting:
    """A connection that is opened again after it died; idle, starting, ready, failed or stopped."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[McpConnection]],
        start_s: float,
        max_attempts: int,
        is_remote: bool = False,
    ) -> None:
        """`connect` opens a connection or raises; it is tried `max_attempts` times in a row.

        `is_remote`: somebody else runs the server, so it may come back by itself. An error then says when it
        is tried again.
        """
        self.name = name
        self.state = "idle"
        self.error = ""
        self.connection: McpConnection | None = None  # the one that is up; a lost one is taken out at once
        self.starts = 0  # how often a connection came up
        self.up_since: float | None = None  # when the connection that is up came up, by the wall clock
        self._connect = connect
        self._start_s = start_s
        self._max_attempts = max_attempts
        self._is_remote = is_remote
        self._failures = 0
        self._not_before = 0.0
        self._starting: asyncio.Task[McpConnection] | None = None
        self._lost_connections: list[McpConnection] = []  # those that may still be closing

    @property
    def is_used(self) -> bool:
        """Whether somebody waits for its start, or for an answer on it."""
        return self._starting is not None or (self.connection is not None and self.connection.is_busy)

    async def up(self) -> McpConnection:
        """Return the connection once it is up; all who wait share one start. Raises ToolError."""
        if self.connection is not None:
            return self.connection
        if self.state == "stopped":
            raise ToolError.unavailable(f"server {self.name} was stopped")
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
            self._starting.add_done_callback(self._on_start_done)
        return await self._wait_for_start(self._starting)

    async def close(self) -> None:
        """Close the connection for good."""
        self.state = "stopped"
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        here = [*self._lost_connections, self.connection]  # it may have come up all the same
        self.connection = self.up_since = None
        self._lost_connections.clear()
        for one in here:
            if one is not None:
                await one.close()

    async def _wait_for_start(self, starting: "asyncio.Task[McpConnection]") -> McpConnection:
        """Wait for a start that others may wait for, too; raises ToolError if the start is cancelled."""
        waiter = asyncio.current_task()
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            if not starting.cancelled() or (waiter is not None and waiter.cancelling()):
                raise
            raise ToolError.unavailable(f"server {self.name} was stopped") from None

    def _on_start_done(self, task: "asyncio.Task[McpConnection]") -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # retrieved: perhaps nobody waits any more

    async def _start(self) -> McpConnection:
        self.state = "starting"
        self.error = ""  # the end of the connection before is no error of this start
        try:
            async with asyncio.timeout(self._start_s - min(START_MARGIN_S, self._start_s / 10)):
                connection = await self._connect_with_retries()
        except TimeoutError:
            late = f"it did not answer within {self._start_s:g} s (raise start_s)"
            raise self._failed(ToolError.unavailable(f"server {self.name}: {self.error or late}")) from None
        except ToolError as error:
            raise self._failed(error) from None
        except Exception as error:  # whatever it was, nothing is starting any more
            raise self._failed(ToolError.internal(f"server {self.name}: {error!r}")) from error
        self.connection = connection
        self.state = "ready"
        self.error = ""
        self.starts += 1
        self.up_since = time.time()
        connection.on_lost = self._on_lost
        if connection.lost is not None:
            self._on_lost()
        return connection

    async def _connect_with_retries(self) -> McpConnection:
        """Connect, again while that may help: `max_attempts` times in a row, once if these are used up."""
        while True:
            await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
            try:
                return await self._connect()
            except (RunnerDied, Fault, ToolError) as error:
                if isinstance(error, ToolError) and error.category == "auth":
                    raise  # trying again does not help, and a person who logs in should not wait
                self._count_failure(str(error))
                is_hopeless = isinstance(error, ToolError) and not error.retryable
                if self._failures >= self._max_attempts or is_hopeless:
                    raise self._as_tool_error(error) from None

    def _count_failure(self, why: str) -> None:
        self.error = why
        self._failures += 1
        wait_s = min(BACK_OFF_S[0] * 2 ** (self._failures - 1), BACK_OFF_S[1])
        self._not_before = asyncio.get_running_loop().time() + wait_s

    def _as_tool_error(self, error: RunnerDied | Fault | ToolError) -> ToolError:
        if isinstance(error, ToolError):
            return error
        text = str(error) if isinstance(error, RunnerDied) else f"server {self.name}: {error}"
        return ToolError.unavailable(f"{text} while it was starting")

    def failure(self) -> ToolError:
        """Return the error of a server that has failed."""
        return self._with_retry_after(ToolError.unavailable(self.error))

    def _failed(self, error: ToolError) -> ToolError:
        """Note a failed start; returns its error."""
        if self.state != "stopped":
            self.state = "failed"
            self.error = error.message
        return self._with_retry_after(error)

    def _with_retry_after(self, error: ToolError) -> ToolError:
        if self._is_remote and error.retryable and error.retry_after is None and self.state == "failed":
            error.retry_after = max(0.0, round(self._not_before - asyncio.get_running_loop().time(), 3))
        return error

    def _on_lost(self) -> None:
        """Take out a connection that died. If it died at once, that counts as a failed start (U4).

        To answer the handshake and list its tools proves nothing: many a server dies of its first call.
        """
        connection = self.connection
        self.connection = self.up_since = None
        if self.state == "stopped" or connection is None:
            return
        self._lost_connections = [*(one for one in self._lost_connections if not one.is_closed), connection]
        self.error = connection.lost or ""
        lived_s = asyncio.get_running_loop().time() - connection.greeted_at
        if connection.answers or lived_s >= STABLE_S:
            self._failures = 0
            self._not_before = 0.0
        else:
            self._count_failure(self.error)
        self.state = "failed" if self._failures >= self._max_attempts else "idle"
