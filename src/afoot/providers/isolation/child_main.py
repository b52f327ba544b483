"""`main` is a child process: it loads its module once, then runs one call after the other like a gateway.

The event loop of this process only carries messages. The tool runs in threads beside it, so that a cancel or
an answer can always reach it.
"""

import asyncio
import ctypes
import errno
import logging
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from afoot.config.tables import IsolationSettings
from afoot.core.facts import Result
from afoot.errors import AfootError
from afoot.providers.content import without_surrogates
from afoot.providers.forked_signals import add_signal_handler
from afoot.providers.functions import output_capture, reporting
from afoot.providers.functions.context import MESSAGE_LIMIT, current_context
from afoot.providers.functions.lifespans import App, Lifespans
from afoot.providers.functions.loading import Loaded, offers_of, run_file
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.progress import bars
from afoot.providers.functions.reporting import SOCKET_VARIABLE
from afoot.providers.functions.threads import LoopThread
from afoot.providers.functions.tool import FunctionProvider, FunctionTool
from afoot.providers.isolation import pool
from afoot.providers.isolation.frames import (
    MAX_FRAME_BYTES,
    CallDone,
    CancelCall,
    ChildReady,
    EndChild,
    FrameDecoder,
    RemoteError,
    ResourceLimits,
    RunCall,
    ToChild,
    ToolSource,
    encode_frame,
    report_address,
)
from afoot.providers.isolation.usage import (
    CALL_THREAD_PREFIXES,
    ProcessState,
    active_work,
    has_leftovers,
    process_cpu_s,
    set_rlimits,
)
from afoot.providers.isolation.worker_run import (
    PIPE_BUFFER_BYTES,
    GatewayPipe,
    WorkerRun,
    encodable_result,
    to_remote_error,
)
from afoot.providers.offers.offer import is_tool

NO_ISOLATION: Final = IsolationSettings(enabled=False)
_MAX_TRACE: Final = 64_000  # characters, more than are kept: the gateway cuts again after it removed secrets
_MAX_DATAGRAM: Final = 256 * 1024  # bytes of a report from another process
_MAX_DATAGRAMS: Final = 1000  # read at once: more than a socket holds, so that a flood delays nobody else


def main(address: str, secret: str, child: int, source: ToolSource) -> None:
    """Run a child until the gateway disconnects."""
    os.environ[SOCKET_VARIABLE] = report_address(address, child)
    loaded, error = _load_tools(source)
    lifespan = ChildLifespan(loaded)
    error = error or lifespan.open()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    connection.sendall(encode_frame(ChildReady(secret, child, error, lifespan.is_open)))
    if error:
        # Wait until the gateway has read it: the fork server's report of our exit takes another way.
        connection.recv(1)
    else:
        asyncio.run(_serve(connection, loaded.tools, lifespan, os.environ[SOCKET_VARIABLE]))


async def _serve(
    connection: socket.socket, tools: list[Callable[..., Any]], lifespan: "ChildLifespan", reports: str
) -> None:
    loop = asyncio.get_running_loop()
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(reports)
    datagrams.setblocking(False)
    worker = Worker(tools, lifespan, loop, datagrams)
    add_signal_handler(signal.SIGTERM, worker.interrupt)
    loop.add_reader(datagrams, worker.relay_reports)
    await loop.create_unix_connection(lambda: worker, sock=connection)
    await worker.disconnected.wait()


class ChildLifespan:
    """The lifespan of the module of this child, on the one loop on which its async tools run, too.

    Tools without a lifespan have a loop each; here things of the state would not work on another loop.
    """

    def __init__(self, loaded: Loaded) -> None:
        self.lifespans = Lifespans()
        self.lifespans.start_s = None  # the gateway limits the start of a child
        self.is_open = False
        self._loaded = loaded
        self._thread = LoopThread("lifespan")

    def open(self) -> str:
        """Open the lifespan, if there is one; returns the error if that fails."""
        app = self._loaded.app
        if app is None or app.lifespan is None:
            return ""
        for function in self._loaded.tools:
            vars(getattr(function, "__afoot_tool__"))["loop_thread"] = self._thread  # noqa: B009
        self.is_open = True
        try:
            self._wait(self._opened(app))
        except Exception as error:
            return without_surrogates(str(error))
        return ""

    def close(self) -> None:
        """Close the lifespan, within its time limit."""
        if self.is_open:
            self._wait(self.lifespans.__aexit__())

    async def _opened(self, app: App) -> None:
        await self.lifespans.open(app).opened()

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._thread.running_loop()).result()


