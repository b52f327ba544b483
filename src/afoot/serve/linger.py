"""When a gateway that was started for a caller may end: nobody is there, and nothing has run for a while."""

from collections.abc import Callable

from afoot.core.ports import Clock
from afoot.engine.bell import Bell
from afoot.serve.asgi import Receive, Scope, Send
from afoot.serve.http import App


class Linger:
    """An application that knows since when nobody has asked it for anything."""

    def __init__(self, application: App, clock: Clock, is_busy: Callable[[], bool]) -> None:
        """`is_busy`: something goes on without a request, such as a call or a session."""
        self._application = application
        self._clock = clock
        self._is_busy = is_busy
        self._open = 0
        self._seen = clock.now()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._open -= 1
            self._seen = self._clock.now()

    async def over(self, linger_s: float) -> None:
        """Wait until there has been nobody for so long."""
        bell, clock = Bell(), self._clock
        while True:
            now = clock.now()
            if self._open or self._is_busy():
                self._seen = now
            due = self._seen + linger_s
            if now >= due:
                return
            clock.at(min(due, now + linger_s / 10), bell.ring)  # calls come and go without a request
            await bell.wait()
