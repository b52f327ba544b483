"""`InProcessTransport` runs an `mcp` or `fastmcp` server object in this process, as behind a pipe.

`ServerObject` is that object: found once, its lifespan open while a connection to it is. Nothing here imports
the SDK before a server is opened: that takes a second.
"""

import asyncio
import contextvars
import importlib
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from afoot.config.settings import Server
from afoot.errors import CallerError, RunnerDied, ToolError
from afoot.providers.functions.loading import SDK_MODULE, low_level_server, only_server, run_file, servers_in
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import OnLost, PendingRequest, Receive

CLOSE_S: Final = 2.0
MAX_UNREAD: Final = 10_000  # messages that may wait to be read by the server


class ServerObject:
    """The server object of one upstream. Its connections share it, and its lifespan."""

    def __init__(self, server: Server, server_log: ServerLog, target: object = None) -> None:
        self.lifespan_state: Any = None
        self.low_level: Any = None
        self.tools_with_rounds: list[str] = []
        self._server = server
        self._server_log = server_log
        self._target = target
        self._users: set[InProcessTransport] = set()
        self._lock = asyncio.Lock()
        self._lifespan: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._context = contextvars.Context()

    @property
    def name(self) -> str:
        """The name of the server."""
        return self._server_log.server

    async def enter(self, user: "InProcessTransport") -> contextvars.Context:
        """Find the object and open its lifespan, unless that is done; returns a context to run it in.

        Raises ToolError.
        """
        async with self._lock:
            if self._lifespan is None or self._lifespan.done():
                await self._open()
            self._users.add(user)
            return self._context.copy()

    async def leave(self, user: "InProcessTransport") -> None:
        """Close the lifespan if nobody else uses the object."""
        async with self._lock:
            if user not in self._users:
                return
            self._users.discard(user)
            if not self._users and self._lifespan is not None:
                self._over.set()
                await _end_in_time(self._lifespan)

    async def _open(self) -> None:
        # Importing the SDK takes a second or two, and nobody else should have to wait for it.
        await asyncio.to_thread(importlib.import_module, SDK_MODULE)
        if self._target is None:
            self._target = await load_server(self._server.module, self.name)
        self.low_level = low_level_server(self._target)
        if self.low_level is None:
            raise ToolError.not_found(f"server {self.name}: {_no_server(self._server.module, self._target)}")
        self.tools_with_rounds = await _tools_with_rounds(self._target)
        self._over.clear()
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lifespan = asyncio.get_running_loop().create_task(self._live(opened))
        try:
            await opened
        except BaseException as error:  # it failed, or took longer than `start_s`
            if isinstance(error, asyncio.CancelledError):
                self._server_log.note("its lifespan has not begun in time, and is cancelled", logging.WARNING)
            await _end_in_time(self._lifespan, cancel=True)
            raise

    async def _live(self, opened: "asyncio.Future[None]") -> None:
        """Hold the lifespan open in a task of its own: what it entered must be left by the same task."""
        try:
            async with self.low_level.lifespan(self.low_level) as self.lifespan_state:
                self._context = contextvars.copy_context()  # with the variables that the lifespan has set
                if not opened.done():
                    opened.set_result(None)
                await self._over.wait()
            how = "its lifespan ended by itself"
        except BaseException as error:  # whatever its author's code raises
            if isinstance(error, asyncio.CancelledError) and opened.cancelled():
                raise
            how = f"its lifespan failed: {error!r}"
            if not opened.done():
                opened.set_exception(ToolError.unavailable(f"server {self.name}: {how}"))
                return
        users, self._users = self._users, set()
        if users:
            for user in users:
                user.fail(how)
        elif how.startswith("its lifespan failed"):
            self._server_log.note(how)


