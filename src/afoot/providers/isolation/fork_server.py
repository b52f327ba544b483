"""`ForkServer` is the process that forks the children of one gateway, and leaves nothing of them behind.

It is small, has no threads and loads no tool, so that forking it is safe and quick. A process that a child
started becomes the fork server's own when the child dies, and is killed. When the gateway is gone, also by
`kill -9`, the fork server kills everything below it and ends.
"""

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from msgspec import Struct

from afoot.providers.isolation import processes
from afoot.providers.isolation.frames import (
    ChildExit,
    CpuUsage,
    FlushOutput,
    ForkChild,
    ForkServerConfig,
    ForkServerReady,
    FrameDecoder,
    FromForkServer,
    InvalidFrame,
    OutputComplete,
    OutputLines,
    ResourceLimits,
    SignalChild,
    ToForkServer,
    ToolSource,
    WatchCall,
    encode_frame,
    report_address,
)

MEASURE_INTERVAL_S: Final = 0.1  # between two measurements of what running calls use
MEASURE_SHARE: Final = 20  # a measurement may take one part in so many of the time
BUSY_CPU_S: Final = 0.1  # a call that has used so much processor time gets a lower priority
MAX_GROWTH_BYTES: Final = 128 * 1024 * 1024  # calls may leave so much in a child; the next one pays for it
MAX_BACKLOG_BYTES: Final = 1024 * 1024  # lines are dropped while the gateway has so much left to read
STREAMS: Final = ("stdout", "stderr")
MAX_LINES: Final = 200
MAX_CHARACTERS: Final = 64 * 1024
_MAX_LINE: Final = 4000
_MAX_FRAME_BYTES: Final = 1024 * 1024
_READ_BYTES: Final = 65_536
_MAX_READS: Final = 16  # of one stream at a time, so that a flood delays nobody else

StreamLines = tuple[str, list[str]]


def serve(config: ForkServerConfig, reaper: int) -> None:
    """Run a fork server until its gateway is gone; `reaper` is the pid of its parent."""
    # Imported here once, so that each child that is forked has it already. Frozen objects are left alone by
    # the garbage collector, which would otherwise write to their pages in each child and so copy them.
    import gc

    import afoot.providers.isolation.child_main  # noqa: F401

    gc.freeze()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(config.address)
        except OSError:  # the gateway has gone meanwhile
            return
        ForkServer(config, connection, reaper).run()


