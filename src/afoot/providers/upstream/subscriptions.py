"""What we want to be told of by a server: changed lists and resources, in the way of its era."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.carrier import Order
from afoot.providers.upstream.connection import Connection
from afoot.wire.jsonrpc import Fault

AGAIN_S: Final = (1.0, 30.0)  # before a stream of notices that ended is asked for again, doubling


class Subscriptions:
    """Kept over connections: what was subscribed to is subscribed to again."""

    def __init__(self, missed: Callable[[Connection], None]) -> None:
        """`missed` is called where changes may not have been heard."""
        self._missed = missed
        self._uris: set[str] = set()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    async def attach(self, connection: Connection) -> None:
        """A new connection is up."""
        self._connection = connection
        if connection.tongue.is_modern:
            self._listen()
            return
        for uri in sorted(self._uris):
            with suppress(Fault, RunnerDied, ToolError):
                await connection.request(Order("resources/subscribe", {"uri": uri}))

    async def add(self, connection: Connection, uri: str) -> None:
        """Be told when this resource changes; raises Fault."""
        if connection is self._connection and not connection.tongue.is_modern:
            await connection.request(Order("resources/subscribe", {"uri": uri}))
        if uri not in self._uris:
            self._uris.add(uri)
            self._renew()

    async def remove(self, connection: Connection | None, uri: str) -> None:
        """Be told no more, also after the next start; raises Fault."""
        if uri in self._uris:
            self._uris.discard(uri)
            self._renew()
        if connection is not None and connection is self._connection and not connection.tongue.is_modern:
            await connection.request(Order("resources/unsubscribe", {"uri": uri}))

    async def close(self) -> None:
        """Listen to nothing any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _renew(self) -> None:
        if self._connection is not None and self._connection.tongue.is_modern:
            self._listen()

    def _listen(self) -> None:
        """On 2026-07-28 one long request holds all that is wanted; another wish is another request."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        connection = self._connection
        wanted = self._wanted(connection.capabilities) if connection else {}
        if connection is not None and wanted:
            self._task = asyncio.get_running_loop().create_task(self._hold(connection, wanted))

    def _wanted(self, offered: dict[str, Any]) -> dict[str, object]:
        wanted: dict[str, object] = {
            f"{kind}ListChanged": True
            for kind in ("tools", "resources", "prompts")
            if isinstance(offered.get(kind), dict) and offered[kind].get("listChanged")
        }
        if self._uris:
            wanted["resourceSubscriptions"] = sorted(self._uris)
        return wanted

    async def _hold(self, connection: Connection, wanted: dict[str, object]) -> None:
        """Keep the request open; one that ends soon and often is asked for less often."""
        loop, pause = asyncio.get_running_loop(), AGAIN_S[0]
        while connection.lost is None:
            since = loop.time()
            try:
                await connection.request(Order("subscriptions/listen", {"notifications": wanted}))
            except RunnerDied as died:
                if connection.lost is not None or not died.began:
                    return
            except (Fault, ToolError) as error:
                connection.record.say(f"no notices of changes: {error}")
                if isinstance(error, Fault) and error.code:
                    return  # it does not do this
            pause = AGAIN_S[0] if loop.time() - since > AGAIN_S[1] else min(2 * pause, AGAIN_S[1])
            await asyncio.sleep(pause)
            self._missed(connection)
