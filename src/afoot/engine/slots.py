"""How many calls may run at once, and who is next; a full queue is an answer, not a wait."""

from collections import deque
from collections.abc import Callable

from afoot.core.call import State
from afoot.engine.live import Live


class Slots:
    """Counts running calls by tool and by server, and keeps the line of those that wait."""

    def __init__(self, per_server: int = 0) -> None:
        self.per_server = per_server  # for servers without a limit of their own; 0: no limit
        self.per_caller: Callable[[str], int] | None = None  # calls at once of a caller; None: nobody has one
        self._taken: dict[str, int] = {}
        self.holders: dict[str, list[str]] = {}  # by call: what it took; a recovered one has nothing
        self._line: deque[Live] = deque()

    def take(self, live: Live) -> bool:
        """Take a slot for this call, if its tool and its server have one."""
        keys = self._keys(live)
        if not keys:
            return True
        if any(self._taken.get(key, 0) >= limit for key, limit in keys):
            return False
        for key, _ in keys:
            self._taken[key] = self._taken.get(key, 0) + 1
        self.holders[live.call.id] = [key for key, _ in keys]
        return True

    def wait(self, live: Live) -> bool:
        """Stand in line; False if the tool's queue is full."""
        name = live.tool.name
        if sum(1 for other in self._line if other.tool.name == name) >= live.tool.queue:
            return False
        self._line.append(live)
        return True

    def free(self, live: Live) -> None:
        """Give this call's slot back, if it has one: what it took, whatever the limits are by now."""
        for key in self.holders.pop(live.call.id, ()):
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]  # callers come and go

    def next(self) -> Live | None:
        """The first in line that can take a slot now, with the slot taken."""
        for live in list(self._line):
            if live.call.state is not State.QUEUED:
                self._line.remove(live)
            elif self.take(live):
                self._line.remove(live)
                if live.gate is not None and not live.gate.done():
                    live.gate.set_result(None)
                return live
        return None

    def _keys(self, live: Live) -> list[tuple[str, int]]:
        tool = live.tool
        of_server = tool.server_concurrency or self.per_server
        keys = [(f"tool:{tool.name}", tool.concurrency), (f"server:{tool.server}", of_server)]
        if self.per_caller is not None and not live.inner:
            caller = live.call.opened.caller
            keys.append((f"caller:{caller}", self.per_caller(caller)))
        return [(key, limit) for key, limit in keys if limit]
