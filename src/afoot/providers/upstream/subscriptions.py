"""`Subscriptions` asks a server, in the way of its era, to tell of changed lists and resources."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.transport.transport import Request
from afoot.wire.jsonrpc import Fault

RELISTEN_S: Final = (1.0, 30.0)  # before a stream of notifications that ended is asked for again, doubling


class Subscriptions:
    """The resources and lists that we want to be told of. A new connection is subscribed to all of them."""

    def __init__(self, missed: Callable[[McpConnection], None]) -> None:
        """`missed` is called where changes may have been missed."""
        self._missed = missed
        self._uris: set[str] = set()
        self._connection: McpConnection | None = None
        self._task: asyncio.Task[None] | None = None

    async def attach(self, connection: McpConnection) -> None:
        """Subscribe on a new connection."""
        self._connection = connection
        if connection.dialect.is_modern:
            self._listen()
            return
        for uri in sorted(self._uris):
            with suppress(Fault, RunnerDied, ToolError):
                await connection.request(Request("resources/subscribe", {"uri": uri}))

    async def add(self, connection: McpConnection, uri: str) -> None:
        """Be told when this resource changes; raises Fault."""
        if connection is self._connection and not connection.dialect.is_modern:
            await connection.request(Request("resources/subscribe", {"uri": uri}))
        if uri not in self._uris:
            self._uris.add(uri)
            self._relisten()

    async def remove(self, connection: McpConnection | None, uri: str) -> None:
        """Be told of this resource no more, also after the next start; raises Fault."""
        if uri in self._uris:
            self._uris.discard(uri)
            self._relisten()
        if connection is not None and connection is self._connection and not connection.dialect.is_modern:
            await connection.request(Request("resources/unsubscribe", {"uri": uri}))

    async def close(self) -> None:
        """End the stream of notifications."""
        task = self._task
        self._task = None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _relisten(self) -> None:
        if self._connection is not None and self._connection.dialect.is_modern:
            self._listen()

    def _listen(self) -> None:
        """Replace the one long request of 2026-07-28 that names everything we want to be told of."""
        if self._task is not None:
            self._task.cancel()
        self._task = None
        connection = self._connection
        wanted = self._wanted(connection.capabilities) if connection else {}
        if connection is not None and wanted:
            self._task = asyncio.get_running_loop().create_task(self._keep_listening(connection, wanted))

    def _wanted(self, offered: dict[str, Any]) -> dict[str, object]:
        wanted: dict[str, object] = {
            f"{kind}ListChanged": True
            for kind in ("tools", "resources", "prompts")
            if isinstance(offered.get(kind), dict) and offered[kind].get("listChanged")
        }
        if self._uris:
            wanted["resourceSubscriptions"] = sorted(self._uris)
        return wanted

    async def _keep_listening(self, connection: McpConnection, wanted: dict[str, object]) -> None:
        """Send the request again whenever it ends; less often, if it ends soon."""
        loop, pause = asyncio.get_running_loop(), RELISTEN_S[0]
        while connection.lost is None:
            since = loop.time()
            try:
                await connection.request(Request("subscriptions/listen", {"notifications": wanted}))
            except RunnerDied as died:
                if connection.lost is not None or not died.began:
                    return
            except (Fault, ToolError) as error:
                connection.server_log.note(f"no notices of changes: {error}")
                if isinstance(error, Fault) and error.code:
                    return  # the server does not support it
            pause = RELISTEN_S[0] if loop.time() - since > RELISTEN_S[1] else min(2 * pause, RELISTEN_S[1])
            await asyncio.sleep(pause)
            self._missed(connection)
