"""What a server offers, kept fresh: its lists, its tools as ours, and those who are told of changes."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from afoot.config import Server
from afoot.core.facts import Limits
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.connection import Connection
from afoot.providers.upstream.lists import Lists, fetch
from afoot.providers.upstream.record import Record
from afoot.providers.upstream.tools import Offer, offers
from afoot.wire.jsonrpc import Fault

PAUSE_S: Final = (0.1, 10.0)  # before lists are read that changed; doubling while they do not rest

Callback = Callable[[str, str | None], object]

_log = logging.getLogger("afoot.upstream")


class Offering:
    """The newest lists that are known, from this connection or from before."""

    def __init__(self, server: Server, limits: Limits, record: Record) -> None:
        self.lists = Lists()
        self.tools: dict[str, Offer] = {}
        self._server = server
        self._limits = limits
        self._record = record
        self._callbacks: list[Callback] = []
        self._connection: Connection | None = None  # the one that is asked
        self._due: asyncio.TimerHandle | None = None  # when changed lists are read
        self._pause = PAUSE_S[0]
        self._renewed = 0.0  # when that was last
        self.listing: asyncio.Task[Exception | None] | None = None  # the last one

    def listen(self, callback: Callback) -> Callable[[], None]:
        """Tell this one of changes, until what is given back is called."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def remember(self, lists: Lists) -> None:
        """Take these lists; whoever listens is told what is new in them."""
        changed = self.lists.changed(lists)
        self.lists = lists
        self.tools = offers(lists.tools, self._server, self._limits, self._record)
        for kind in changed:
            self.tell(kind, None)

    def refresh(self, connection: Connection) -> "asyncio.Task[Exception | None]":
        """Ask for the lists, unless that is being done; what stood in the way, if anything."""
        if self.listing is None or self.listing.done() or self._connection is not connection:
            self._connection = connection
            self.listing = asyncio.get_running_loop().create_task(self._list(connection))
        return self.listing

    def renew(self, connection: Connection) -> None:
        """The lists are said to be others: ask for them soon, or later if that is said without rest."""
        loop = asyncio.get_running_loop()
        self._connection = connection
        if self._due is None:
            is_calm = loop.time() - self._renewed > 2 * self._pause
            self._pause = PAUSE_S[0] if is_calm else min(2 * self._pause, PAUSE_S[1])
            self._due = loop.call_later(self._pause, self._again)

    def tell(self, kind: str, uri: str | None) -> None:
        """Something changed."""
        for callback in tuple(self._callbacks):
            try:
                callback(kind, uri)
            except Exception:  # a broken listener hurts nobody else
                _log.exception("server %s: a listener failed", self._record.server)

    def _again(self) -> None:
        self._due, connection = None, self._connection
        if connection is None or connection.lost is not None:
            return
        self._renewed = asyncio.get_running_loop().time()
        if self.listing is not None and not self.listing.done():
            self.renew(connection)
        else:
            self.refresh(connection)

    async def _list(self, connection: Connection) -> Exception | None:
        """What stood in the way, if anything: then the lists stay as they were."""
        try:
            async with asyncio.timeout(self._limits.start_s):
                self.remember(await fetch(connection))
        except TimeoutError:
            late = f"did not list what it has within {self._limits.start_s:g} s (raise start_s)"
            error: Exception = ToolError.unavailable(f"server {self._record.server} {late}")
        except (Fault, RunnerDied, ToolError, RecursionError) as wrong:
            error = wrong
        else:
            return None
        self._record.say(f"its lists could not be read: {error}", logging.WARNING)
        return error
