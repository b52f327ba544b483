"""A child: it loads its module once, then runs one call after the other, as a gateway would.

The loop of this process carries messages alone; the tool runs beside it, so that it can always be reached.
"""

import asyncio
import ctypes
import logging
import math
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, cast

import msgspec

from afoot.core.facts import Result
from afoot.core.isolation import Isolation
from afoot.errors import AfootError
from afoot.providers import bars, capture, reporting
from afoot.providers.context import MESSAGE_LIMIT, current
from afoot.providers.function import FunctionProvider, FunctionTool
from afoot.providers.isolated.frames import (
    Begin,
    Cancel,
    Done,
    Frames,
    Hello,
    Limits,
    Source,
    ToChild,
    Trouble,
    frame,
)
from afoot.providers.isolated.pipe_run import ROOM, Pipe, PipeRun, troubled, whole
from afoot.providers.isolated.processes import IS_LINUX, cpu_of
from afoot.providers.loading import load, run_file
from afoot.providers.options import Settings
from afoot.providers.reporting import VARIABLE

HERE: Final = Isolation(enabled=False)
_MOST: Final = 64 * 1024 * 1024
_TRACE: Final = 16_000  # characters


def main(address: str, secret: str, child: int, source: Source) -> None:
    """The life of a child, until the gateway hangs up."""
    os.environ[VARIABLE] = f"{address}.{child}"
    tools, error = _loaded(source)
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    line.sendall(frame(Hello(secret, child, error)))
    if not error:
        asyncio.run(_serve(line, tools, os.environ[VARIABLE]))


async def _serve(line: socket.socket, tools: list[Callable[..., Any]], reports: str) -> None:
    loop = asyncio.get_running_loop()
    worker = Worker(tools, loop)
    loop.add_signal_handler(signal.SIGTERM, worker.interrupt)
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(reports)
    datagrams.setblocking(False)
    loop.add_reader(datagrams, worker.relay, datagrams)
    await loop.create_unix_connection(lambda: worker, sock=line)
    await worker.gone.wait()


class Worker(asyncio.Protocol):
    """The child's end of the pipe, and the call that runs."""

    def __init__(self, tools: list[Callable[..., Any]], loop: asyncio.AbstractEventLoop) -> None:
        self.gone = asyncio.Event()
        self._loop = loop
        self._tools, self._limit = tools, MESSAGE_LIMIT
        self._provider = _provider(tools, MESSAGE_LIMIT)
        self._frames: Frames[ToChild] = Frames(ToChild, _MOST)
        self._pipe: Pipe | None = None
        self._run: PipeRun | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        wire = cast(asyncio.Transport, transport)
        wire.set_write_buffer_limits(ROOM)
        self._pipe = Pipe(wire, self._loop)

    def data_received(self, data: bytes) -> None:
        for said in self._frames.feed(data):
            if isinstance(said, Begin):
                self._task = self._loop.create_task(self._work(said))
            elif self._run is not None:
                self._run.hear(said)
                if isinstance(said, Cancel) and self._task is not None:
                    self._task.cancel(said.reason)

    def pause_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.is_full = True

    def resume_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.emptied()

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(0)  # the gateway is gone, or needs this child no more; the keeper clears up

    def relay(self, datagrams: socket.socket) -> None:
        """What the tool's own processes report; only the newest counts."""
        with suppress(OSError, ValueError, TypeError):
            while True:
                said = msgspec.json.decode(datagrams.recv(65_536), type=tuple[Any, Any, Any])
                if self._run is not None:
                    self._run.relayed(*said)

    def interrupt(self) -> None:
        """SIGTERM: whatever Python the tool runs is left by an exception, so that it can clear up."""
        run = self._run
        for thread in threading.enumerate() if run is not None and run.cancelled else ():
            if thread.name.startswith(("afoot-tool-", "afoot-loop-")) and thread.ident is not None:
                ident, error = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)

    async def _work(self, begin: Begin) -> None:
        assert self._pipe is not None
        pipe, run = self._pipe, PipeRun(begin, self._pipe)
        self._run = run
        before = _cpu_s()
        _limit(begin.limits, before)
        result, trouble = None, None
        try:
            result = whole(await self._called(begin, run))
        except BaseException as error:
            trouble = _explained(error)
        run.is_over, self._run = True, None
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(Exception):
                stream.flush()  # pyrefly: ignore[missing-attribute]
        pipe.send(Done(result, trouble, round(_cpu_s() - before, 6), _has_children()))
        pipe.flush()

    async def _called(self, begin: Begin, run: PipeRun) -> Result:
        if begin.message_limit != self._limit:
            self._provider, self._limit = _provider(self._tools, begin.message_limit), begin.message_limit
        return await self._provider.prepare(begin.tool, begin.arguments)(run)


class _Quiet:
    """In place of a stream: what is printed in a call is heard there, and must not be heard twice."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what belongs to no call."""
        return len(text) if current.get() is not None else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _loaded(source: Source) -> tuple[list[Callable[..., Any]], str]:
    """The tools of the module, or why there are none."""
    for number, name in enumerate(("stdout", "stderr"), 1):
        stream = open(number, "w", buffering=1, errors="replace", closefd=False)
        setattr(sys, f"__{name}__", stream)
        setattr(sys, name, _Quiet(stream))
    capture.install()
    logging.getLogger("afoot").setLevel(logging.CRITICAL)  # what it has to say is said to the call
    os.register_at_fork(after_in_child=_forked)
    try:
        module = run_file(source.file) if source.file else import_module(source.module)
        bars.patch()
        tools = load(module)
        for function in tools:
            found: FunctionTool = getattr(function, "__afoot_tool__")  # noqa: B009
            found.own_loop = found.is_async  # the loop here is for messages alone
        return tools, ""
    except Exception as error:
        return [], str(error) if isinstance(error, AfootError) else f"{type(error).__name__}: {error}"


def _forked() -> None:
    """In a process that the tool forked: it prints to the pipes it has, and reports to this child."""
    ctx = current.get()
    current.set(None)
    if ctx is not None:
        ctx._thread, ctx._report = threading.get_ident(), reporting.report


def _provider(tools: list[Callable[..., Any]], message_limit: int) -> FunctionProvider:
    settings = Settings(message_limit=message_limit, cancel_waits=True, isolation=HERE)
    return FunctionProvider(tools, settings=settings)


def _explained(error: BaseException) -> Trouble:
    trouble = troubled(error)
    if isinstance(error, AfootError):
        return trouble
    if isinstance(error, asyncio.CancelledError):
        return Trouble("cancelled", "cancelled", "cancelled")
    trace = "".join(traceback.format_exception(error))[-_TRACE:]
    return Trouble(trouble.message, kind=type(error).__name__, trace=trace)


def _limit(limits: Limits, spent_s: float) -> None:
    """The system's own limits, for each process of the call; the keeper looks at all of them together.

    Memory by RLIMIT_DATA, which counts what is written to: address space alone, as RLIMIT_AS has it, is
    reserved by the hundred gigabytes in some runtimes and means nothing.
    """
    wanted = {
        resource.RLIMIT_DATA if IS_LINUX else resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: math.ceil(spent_s + limits.cpu_s) + 1 if limits.cpu_s else 0,
    }
    for what, most in wanted.items():
        hard = resource.getrlimit(what)[1]
        soft = hard if not most else most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (soft, hard))


def _cpu_s() -> float:
    """Processor time of this process, and of those it has waited for."""
    return sum(cpu_of(resource.getrusage(who)) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _has_children() -> bool:
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
