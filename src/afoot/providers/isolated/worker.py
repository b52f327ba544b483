"""A child: it loads its module once, then runs one call after the other, as a gateway would.

The loop of this process carries messages alone; the tool runs beside it, so that it can always be reached.
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
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from afoot.core.facts import Result
from afoot.core.isolation import Isolation
from afoot.errors import AfootError
from afoot.providers import bars, capture, reporting
from afoot.providers.context import MESSAGE_LIMIT, current
from afoot.providers.function import FunctionProvider, FunctionTool
from afoot.providers.hygiene import plain_text
from afoot.providers.isolated import children
from afoot.providers.isolated.footprint import OURS, Place, at_work, cpu_s, has_left, limit
from afoot.providers.isolated.frames import (
    MOST,
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
from afoot.providers.isolated.guard import reports_to
from afoot.providers.isolated.pipe_run import ROOM, Pipe, PipeRun, troubled, whole
from afoot.providers.loading import load, run_file
from afoot.providers.options import Settings
from afoot.providers.reporting import VARIABLE

HERE: Final = Isolation(enabled=False)
_TRACE: Final = 64_000  # characters: more than is kept, as it is cut once more when it has no secrets
_LONGEST: Final = 256 * 1024  # bytes of a report from another process
_MANY: Final = 1000  # of them at once: more than a socket holds, and a flood keeps nobody else waiting


def main(address: str, secret: str, child: int, source: Source) -> None:
    """The life of a child, until the gateway hangs up."""
    os.environ[VARIABLE] = reports_to(address, child)
    tools, error = _loaded(source)
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    line.sendall(frame(Hello(secret, child, error)))
    if error:
        line.recv(1)  # until the gateway has heard it: the news of an end comes on another way
    else:
        asyncio.run(_serve(line, tools, os.environ[VARIABLE]))


async def _serve(line: socket.socket, tools: list[Callable[..., Any]], reports: str) -> None:
    loop = asyncio.get_running_loop()
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    datagrams.bind(reports)
    datagrams.setblocking(False)
    worker = Worker(tools, loop, datagrams)
    loop.add_signal_handler(signal.SIGTERM, worker.interrupt)
    loop.add_reader(datagrams, worker.relay)
    await loop.create_unix_connection(lambda: worker, sock=line)
    await worker.gone.wait()


class Worker(asyncio.Protocol):
    """The child's end of the pipe, and the call that runs."""

    def __init__(
        self, tools: list[Callable[..., Any]], loop: asyncio.AbstractEventLoop, datagrams: socket.socket
    ) -> None:
        self.gone = asyncio.Event()
        self._loop, self._datagrams = loop, datagrams
        self._tools, self._limit, self._place = tools, MESSAGE_LIMIT, Place()
        self._provider = _provider(tools, MESSAGE_LIMIT)
        self._frames: Frames[ToChild] = Frames(ToChild, MOST)
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
                assert self._pipe is not None
                self._run = PipeRun(said, self._pipe)
                self._task = self._loop.create_task(self._work(said, self._run))
            elif self._run is not None:
                self._run.hear(said)
                if isinstance(said, Cancel) and self._task is not None:
                    # Not before it has begun: it would never say that it is over.
                    self._loop.call_soon(self._task.cancel, said.reason)

    def pause_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.is_full = True

    def resume_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.emptied()

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(0)  # the gateway is gone, or needs this child no more; the keeper clears up

    def relay(self) -> None:
        """What the tool's own processes have reported."""
        with suppress(OSError):  # there is no more
            for _ in range(_MANY):
                data = self._datagrams.recv(_LONGEST)
                with suppress(ValueError, RecursionError):
                    said = msgspec.json.decode(data, type=tuple[Any, Any, Any])
                    if self._run is not None:
                        self._run.relayed(*said)

    def interrupt(self) -> None:
        """SIGTERM: whatever Python the tool runs is left by an exception, so that it can clear up."""
        run = self._run
        for thread in threading.enumerate() if run is not None and run.cancelled else ():
            if thread.name.startswith(OURS) and thread.ident is not None:
                ident, error = ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)

    async def _work(self, begin: Begin, run: PipeRun) -> None:
        before, others = cpu_s(), at_work(self._loops())
        try:
            limit(begin.limits, before)
            done = Done(whole(await self._called(begin, run)))
            limit(Limits(), 0)  # to say what came of it may need more than was left
        except BaseException as error:
            limit(Limits(), 0)
            done = Done(trouble=_explained(error, begin.limits))
        self.relay()  # before its end, as it was said
        run.is_over, self._run = True, None
        for stream in (sys.__stdout__, sys.__stderr__):
            with suppress(Exception):
                stream.flush()  # pyrefly: ignore[missing-attribute]
        left = not self._place.restore() or has_left(others, self._loops())
        self._finish(replace(done, cpu_s=round(cpu_s() - before, 6), left=left))

    def _finish(self, done: Done) -> None:
        """Say that the call is over, whatever it gave."""
        assert self._pipe is not None
        try:
            self._pipe.send(done)
        except Exception as error:
            self._pipe.send(replace(done, result=None, trouble=_explained(error, Limits())))
        self._pipe.flush()

    def _loops(self) -> list[asyncio.AbstractEventLoop]:
        """Those that async tools have here."""
        found = (getattr(function, "__afoot_tool__").own.loop for function in self._tools)  # noqa: B009
        return [loop for loop in found if loop is not None]

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
        stream = open(number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        setattr(sys, f"__{name}__", stream)
        setattr(sys, name, _Quiet(stream))
    capture.install()
    logging.getLogger("afoot").setLevel(logging.CRITICAL)  # what it has to say is said to the call
    os.register_at_fork(after_in_child=_forked)
    try:
        children.is_loading = True
        module = _run(source.file) if source.file else import_module(source.module)
        children.is_loading = False
        bars.patch()
        tools = load(module)
        for function in tools:
            found: FunctionTool = getattr(function, "__afoot_tool__")  # noqa: B009
            found.own_loop = found.is_async  # the loop here is for messages alone
        return tools, ""
    except Exception as error:
        return [], plain_text(
            str(error) if isinstance(error, AfootError) else f"{type(error).__name__}: {error}"
        )


def _run(file: str) -> ModuleType:
    """The file as the main module here, by the name under which `multiprocessing` runs it elsewhere."""
    module = run_file(file, "__mp_main__")
    # Importing `multiprocessing` sets the latter.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module
    return module


def _forked() -> None:
    """In a process that the tool forked: it prints to the pipes it has, and reports to this child."""
    ctx = current.get()
    current.set(None)
    if ctx is not None:
        ctx._thread, ctx._report = threading.get_ident(), reporting.report


def _provider(tools: list[Callable[..., Any]], message_limit: int) -> FunctionProvider:
    settings = Settings(message_limit=message_limit, cancel_waits=True, isolation=HERE)
    return FunctionProvider(tools, settings=settings)


def _explained(error: BaseException, limits: Limits) -> Trouble:
    trouble = troubled(error)
    # Each thread has its stack, which counts; all that Python says of it are these words.
    if limits.memory_bytes and "can't start new thread" in trouble.message:
        trouble = replace(trouble, message=f"{trouble.message}; it may need more memory (raise memory_bytes)")
    if isinstance(error, AfootError):
        return trouble
    if isinstance(error, asyncio.CancelledError):
        return Trouble("cancelled", "cancelled", "cancelled")
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    text = trouble.message
    if isinstance(error, OSError) and error.errno == errno.EMFILE and limits.open_files:
        text += f" (each of its processes may have {limits.open_files}: raise open_files)"
    return Trouble(text, kind=kind, trace=_trace(error))


def _trace(error: BaseException) -> str:
    try:
        return plain_text("".join(traceback.format_exception(error))[-_TRACE:])
    except Exception:  # a type of the author's own may raise anything
        return ""
