"""`FunctionQueue` is the queue of Docket as this package uses it: adding, withdrawing and running one task.

Importing Docket takes over a second, so this module is imported only where there are workers. Of Docket's
results and progress nothing is used: each opens connections of its own for every call.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Self

from docket import Docket, Worker
from redis.exceptions import RedisError, ResponseError

from afoot.cluster.runs import RUN_FUNCTION
from afoot.errors import StoreError

# Docket looks so often for a free slot where all are taken. Measured with 4 slots and 400 calls: 65 calls a
# second with 50 ms, 329 with 5 ms.
CHECK_MS = 5
HEALTH_CHECK_S = 1

RunFunction = Callable[[str, int, str], Awaitable[None]]


async def _run_nothing(call: str, attempt: int, body: str) -> None:
    """The task as a gateway knows it: by its name."""


class FunctionQueue:
    """The queue of functions for the workers of one label. `async with` opens and closes it."""

    def __init__(self, url: str, name: str, run: RunFunction = _run_nothing, label: str = "") -> None:
        # The workers of each label have a queue of their own: what waits for one kind holds up no other.
        place = f"{name}-functions" + (f"-{label}" if label else "")
        url = _with_health_check(url)
        # No state of a call that is over is kept: the call's own facts are its history.
        self._docket = Docket(name=place, url=url, execution_ttl=timedelta(0))
        self._docket.register(run, names=[RUN_FUNCTION])
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._docket)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def add(self, call: str, attempt: int, body: str) -> None:
        """Queue an attempt of a call. Queueing it again changes nothing. Raises StoreError."""
        try:
            await self._docket.add(RUN_FUNCTION, key=f"{call}.{attempt}")(call, attempt, body)
        except (RedisError, OSError) as error:
            raise StoreError(f"call {call} could not be queued for a worker: {error}") from error

    async def withdraw(self, call: str, attempt: int) -> None:
        """Take an attempt that no worker has begun out of the queue; raises StoreError."""
        try:
            await self._docket.cancel(f"{call}.{attempt}")
        except (RedisError, OSError) as error:
            raise StoreError(f"call {call} stays in the queue: {error}") from error

    async def waiting(self) -> int:
        """The number of attempts that no worker has begun; raises StoreError."""
        docket = self._docket
        try:
            async with docket.redis() as redis:
                queued = await redis.xlen(docket.stream_key)
                try:
                    pending = await redis.xpending(docket.stream_key, docket.worker_group_name)
                    begun = int(pending["pending"])
                except ResponseError as error:
                    if "NOGROUP" not in str(error):
                        raise
                    begun = 0  # the group comes with the first worker
        except (RedisError, OSError) as error:
            raise StoreError(f"the queue to the workers cannot be read: {error}") from error
        return max(0, queued - begun)

    async def serve(self, worker: str, slots: int, lease_s: float, until: asyncio.Event) -> None:
        """Run tasks until the event, then those that have begun to their end."""
        redelivery = timedelta(seconds=lease_s)
        async with Worker(
            self._docket,
            name=worker,
            concurrency=slots,
            redelivery_timeout=redelivery,
            reconnection_delay=timedelta(seconds=0.5),
            minimum_check_interval=timedelta(milliseconds=CHECK_MS),
            schedule_automatic_tasks=False,
        ) as serving:
            running = asyncio.create_task(serving.run_forever())
            stopping = asyncio.create_task(until.wait())
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            running.cancel()  # it waits for the tasks that it has
            await asyncio.wait([running])


def _with_health_check(url: str) -> str:
    """The address with an option by which an idle connection is tried every second.

    Docket waits for cancels in a loop. If the system gives their connection up, as after 45 s of silence,
    every wait of the client library ends at once, as if no cancel had come: the loop never yields, and the
    worker, whose lease is renewed beside it, begins and ends nothing any more. The failing check ends that.
    """
    return f"{url}{'&' if '?' in url else '?'}health_check_interval={HEALTH_CHECK_S}"
