"""`InProcessTransport` runs an `mcp` or `fastmcp` server object in this process, as behind a pipe."""

import asyncio
import importlib
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from afoot.config.settings import Server
from afoot.errors import CallerError, RunnerDied, ToolError
from afoot.providers.functions.loading import run_file
from afoot.providers.upstream.transport import OnLost, PendingRequest, Receive, ServerLog

CLOSE_S: Final = 2.0
MAX_UNREAD: Final = 10_000  # messages that may wait to be read by the server
# The attribute in which a high-level server keeps the low-level one: `mcp`, `fastmcp`.
LOW_LEVEL: Final = ("_lowlevel_server", "_mcp_server")


class InProcessTransport:
    """Messages to a server object. They keep their order: each is handed over before the next is made."""

    has_streams: Final = False
    has_session: Final = True
    pid: Final[int | None] = None

    def __init__(self, server: Server, server_log: ServerLog, target: object = None) -> None:
        self.version = ""
        self._server = server
        self._server_log = server_log
        self._target = target
        self._task: asyncio.Task[None] | None = None
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._receive: Receive | None = None
        self._lost: OnLost | None = None
        self._is_closed = False

    async def open(self, receive: Receive, lost: OnLost) -> None:
        """Find the object and run it; raises ToolError."""
        self._receive = receive
        self._lost = lost
        # Importing the SDK takes a second or two, and nobody else should have to wait for it.
        await asyncio.to_thread(importlib.import_module, "mcp.shared.message")
        target = self._target or load_server(self._server.module, self._server_log.server)
        self._task = asyncio.get_running_loop().create_task(self._run(target))

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        """Hand a request over, and wait for its answer."""
        self.send(body)
        await pending.answer

    async def tell(self, body: bytes) -> None:
        """Hand over a message that has no answer."""
        self.send(body)

    def send(self, body: bytes) -> None:
        """Hand a message over; raises RunnerDied."""
        if self._is_closed or self._task is None or self._task.done():
            raise RunnerDied(f"server {self._server_log.server} is gone", began=False)
        if self._inbox.qsize() >= MAX_UNREAD:
            raise ToolError.unavailable(f"server {self._server_log.server} does not read what it is sent")
        self._inbox.put_nowait(body)

    def listen(self) -> None:
        """Nothing to do: one stream carries everything."""

    async def close(self) -> None:
        """End its input, and wait a moment for its end."""
        self._is_closed = True
        self._inbox.put_nowait(None)
        if self._task is not None:
            with suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._task, CLOSE_S)

    async def _run(self, target: Any) -> None:
        assert self._receive is not None and self._lost is not None
        how = "ended by itself"
        try:
            low = next((getattr(target, name) for name in LOW_LEVEL if hasattr(target, name)), target)
            async with AsyncExitStack() as stack:
                if hasattr(target, "_lifespan_manager"):  # fastmcp starts what it needs apart from its loop
                    await stack.enter_async_context(target._lifespan_manager())
                options = low.create_initialization_options()
                await low.run(InProcessReader(self._inbox), InProcessWriter(self._receive), options)
        except Exception as error:  # whatever its author's code raises
            how = f"failed: {error!r}"
        if not self._is_closed:
            self._is_closed = True
            self._lost(f"server {self._server_log.server} {how}")


def load_server(module: str, name: str) -> object:
    """Return the object that `package.module:server` or `file.py:server` names; raises ToolError."""
    path, _, attribute = module.rpartition(":")
    try:
        found: object = run_file(path) if path.endswith(".py") else importlib.import_module(path)
        for part in (attribute or "server").split("."):
            found = getattr(found, part)
    except Exception as error:  # a module of somebody's own may raise anything
        why = error if isinstance(error, CallerError) else repr(error)
        raise ToolError.not_found(f"server {name}: {module} cannot be loaded: {why}") from error
    return found


class InProcessReader:
    """The stream that the server reads: messages of the SDK's own type, until the transport is closed."""

    def __init__(self, queue: "asyncio.Queue[Any]") -> None:
        from mcp.shared.message import SessionMessage  # importing the SDK takes a second
        from mcp_types import jsonrpc_message_adapter

        self._queue = queue
        self._wrap = SessionMessage
        self._read = jsonrpc_message_adapter.validate_json

    async def receive(self) -> Any:
        """Return the next message; raises EndOfStream when the transport is closed."""
        from anyio import EndOfStream

        body = await self._queue.get()
        if body is None:
            self._queue.put_nowait(None)
            raise EndOfStream
        return self._wrap(self._read(body, by_name=False))

    async def aclose(self) -> None:
        """Nothing to do."""

    def __aiter__(self) -> "InProcessReader":
        return self

    async def __anext__(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "InProcessReader":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class InProcessWriter:
    """The stream that the server writes: each message is received before the next can be sent."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    async def send(self, item: Any, /) -> None:
        """Receive a message of the server."""
        self._receive(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode(), None)
        await asyncio.sleep(0)  # a tool that only reports would block the loop otherwise

    async def aclose(self) -> None:
        """Nothing to do."""

    async def __aenter__(self) -> "InProcessWriter":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