class InProcessTransport:
    """Messages to a server object. They keep their order: each is handed over before the next is made."""

    has_streams: Final = False
    has_session: Final = True
    pid: Final[int | None] = None

    def __init__(self, server: ServerObject) -> None:
        self.version = ""
        self._server = server
        self._task: asyncio.Task[None] | None = None
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._receive: Receive | None = None
        self._lost: OnLost | None = None
        self._is_closed = False

    async def open(self, receive: Receive, lost: OnLost) -> None:
        """Run the object on a new connection; raises ToolError."""
        self._receive = receive
        self._lost = lost
        context = await self._server.enter(self)
        self._task = asyncio.get_running_loop().create_task(self._run(), context=context)

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
            raise RunnerDied(f"server {self._server.name} is gone", began=False)
        if self._inbox.qsize() >= MAX_UNREAD:
            raise ToolError.unavailable(f"server {self._server.name} does not read what it is sent")
        self._inbox.put_nowait(body)

    def listen(self) -> None:
        """Do nothing: one stream carries everything."""

    async def close(self) -> None:
        """End its input, wait a moment for its end, and leave the server."""
        self._is_closed = True
        self._inbox.put_nowait(None)
        if self._task is not None:
            await _end_in_time(self._task)
        await self._server.leave(self)

    def fail(self, how: str) -> None:
        """Tell that the server is gone, once."""
        if not self._is_closed:
            self._is_closed = True
            self._inbox.put_nowait(None)
            assert self._lost is not None
            self._lost(f"server {self._server.name} {how}")

    async def _run(self) -> None:
        from mcp.server.runner import serve_dual_era_loop  # importing the SDK takes a second

        assert self._receive is not None
        low = self._server.low_level
        reader: Any = InProcessReader(self._inbox)
        writer: Any = InProcessWriter(self._receive)
        how = "ended by itself"
        try:
            await serve_dual_era_loop(
                low,
                reader,
                writer,
                lifespan_state=self._server.lifespan_state,
                init_options=low.create_initialization_options(),
            )
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever its author's code raises
            how = f"failed: {error!r}"
        self.fail(how)


async def load_server(module: str, name: str) -> object:
    """Return the server that `file.py`, `file.py:server` or `package.module:server` names; raises ToolError.

    A function with that name makes the server, as for `fastmcp run`.
    """
    path, colon, attribute = module.rpartition(":") if ":" in module else (module, "", "")
    try:
        # It runs on the loop's thread, although a slow import keeps everybody waiting: the tools run on this
        # thread, too, and what a file makes may belong to its thread, such as a connection of `sqlite3`.
        found = run_file(path) if path.endswith(".py") else importlib.import_module(path)
        servers = servers_in(found)
        if not colon:
            if not servers:
                raise CallerError(f"there is no server in {path}")
            return servers[only_server(servers, path)]
        value: object = found
        for part in (attribute or "server").split("."):
            value = getattr(value, part)
        if inspect.isfunction(value):
            value = value()
            value = await value if inspect.isawaitable(value) else value
    except Exception as error:  # a module of somebody's own may raise anything
        why = error if isinstance(error, CallerError) else repr(error)
        raise ToolError.not_found(f"server {name}: {module} cannot be loaded: {why}") from error
    if low_level_server(value) is None:
        hint = f"; servers there: {', '.join(servers)}" if servers else ""
        raise ToolError.not_found(f"server {name}: {_no_server(module, value)}{hint}")
    return value


async def _tools_with_rounds(server: Any) -> list[str]:
    """The tools whose functions say that they may return `InputRequiredResult`, which only 2026-07-28 has.

    Nothing in a list of tools tells that. Tools of mounted servers, and those added later, are not found.
    """
    from mcp.server.mcpserver.resolve import returns_input_required  # importing the SDK takes a second

    found: list[str] = []
    with suppress(Exception):  # neither library promises where its functions are; a call finds it out, too
        own = getattr(server, "local_provider", None)  # of FastMCP
        tools = server._tool_manager.list_tools() if own is None else await own.list_tools()
        for tool in tools:
            with suppress(Exception):  # an annotation that cannot be read
                if returns_input_required(tool.fn):
                    found.append(tool.name)
    return found


def _no_server(module: str, value: object) -> str:
    return f"{module} is no MCP server of `mcp` or `fastmcp`, but of type {type(value).__qualname__}"


async def _end_in_time(task: "asyncio.Task[None]", *, cancel: bool = False) -> None:
    """Wait for a task's end; one that takes too long is cancelled, and left alone if that does not help."""
    if cancel:
        task.cancel()
    if not (await asyncio.wait([task], timeout=CLOSE_S))[0]:
        task.cancel()
        await asyncio.wait([task], timeout=CLOSE_S)


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
        """Do nothing."""

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
        """Do nothing."""

    async def __aenter__(self) -> "InProcessWriter":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
