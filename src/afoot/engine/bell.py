"""A bell: one waits, anybody may ring."""

import asyncio


class Bell:
    """One waiter, many who may ring: a follower, a disconnect, a timer."""

    __slots__ = ("_future", "_loop", "_rung", "cracked")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._rung = False
        self.cracked = False  # whoever waits is to wait no more

    def crack(self) -> None:
        """Ring for the last time."""
        self.cracked = True
        self.ring()

    def ring(self) -> None:
        """Wake the waiter, now or at its next wait."""
        self._rung = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        """Return when it has rung since the last wait."""
        if not self._rung:
            self._future = self._loop.create_future()
            await self._future
            self._future = None
        self._rung = False