class Worker(asyncio.Protocol):
    """The child's end of the connection, and the call that runs."""

    def __init__(
        self,
        tools: list[Callable[..., Any]],
        lifespan: ChildLifespan,
        loop: asyncio.AbstractEventLoop,
        datagrams: socket.socket,
    ) -> None:
        self.disconnected = asyncio.Event()
        self._loop = loop
        self._datagrams = datagrams
        self._tools = tools
        self._lifespan = lifespan
        self._message_limit = MESSAGE_LIMIT
        self._initial_state = ProcessState()
        self._provider = _make_provider(tools, lifespan, MESSAGE_LIMIT)
        self._frames: FrameDecoder[ToChild] = FrameDecoder(ToChild, MAX_FRAME_BYTES)
        self._pipe: GatewayPipe | None = None
        self._run: WorkerRun | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        stream.set_write_buffer_limits(PIPE_BUFFER_BYTES)
        self._pipe = GatewayPipe(stream, self._loop)

    def data_received(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            if isinstance(message, RunCall):
                assert self._pipe is not None
                self._run = WorkerRun(message, self._pipe)
                self._task = self._loop.create_task(self._run_call(message, self._run))
            elif isinstance(message, EndChild):
                self._lifespan.close()  # nothing else runs here now
                os._exit(0)
            elif self._run is not None:
                self._run.receive(message)
                if isinstance(message, CancelCall) and self._task is not None:
                    # In the next pass: a task that is cancelled before it began would never send `CallDone`.
                    self._loop.call_soon(self._task.cancel, message.reason)

    def pause_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.is_full = True

    def resume_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.on_room()

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(0)  # the gateway is gone, or needs this child no more; the fork server kills what is left

    def relay_reports(self) -> None:
        """Pass on reports of processes that the tool started."""
        with suppress(OSError):  # there are no more
            for _ in range(_MAX_DATAGRAMS):
                data = self._datagrams.recv(_MAX_DATAGRAM)
                with suppress(ValueError, RecursionError):
                    report = msgspec.json.decode(data, type=tuple[Any, Any, Any])
                    if self._run is not None:
                        self._run.report_unchecked(*report)

    def interrupt(self) -> None:
        """Raise SystemExit in the threads of a cancelled call on SIGTERM, so that the tool can clean up."""
        if self._run is None or not self._run.cancelled:
            return
        for thread in threading.enumerate():
            if thread.name.startswith(CALL_THREAD_PREFIXES) and thread.ident is not None:
                ident = ctypes.c_ulong(thread.ident)
                error = ctypes.py_object(SystemExit)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)

    async def _run_call(self, message: RunCall, run: WorkerRun) -> None:
        cpu_before_s = process_cpu_s()
        work_before = active_work(self._tool_loops())
        try:
            set_rlimits(message.limits, cpu_before_s)
            done = CallDone(encodable_result(await self._call_tool(message, run)))
            # The limits end here: to send the result may need more than the call had left.
            set_rlimits(ResourceLimits(), 0)
        except BaseException as error:
            set_rlimits(ResourceLimits(), 0)
            done = CallDone(trouble=_describe_error(error, message.limits))
        self.relay_reports()  # those that were sent before the end of the call
        run.is_over = True
        self._run = None
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(Exception):
                stream.flush()  # pyrefly: ignore[missing-attribute]
        is_restored = self._initial_state.restore()
        left = not is_restored or has_leftovers(work_before, self._tool_loops())
        self._send_done(replace(done, cpu_s=round(process_cpu_s() - cpu_before_s, 6), left=left))

    async def _call_tool(self, message: RunCall, run: WorkerRun) -> Result:
        if message.message_limit != self._message_limit:
            self._provider = _make_provider(self._tools, self._lifespan, message.message_limit)
            self._message_limit = message.message_limit
        return await self._provider.prepare(message.tool, message.arguments)(run)

    def _send_done(self, done: CallDone) -> None:
        """Send the end of the call; an error instead of a result that cannot be sent."""
        assert self._pipe is not None
        try:
            self._pipe.send(done)
        except Exception as error:
            trouble = _describe_error(error, ResourceLimits())
            self._pipe.send(replace(done, result=None, trouble=trouble))
        self._pipe.flush()

    def _tool_loops(self) -> list[asyncio.AbstractEventLoop]:
        """The event loops on which async tools run here."""
        found = (getattr(function, "__afoot_tool__").loop_thread.loop for function in self._tools)  # noqa: B009
        return [loop for loop in found if loop is not None]


