"""`ReachableClients` lists the clients that servers can reach outside calls, with logs and for roots (U5).

Only clients of the handshake era have a stream for that. `serve` lets them join and leave.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final, Protocol

from msgspec import Raw

from afoot.core.facts import NOTHING, Logged
from afoot.errors import AfootError
from afoot.wire.jsonrpc import Fault
from afoot.wire.results import LEVELS

MAX_CALLERS: Final = 1000  # whose extensions are remembered
ROOTS_S: Final = 10.0  # to wait for the roots of a client
FOREIGN: Final = ("token:", "oauth:")  # callers that may be other people, so begin their names


class ReachableClient(Protocol):
    """One client that has a stream for messages outside calls."""

    @property
    def caller(self) -> str: ...

    @property
    def log_level(self) -> str | None:
        """The log level that the client asked for; None if it asked for no logs."""
        ...

    @property
    def has_roots(self) -> bool: ...

    def show_log(self, line: Logged) -> None:
        """Send a log message that belongs to no call, if it asked for this level."""
        ...

    def list_roots(self) -> Awaitable[list[Raw]]:
        """Ask the client for its roots; raises Fault, AfootError."""
        ...


class ReachableClients:
    """The clients that are there now. A caller may have several; the caller "" stands for all."""

    def __init__(self) -> None:
        self._sessions: dict[int, ReachableClient] = {}
        self._extensions: dict[str, Raw] = {}  # by caller, as its last request declared them

    def join(self, session: ReachableClient) -> None:
        """Let servers reach this client from now on, until it leaves."""
        self._sessions[id(session)] = session

    def leave(self, session: ReachableClient) -> bool:
        """Let servers reach this client no more; False if they did not before."""
        return self._sessions.pop(id(session), None) is not None

    def note_extensions(self, caller: str, extensions: Raw) -> None:
        """Remember the extensions that a caller declares; its next calls start the connection for them."""
        self._extensions.pop(caller, None)
        if extensions:
            self._extensions[caller] = extensions
            if len(self._extensions) > MAX_CALLERS:
                del self._extensions[next(iter(self._extensions))]

    def extensions_of(self, caller: str) -> Raw:
        """The extensions that a caller declared last."""
        return self._extensions.get(caller, NOTHING)

    def log_level(self, caller: str) -> str | None:
        """The most talkative level that a client of this caller asked for; None if none asked for any."""
        asked = [one.log_level for one in self._of(caller)]
        return min((level for level in asked if level is not None), key=LEVELS.index, default=None)

    def show_log(self, line: Logged, caller: str) -> None:
        """Send a log message to the clients of this caller that asked for it."""
        for session in self._of(caller):
            session.show_log(line)

    async def list_roots(self, caller: str) -> list[Raw]:
        """The roots of this caller's clients, each once; a client that does not answer has none.

        Clients on this machine share a server with each other, but nobody gets the folders of other people:
        among several callers, those who came with a token do not count.
        """
        sessions = [one for one in self._of(caller) if one.has_roots]
        if len({one.caller for one in sessions}) > 1:
            sessions = [one for one in sessions if not one.caller.startswith(FOREIGN)]
        found = await asyncio.gather(*(_roots_of(one) for one in sessions))
        return list({bytes(root): root for roots in found for root in roots}.values())

    def _of(self, caller: str) -> Iterable[ReachableClient]:
        return [one for one in self._sessions.values() if caller in ("", one.caller)]


async def _roots_of(session: ReachableClient) -> list[Raw]:
    try:
        async with asyncio.timeout(ROOTS_S):
            return await session.list_roots()
    except (AfootError, Fault, TimeoutError):
        return []
