"""The way to the gateway: one link at a time, found again when it is lost, made anew when it is needed."""

import asyncio
from collections.abc import Awaitable, Callable

from afoot.bridge.finding import Finder, NoGateway
from afoot.bridge.http import Broken, Unreachable
from afoot.bridge.link import Link

LOOK_S = 0.3  # how often a gateway is looked for while none is there


class Way:
    """Holds the link; `arrive` does what a new one needs before anything else goes over it."""

    def __init__(self, finder: Finder, arrive: Callable[[Link], Awaitable[None]]) -> None:
        self._finder = finder
        self._arrive = arrive
        self._up = asyncio.Event()
        self._attempt: asyncio.Task[None] | None = None
        self._minding: asyncio.Task[None] | None = None
        self.link: Link | None = None

    async def get(self) -> Link:
        """The link, to a gateway that is started if none runs; raises CallerError."""
        while self.link is None:
            await self._try(starts=True)
        return self.link

    async def found(self) -> Link:
        """The link, once there is a gateway again; none is started for this."""
        while self.link is None:
            await self._up.wait()
        return self.link

    def lose(self, link: Link) -> None:
        """Nobody answers there any more."""
        link.close()
        if self.link is link:
            self.link = None
            self._up.clear()

    def close(self) -> None:
        """Let go of everything."""
        for task in (self._attempt, self._minding):
            if task is not None:
                task.cancel()
        if self.link is not None:
            self.link.close()

    async def _try(self, *, starts: bool) -> None:
        """Take part in the one attempt that is made at a time; raises CallerError."""
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._reach(starts))
            self._attempt.add_done_callback(self._tried)
        await asyncio.shield(self._attempt)

    def _tried(self, attempt: asyncio.Task[None]) -> None:
        self._attempt = None
        if not attempt.cancelled():
            attempt.exception()  # whoever waited has it; nobody may have

    async def _reach(self, starts: bool) -> None:
        link = await (self._finder.reach() if starts else self._finder.look())
        if link is None:
            return
        try:
            await self._arrive(link)
        except (Broken, Unreachable) as error:
            link.close()
            raise NoGateway(f"the gateway went away at once ({error}); try again") from None
        self.link = link
        self._up.set()
        if self._minding is None or self._minding.done():
            self._minding = asyncio.create_task(self._mind())

    async def _mind(self) -> None:
        """See the link's end, and look for another; one that a person starts is found without a request."""
        while True:
            link = self.link
            if link is not None:
                await link.gone()
                self.lose(link)
                continue
            await asyncio.sleep(LOOK_S)
            if self.link is None:
                try:
                    await self._try(starts=False)
                except NoGateway:
                    pass  # told to whoever asks for something
