"""The clients that servers reach outside calls: whose level, whose logs, whose roots."""

import pytest
from msgspec import Raw

from afoot.core.facts import Logged
from afoot.errors import ToolError
from afoot.providers.upstream.reachable_clients import ReachableClients


class Session:
    """A client of the test; without `roots` it does not answer."""

    def __init__(self, caller: str, level: str | None = None, *roots: bytes) -> None:
        self.caller = caller
        self.log_level = level
        self.has_roots = True
        self.roots = [Raw(root) for root in roots]
        self.shown: list[Logged] = []

    def show_log(self, line: Logged) -> None:
        self.shown.append(line)

    async def list_roots(self) -> list[Raw]:
        if not self.roots:
            raise ToolError.refused("no")
        return self.roots


def joined(*sessions: Session) -> ReachableClients:
    """These clients, connected."""
    clients = ReachableClients()
    for session in sessions:
        clients.join(session)
    return clients


def test_the_most_talkative_level_counts() -> None:
    """U5: of one caller, or of all that share a connection."""
    mute, calm, talkative = Session("a"), Session("a", "error"), Session("b", "debug")
    clients = joined(mute, calm, talkative)
    assert (clients.log_level("a"), clients.log_level("b"), clients.log_level("")) == (
        "error",
        "debug",
        "debug",
    )
    assert clients.log_level("c") is None
    assert clients.leave(talkative)
    assert not clients.leave(talkative)
    assert clients.log_level("") == "error"


def test_logs_go_to_the_clients_of_the_caller_they_are_for() -> None:
    """U5: or to all, if they are for nobody in particular."""
    one, other = Session("a"), Session("b")
    clients = joined(one, other)
    line = Logged(0.0, "x")
    clients.show_log(line, "a")
    clients.show_log(line, "")
    assert (len(one.shown), len(other.shown)) == (2, 1)


@pytest.mark.parametrize(
    ("callers", "found"),
    [
        (("session:1", "session:2"), [b"1", b"2", b"3"]),
        (("session:1", "token:me"), [b"1", b"2"]),
        (("token:me", "token:me"), [b"1", b"2", b"3"]),
        (("token:me", "oauth:you"), []),
    ],
)
async def test_nobody_gets_the_roots_of_other_people(callers: tuple[str, str], found: list[bytes]) -> None:
    """U5, S3: callers of this machine share them; each root counts once."""
    one, other = Session(callers[0], None, b"1", b"2"), Session(callers[1], None, b"2", b"3")
    clients = joined(one, other, Session(callers[0]))
    assert [bytes(root) for root in await clients.list_roots("")] == found
    if callers[0] != callers[1]:
        assert [bytes(root) for root in await clients.list_roots(callers[1])] == [b"2", b"3"]