class ChildOutput:
    """The stdout and stderr of one child and all below it: two pipes, read to the end, sent up to a limit.

    Output beyond the limit is read and dropped, so that no process waits for room in a pipe.
    """

    def __init__(self) -> None:
        self.read_ends: list[int] = []
        self._write_ends: list[int] = []
        self._unfinished = dict.fromkeys(STREAMS, b"")
        self._left_lines = MAX_LINES
        self._left_characters = MAX_CHARACTERS
        try:
            for _ in STREAMS:
                read_end, write_end = os.pipe()
                self.read_ends.append(read_end)
                self._write_ends.append(write_end)
                os.set_blocking(read_end, False)
        except OSError:  # there are no more descriptors
            self.close()
            raise

    def reset_limit(self) -> None:
        """Allow the next call as much output as the one before."""
        self._left_lines = MAX_LINES
        self._left_characters = MAX_CHARACTERS

    def redirect_in_child(self) -> None:
        """Make the child write to these pipes, and read from /dev/null; called in the child."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, end in enumerate([nothing, *self._write_ends]):
            os.dup2(end, number)

    def close_write_ends(self) -> None:
        """Close the write ends in the fork server: they belong to the child alone."""
        for end in self._write_ends:
            os.close(end)
        self._write_ends = []

    def read(self, selector: selectors.BaseSelector) -> Iterator[StreamLines]:
        """The lines that have come, as far as the limit allows."""
        for name, end in zip(STREAMS, self.read_ends, strict=True):
            for _ in range(_MAX_READS):
                try:
                    data = os.read(end, _READ_BYTES)
                except OSError:
                    break
                if not data:  # the child closed it
                    with suppress(KeyError, ValueError):
                        selector.unregister(end)
                    break
                yield name, self._split(name, data)

    def finish(self) -> list[StreamLines]:
        """The rest of each stream, which no newline ended, as a line."""
        unfinished = self._unfinished
        self._unfinished = dict.fromkeys(STREAMS, b"")
        lines = [(name, self._limited(rest)) for name, rest in unfinished.items() if rest.strip()]
        return [(name, [text]) for name, text in lines if text]

    def close(self) -> None:
        """Close all ends that are open here."""
        for end in (*self.read_ends, *self._write_ends):
            os.close(end)

    def _split(self, name: str, data: bytes) -> list[str]:
        if self._left_lines < 0:
            return []
        *done, rest = (self._unfinished[name] + data).split(b"\n")
        # A carriage return starts the line anew: of a progress bar only its last state is kept.
        self._unfinished[name] = rest[rest.rfind(b"\r", 0, -1) + 1 :][: 2 * _MAX_LINE]
        return [text for text in map(self._limited, done) if text]

    def _limited(self, line: bytes) -> str:
        """A line as text, a remark where the limit is reached, and nothing beyond it."""
        text = line[-_MAX_LINE * 4 :].decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2][:_MAX_LINE]
        if not text.strip() or self._left_lines < 0:
            return ""
        self._left_lines -= 1
        self._left_characters -= len(text)
        if self._left_lines >= 0 and self._left_characters >= 0:
            return text
        self._left_lines = -1
        return f"output is cut here: over {MAX_LINES} lines or {MAX_CHARACTERS // 1024} KB"


class ForkedChild(Struct):
    """One child, and what is measured of it."""

    child: int
    pid: int
    output: ChildOutput
    limits: ResourceLimits | None = None  # while a call runs in it
    base_s: float = 0.0  # processor time before that call
    base_bytes: int = 0  # memory before its first call
    why: str = ""  # the limit that it was killed for
    is_worn: bool = False  # its priority is lower, which only root could undo; or its memory has grown


class ForkServer:
    """The children of one gateway, and the connection to it."""

    def __init__(self, config: ForkServerConfig, connection: socket.socket, reaper: int) -> None:
        self._config = config
        self._reaper = reaper
        self._connection = connection
        self._frames: FrameDecoder[ToForkServer] = FrameDecoder(ToForkServer, _MAX_FRAME_BYTES)
        self._outbox = bytearray()
        self._children: dict[int, ForkedChild] = {}
        self._is_clean = True  # no orphan is left
        self._next_measure = 0.0
        self._selector = selectors.DefaultSelector()
        self._wakeup, self._signalled = socket.socketpair()

    def run(self) -> None:
        """Serve until the gateway is gone."""
        for end in (self._connection, self._wakeup, self._signalled):
            end.setblocking(False)
        signal.set_wakeup_fd(self._signalled.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP):  # of a terminal: the gateway ends its calls itself
            signal.signal(number, signal.SIG_IGN)
        processes.adopt_orphans()
        processes.die_with_parent(signal.SIGTERM, self._reaper)
        self._selector.register(self._connection, selectors.EVENT_READ)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._send(ForkServerReady(self._config.secret))
        try:
            while True:
                self._run_once()
        except (EOFError, ConnectionError, InvalidFrame):
            pass  # the gateway is gone
        finally:
            self._kill_everything()

    def _run_once(self) -> None:
        is_busy = any(forked.limits for forked in self._children.values()) or not self._is_clean
        timeout = max(0.0, self._next_measure - time.monotonic()) if is_busy else None
        for key, events in self._selector.select(timeout):
            if key.fileobj is self._wakeup:
                self._wakeup.recv(4096)
                if os.getppid() != self._reaper:  # any other SIGTERM was sent to every process there is
                    raise EOFError
                self._reap()
            elif key.fileobj is self._connection:
                self._transfer(events)
            elif key.data in self._children:
                self._send_output(self._children[key.data])
        if is_busy and time.monotonic() >= self._next_measure:
            self._measure_all()

    def _transfer(self, events: int) -> None:
        """Write to the gateway and read from it, as far as the connection is ready."""
        if events & selectors.EVENT_WRITE:
            del self._outbox[: self._connection.send(self._outbox)]
            self._select_events()
        if events & selectors.EVENT_READ:
            data = self._connection.recv(65_536)
            if not data:
                raise EOFError
            for message in self._frames.feed(data):
                self._execute(message)

    def _execute(self, message: ToForkServer) -> None:
        if isinstance(message, ForkChild):
            self._fork(message.child, message.source)
            return
        forked = self._children.get(message.child)
        if forked is None:
            return  # it died meanwhile, and the gateway was told
        match message:
            case WatchCall(limits=limits):
                forked.output.reset_limit()
                before = processes.process_info(forked.pid)
                forked.limits = limits
                forked.base_s = before.cpu_s
                forked.why = ""
                forked.base_bytes = forked.base_bytes or before.memory_bytes
                self._next_measure = min(self._next_measure, time.monotonic() + MEASURE_INTERVAL_S)
            case FlushOutput():
                forked.limits = None
                self._send_output(forked)
                self._send_lines(forked, forked.output.finish())
                forked.is_worn = forked.is_worn or self._has_grown(forked)
                self._send(OutputComplete(forked.child, forked.is_worn))
            case SignalChild(number=signal.SIGKILL):
                processes.kill_tree(forked.pid)
            case SignalChild(number=number):
                processes.signal_tree(forked.pid, number)

    def _fork(self, child: int, source: ToolSource) -> None:
        fork_server = os.getpid()
        output = None
        try:
            output = ChildOutput()
            pid = os.fork()
        except OSError as error:
            if output is not None:
                output.close()
            why = f"the system has no room for it: {error}"
            self._send(ChildExit(child, -int(signal.SIGKILL), why=why))
            return
        if not pid:
            self._run_child(child, source, output, fork_server)
        output.close_write_ends()
        self._children[child] = ForkedChild(child, pid, output)
        for end in output.read_ends:
            self._selector.register(end, selectors.EVENT_READ, child)

    def _run_child(self, child: int, source: ToolSource, output: ChildOutput, fork_server: int) -> None:
        """Drop everything of the fork server and run a worker until its end; called in the new process."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            processes.die_with_parent(signal.SIGKILL, fork_server)
            os.setsid()  # which also gives it a scheduling group of its own, where sessions have one
            output.redirect_in_child()
            processes.close_files()
            processes.adopt_orphans()
            processes.prefer_as_oom_victim()
            processes.leave_processors_free(self._config.spare)
            from afoot.providers.isolation.child_main import main

            main(self._config.address, self._config.secret, child, source)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        """Reap the children that died, kill what they had started, and tell the gateway."""
        for forked in tuple(self._children.values()):
            try:
                pid, status, used = os.wait4(forked.pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if not pid:
                continue
            del self._children[forked.child]
            spent_s = processes.total_cpu_s(used) + self._kill_orphans()
            self._send_output(forked)
            self._send_lines(forked, forked.output.finish())
            self._release(forked)
            self._send(
                ChildExit(
                    forked.child,
                    os.waitstatus_to_exitcode(status),
                    max(0.0, spent_s - forked.base_s),
                    forked.why,
                    used.ru_maxrss * 1024,
                )
            )
        if not self._is_clean:
            self._kill_orphans()

    def _kill_orphans(self) -> float:
        """Kill descendants of children that died; gives the processor time they had used."""
        spent_s, self._is_clean = processes.kill_orphans([forked.pid for forked in self._children.values()])
        return spent_s

    def _measure_all(self) -> None:
        """Measure what running calls use, and end those that use too much."""
        began = time.monotonic()
        for forked in self._children.values():
            if forked.limits is not None and not forked.why:
                self._enforce(forked, forked.limits, processes.tree_usage(forked.pid))
        if not self._is_clean:
            self._kill_orphans()
        took_s = time.monotonic() - began
        self._next_measure = time.monotonic() + max(MEASURE_INTERVAL_S, MEASURE_SHARE * took_s)

    def _enforce(self, forked: ForkedChild, limits: ResourceLimits, found: processes.TreeUsage) -> None:
        spent_s = found.cpu_s - forked.base_s
        if limits.cpu_s and spent_s > limits.cpu_s:
            forked.why = "cpu"
        elif limits.processes and found.processes > limits.processes:
            forked.why = "processes"
        elif 0 < limits.memory_bytes < found.memory_bytes:
            # Forked processes share most of their memory: before one is killed, it is counted exactly.
            forked.why = "memory" if processes.uses_more_memory(forked.pid, limits.memory_bytes) else ""
        if forked.why:
            processes.kill_tree(forked.pid)
            return
        self._send(CpuUsage(forked.child, spent_s))
        if spent_s > BUSY_CPU_S and not forked.is_worn and self._config.nice:
            forked.is_worn = True
            processes.lower_priority(forked.pid, self._config.nice)

    def _has_grown(self, forked: ForkedChild) -> bool:
        return processes.process_info(forked.pid).memory_bytes > forked.base_bytes + MAX_GROWTH_BYTES

    def _send_output(self, forked: ForkedChild) -> None:
        for stream, lines in forked.output.read(self._selector):
            self._send_lines(forked, [(stream, lines)])

    def _send_lines(self, forked: ForkedChild, written: list[StreamLines]) -> None:
        for stream, lines in written:
            if lines and len(self._outbox) < MAX_BACKLOG_BYTES:
                self._send(OutputLines(forked.child, stream, lines))

    def _release(self, forked: ForkedChild) -> None:
        """Close the pipes of a child that died, and remove its socket."""
        for end in forked.output.read_ends:
            with suppress(KeyError, ValueError):
                self._selector.unregister(end)
        forked.output.close()
        with suppress(OSError):  # it had none yet
            os.unlink(report_address(self._config.address, forked.child))

    def _send(self, message: FromForkServer) -> None:
        self._outbox += encode_frame(message)
        with suppress(BlockingIOError):
            del self._outbox[: self._connection.send(self._outbox)]
        self._select_events()

    def _select_events(self) -> None:
        """Wait for the connection to take more only while something is left to send."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)
        if self._selector.get_key(self._connection).events != events:
            self._selector.modify(self._connection, events)

    def _kill_everything(self) -> None:
        """The gateway is gone: kill and reap everything below."""
        processes.kill_tree(os.getpid(), itself=False)
        for forked in self._children.values():
            with suppress(ChildProcessError):
                os.waitpid(forked.pid, 0)
        processes.kill_all_children()
