"""How many connections a peer may hold, and which one gives way."""

from math import inf

import pytest

from afoot.config.tables import ConnectionSettings
from afoot.serve.http_server import connections as module
from afoot.serve.http_server.connections import Connections


class Held:
    """A connection that waits, or serves."""

    def __init__(self, *, waits: bool = True, unused: bool = True) -> None:
        self.due = inf
        self.waits = waits
        self.unused = unused
        self.is_dropped = False

    def is_waiting(self) -> bool:
        """Whether it waits for a request."""
        return self.waits

    def is_unused(self) -> bool:
        """Whether no request ever came."""
        return self.unused

    def on_due(self, now: float) -> None:
        """It is never late."""

    def drop(self) -> None:
        """Note it."""
        self.is_dropped = True


def bounded(per_peer: int) -> Connections:
    """Connections with this bound."""
    return Connections(ConnectionSettings(per_peer=per_peer), 1000)


def admit(connections: Connections, held: Held, peer: str = "192.0.2.1") -> bool:
    """Whether a connection of this peer is let in."""
    return connections.admit(held, peer)


async def test_a_new_connection_takes_the_place_of_the_oldest_that_was_never_used() -> None:
    """S5: the bound holds before anybody is known."""
    connections = bounded(3)
    serving, idle, silent = Held(waits=False), Held(unused=False), Held()
    assert all(admit(connections, one) for one in (serving, idle, silent))
    assert admit(connections, Held(waits=False))
    assert (serving.is_dropped, idle.is_dropped, silent.is_dropped) == (False, False, True)
    assert admit(connections, Held(waits=False))
    assert idle.is_dropped and not serving.is_dropped


async def test_a_connection_that_is_in_use_never_gives_way() -> None:
    """S5: and another peer has room of its own."""
    connections = bounded(2)
    first = Held(waits=False)
    assert admit(connections, first) and admit(connections, Held(waits=False))
    assert not admit(connections, Held())
    assert admit(connections, Held(), "192.0.2.2")
    connections.leave(first)
    connections.leave(first)
    assert admit(connections, Held())


async def test_users_of_this_machine_are_counted_apart() -> None:
    """S5: one user can have no more than the bound, and takes nothing from another."""
    connections = bounded(40)
    mine = [admit(connections, Held(waits=False), "uid:1000") for _ in range(41)]
    assert mine == [True] * 40 + [False]
    assert admit(connections, Held(waits=False), "uid:1001")


async def test_all_peers_together_leave_some_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """S5: the bound holds before anybody is known."""

    def eight(kind: int) -> tuple[int, int]:
        return 8, 8

    monkeypatch.setattr(module.resource, "getrlimit", eight)
    connections = bounded(0)
    silent = Held()
    assert all(admit(connections, silent if n == 3 else Held(waits=False), f"192.0.2.{n}") for n in range(6))
    assert admit(connections, Held(waits=False), "192.0.2.9") and silent.is_dropped
    assert not admit(connections, Held(), "192.0.2.10") and len(connections) == 6
