"""`IdleExit` says when a gateway that was started for a caller may end."""

from collections.abc import Callable

from afoot.core.ports import Clock
from afoot.engine.followers import Wakeup
from afoot.serve.mcp.asgi import App, Receive, Scope, Send


class IdleExit:
    """An application around another that knows when the last request was answered."""

    def __init__(self, application: App, clock: Clock, is_busy: Callable[[], bool]) -> None:
        """`is_busy`: whether something goes on without a request, such as a call or a session."""
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

    async def wait_until_idle(self, idle_s: float) -> None:
        """Wait until there was no request, and nothing went on, for so long."""
        wakeup, clock = Wakeup(), self._clock
        while True:
            now = clock.now()
            if self._open or self._is_busy():
                self._seen = now
            due = self._seen + idle_s
            if now >= due:
                return
            clock.at(min(due, now + idle_s / 10), wakeup.wake)  # calls come and go without a request
            await wakeup.wait()