class _SilencedStream:
    """A replacement for stdout or stderr that drops the prints of a call.

    `output_capture` reports that to the call already, and the fork server must not report it once more.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write output that belongs to no call."""
        return len(text) if current_context.get() is not None else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _load_tools(source: ToolSource) -> tuple[Loaded, str]:
    """The tools and the app of the module, and an error if it cannot be loaded."""
    for number, name in enumerate(("stdout", "stderr"), 1):
        stream = open(number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        setattr(sys, f"__{name}__", stream)
        setattr(sys, name, _SilencedStream(stream))
    output_capture.install()
    logging.getLogger("afoot").setLevel(logging.CRITICAL)  # its messages are sent to the call instead
    os.register_at_fork(after_in_child=_after_fork)
    try:
        pool.is_loading = True
        module = _run_as_main(source.file) if source.file else import_module(source.module)
        pool.is_loading = False
        bars.patch()
        loaded = offers_of(module, source.file or source.module)
        loaded = Loaded(list(filter(is_tool, loaded.tools)), loaded.app)
        for function in loaded.tools:
            found: FunctionTool = getattr(function, "__afoot_tool__")  # noqa: B009
            found.own_loop = found.is_async  # the loop of this process only carries messages
        return loaded, ""
    except Exception as error:
        text = str(error) if isinstance(error, AfootError) else f"{type(error).__name__}: {error}"
        return Loaded([]), without_surrogates(text)


def _run_as_main(file: str) -> ModuleType:
    """Run a file as the main module, under the name that `multiprocessing` gives it in its processes."""
    module = run_file(file, "__mp_main__")
    # Importing `multiprocessing` would set the latter.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    return module


def _after_fork() -> None:
    """Prepare a process that the tool forked: it prints to inherited pipes, and reports to this child."""
    ctx = current_context.get()
    current_context.set(None)
    if ctx is not None:
        ctx._thread = threading.get_ident()
        ctx._report = reporting.report


def _make_provider(
    tools: list[Callable[..., Any]], lifespan: ChildLifespan, message_limit: int
) -> FunctionProvider:
    settings = FunctionSettings(message_limit=message_limit, cancel_waits=True, isolation=NO_ISOLATION)
    lifespans = lifespan.lifespans if lifespan.is_open else None
    return FunctionProvider(tools, settings=settings, lifespans=lifespans)


def _describe_error(error: BaseException, limits: ResourceLimits) -> RemoteError:
    described = to_remote_error(error)
    # The stack of each thread counts as memory. Python's words for a lack of it do not say so.
    if limits.memory_bytes and "can't start new thread" in described.message:
        text = f"{described.message}; it may need more memory (raise memory_bytes)"
        described = replace(described, message=text)
    if isinstance(error, AfootError):
        return described
    if isinstance(error, asyncio.CancelledError):
        return RemoteError("cancelled", "cancelled", "cancelled")
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    text = described.message
    if isinstance(error, OSError) and error.errno == errno.EMFILE and limits.open_files:
        text += f" (each of its processes may have {limits.open_files}: raise open_files)"
    return RemoteError(text, kind=kind, trace=_format_trace(error))


def _format_trace(error: BaseException) -> str:
    try:
        return without_surrogates("".join(traceback.format_exception(error))[-_MAX_TRACE:])
    except Exception:  # a type of the author's own may raise anything
        return ""
