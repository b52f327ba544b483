"""`Connections` limits the number and the duration of each peer's connections, before it is known (S5).

One timer for all looks once in `SWEEP_S` which connections are late. A request then costs no timer of its
own: a connection only stores the time at which it is due.
"""

import asyncio
import resource
from collections.abc import Iterable
from typing import Protocol

from afoot.config.tables import ConnectionSettings

SWEEP_S = 0.5
LATE_S = 0.5  # a sweep that is later than this was held up by us, not by the peers
DESCRIPTORS_SHARE = 0.75  # of the descriptors that the system allows; files, children and servers need some


class Connection(Protocol):
    """A connection that is counted."""

    due: float  # when `on_due` is to be called; inf: never

    def is_waiting(self) -> bool:
        """Whether the connection waits for a request, so that nothing is lost if it ends."""
        ...

    def is_unused(self) -> bool:
        """Whether no request ever came."""
        ...

    def on_due(self, now: float) -> None:
        """End, or wait for longer."""
        ...

    def drop(self) -> None:
        """End at once."""
        ...


class Connections:
    """All connections of a gateway, by peer, the oldest first."""

    def __init__(self, settings: ConnectionSettings, max_body_bytes: int) -> None:
        self.settings = settings
        self.max_body_bytes = max_body_bytes
        self._peer: dict[Connection, str] = {}
        self._of_peer: dict[str, dict[Connection, None]] = {}
        self._planned: float | None = None  # the time of the next sweep

    def __len__(self) -> int:
        return len(self._peer)

    def admit(self, connection: Connection, peer: str) -> bool:
        """Count a connection of a peer, as `user_or_peer` names it; False if there is no room for it.

        Room is made by the end of the oldest connection that waits for a request.
        """
        limit, own = self.settings.per_peer, self._of_peer.get(peer, {})
        if limit and len(own) >= limit and not self._drop_one(own):
            return False
        if len(self._peer) >= _most() and not self._drop_one(self._peer):
            return False
        if self._planned is None:
            self._plan(asyncio.get_running_loop())
        self._peer[connection] = peer
        self._of_peer.setdefault(peer, {})[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        """Count a connection no more."""
        peer = self._peer.pop(connection, None)
        if peer is None:
            return
        own = self._of_peer[peer]
        del own[connection]
        if not own:
            del self._of_peer[peer]

    def _drop_one(self, connections: Iterable[Connection]) -> bool:
        """End the oldest connection that no request came over, or else the oldest that waits for one."""
        found: Connection | None = None
        for connection in connections:
            if connection.is_waiting():
                if connection.is_unused():
                    found = connection
                    break
                found = found or connection
        if found is None:
            return False
        self.leave(found)
        found.drop()
        return True

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        self._planned = loop.time() + SWEEP_S
        loop.call_at(self._planned, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now, planned = loop.time(), self._planned
        assert planned is not None
        self._planned, late = None, now - planned
        if late > LATE_S:  # peers may have sent what we had no time to read
            for connection in self._peer:
                connection.due += late
        else:
            for connection in [one for one in self._peer if one.due <= now]:
                connection.on_due(now)
        if self._peer:
            self._plan(loop)


def _most() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if soft == resource.RLIM_INFINITY else int(soft * DESCRIPTORS_SHARE)
