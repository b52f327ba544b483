"""The keeper: a process that forks the children of one gateway, and sees to it that nothing of them stays.

It is small, has no threads and loads no tool, so that forking it is safe and quick. What a child starts falls
to the keeper when the child dies; when the gateway is gone, also by `kill -9`, it ends them all and itself.
"""

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from typing import Final

from msgspec import Struct

from afoot.providers.isolated import processes
from afoot.providers.isolated.frames import (
    Died,
    Fork,
    Frames,
    FromKeeper,
    Garbage,
    Limits,
    Said,
    Settle,
    Settled,
    Signal,
    Source,
    ToKeeper,
    Up,
    Used,
    Watch,
    frame,
)
from afoot.providers.isolated.guard import SWEEP_S, Errand, reports_to
from afoot.providers.isolated.output import Output

LOOK_S: Final = 0.1  # between two looks at what running calls use
BUSY_S: Final = 0.1  # a call that has used so much processor time keeps one busy, and steps back
SHARE: Final = 20  # a look may take one part in so many of the time
GROWN: Final = 128 * 1024 * 1024  # bytes that calls may leave in a child; the next one has to pay for them
BACKLOG: Final = 1024 * 1024  # bytes that the gateway has not taken; beyond them lines are dropped
_MOST: Final = 1024 * 1024


class Kept(Struct):
    """One child, and what is being watched of it."""

    child: int
    pid: int
    output: Output
    limits: Limits | None = None  # while a call runs in it
    base_s: float = 0.0  # processor time before that
    base_bytes: int = 0  # memory before its first call
    why: str = ""
    is_worn: bool = False  # it had to step back, and only root could bring it forward again; or it has grown


class Keeper:
    """The children, and the line to the gateway."""

    def __init__(self, errand: Errand, line: socket.socket, guard: int) -> None:
        self._errand, self._guard = errand, guard
        self._line = line
        self._frames: Frames[ToKeeper] = Frames(ToKeeper, _MOST)
        self._out = bytearray()
        self._kept: dict[int, Kept] = {}
        self._is_clean = True
        self._next = 0.0
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()

    def run(self) -> None:
        """Until the gateway is gone."""
        for end in (self._line, self._wake, self._woken):
            end.setblocking(False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        processes.adopt_orphans()
        processes.die_with_parent(signal.SIGTERM, self._guard)
        self._selector.register(self._line, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._say(Up(self._errand.secret))
        try:
            while True:
                self._turn()
        except (EOFError, ConnectionError, Garbage):
            pass  # nobody is there any more
        finally:
            self._end()

    def _turn(self) -> None:
        is_busy = any(one.limits for one in self._kept.values()) or not self._is_clean
        timeout = max(0.0, self._next - time.monotonic()) if is_busy else None
        for key, events in self._selector.select(timeout):
            if key.fileobj is self._wake:
                self._wake.recv(4096)
                if os.getppid() != self._guard:  # any other SIGTERM went to everything there is
                    raise EOFError
                self._reap()
            elif key.fileobj is self._line:
                self._serve(events)
            elif key.data in self._kept:
                self._drain(self._kept[key.data])
        if is_busy and time.monotonic() >= self._next:
            self._look()

    def _serve(self, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            del self._out[: self._line.send(self._out)]
            self._arm()
        if events & selectors.EVENT_READ:
            data = self._line.recv(65_536)
            if not data:
                raise EOFError
            for one in self._frames.feed(data):
                self._obey(one)

    def _obey(self, one: ToKeeper) -> None:
        if isinstance(one, Fork):
            self._fork(one.child, one.source)
            return
        kept = self._kept.get(one.child)
        if kept is None:
            return  # it died meanwhile, and that was said
        match one:
            case Watch(limits=limits):
                kept.output.begin()
                seen = processes.process(kept.pid)
                kept.limits, kept.base_s, kept.why = limits, seen.cpu_s, ""
                kept.base_bytes = kept.base_bytes or seen.memory_bytes
                self._next = min(self._next, time.monotonic() + LOOK_S)
            case Settle():
                kept.limits = None
                self._drain(kept)
                self._tell(kept, kept.output.end())
                kept.is_worn = kept.is_worn or self._has_grown(kept)
                self._say(Settled(kept.child, kept.is_worn))
            case Signal(number=signal.SIGKILL):
                processes.kill_all(kept.pid)
            case Signal(number=number):
                processes.tell_all(kept.pid, number)

    def _fork(self, child: int, source: Source) -> None:
        keeper = os.getpid()
        output = None
        try:
            output = Output()
            pid = os.fork()
        except OSError as error:  # the system has no room for it
            if output is not None:
                output.close()
            self._say(Died(child, -int(signal.SIGKILL), why=f"the system has no room for it: {error}"))
            return
        if not pid:
            self._become(child, source, output, keeper)
        output.parent()
        self._kept[child] = Kept(child, pid, output)
        for end in output.ends:
            self._selector.register(end, selectors.EVENT_READ, child)

    def _become(self, child: int, source: Source, output: Output, keeper: int) -> None:
        """In the new process: leave everything of the keeper's behind, and be a child until the end."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            processes.die_with_parent(signal.SIGKILL, keeper)
            os.setsid()  # it then has a share of its own of its processors, too
            output.child()
            processes.close_files()
            processes.adopt_orphans()
            processes.go_first()
            processes.spare(self._errand.spare)
            from afoot.providers.isolated.worker import main

            main(self._errand.address, self._errand.secret, child, source)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        """See who died. What it had started has fallen to us, and ends too."""
        for kept in tuple(self._kept.values()):
            try:
                pid, status, used = os.wait4(kept.pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if pid:
                spent = processes.cpu_of(used)
                del self._kept[kept.child]
                more = self._sweep()
                self._drain(kept)
                self._tell(kept, kept.output.end())
                self._forget(kept)
                code = os.waitstatus_to_exitcode(status)
                spent = max(0.0, spent + more - kept.base_s)
                self._say(Died(kept.child, code, spent, kept.why, used.ru_maxrss * 1024))
        if not self._is_clean:
            self._sweep()

    def _sweep(self) -> float:
        spent, self._is_clean = processes.sweep([one.pid for one in self._kept.values()])
        return spent

    def _look(self) -> None:
        """See what running calls use, and end those that use too much."""
        began = time.monotonic()
        for kept in self._kept.values():
            if kept.limits is not None and not kept.why:
                self._measure(kept, kept.limits, processes.usage(kept.pid))
        if not self._is_clean:
            self._sweep()
        took = time.monotonic() - began
        self._next = time.monotonic() + max(LOOK_S, SHARE * took)

    def _measure(self, kept: Kept, limits: Limits, found: processes.Usage) -> None:
        spent = found.cpu_s - kept.base_s
        if limits.cpu_s and spent > limits.cpu_s:
            kept.why = "cpu"
        elif limits.processes and found.processes > limits.processes:
            kept.why = "processes"
        elif 0 < limits.memory_bytes < found.memory_bytes:
            # Forked processes share most of their memory: before anybody is killed it is counted exactly.
            kept.why = "memory" if processes.is_beyond(kept.pid, limits.memory_bytes) else ""
        if kept.why:
            processes.kill_all(kept.pid)
            return
        self._say(Used(kept.child, spent))
        if spent > BUSY_S and not kept.is_worn and self._errand.nice:
            kept.is_worn = True
            processes.step_back(kept.pid, self._errand.nice)

    def _has_grown(self, kept: Kept) -> bool:
        return processes.process(kept.pid).memory_bytes > kept.base_bytes + GROWN

    def _drain(self, kept: Kept) -> None:
        for stream, lines in kept.output.read(self._selector):
            self._tell(kept, [(stream, lines)])

    def _tell(self, kept: Kept, said: list[tuple[str, list[str]]]) -> None:
        for stream, lines in said:
            if lines and len(self._out) < BACKLOG:
                self._say(Said(kept.child, stream, lines))

    def _forget(self, kept: Kept) -> None:
        for end in kept.output.ends:
            with suppress(KeyError, ValueError):
                self._selector.unregister(end)
        kept.output.close()
        with suppress(OSError):  # it had none yet
            os.unlink(reports_to(self._errand.address, kept.child))

    def _say(self, one: FromKeeper) -> None:
        self._out += frame(one)
        with suppress(BlockingIOError):
            del self._out[: self._line.send(self._out)]
        self._arm()

    def _arm(self) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._out else 0)
        if self._selector.get_key(self._line).events != wanted:
            self._selector.modify(self._line, wanted)

    def _end(self) -> None:
        """The gateway is gone: nothing of it stays."""
        processes.kill_all(os.getpid(), itself=False)
        for kept in self._kept.values():
            with suppress(ChildProcessError):
                os.waitpid(kept.pid, 0)
        processes.sweep_all(SWEEP_S)


def keep(errand: Errand, guard: int) -> None:
    """The life of a keeper; `guard` is its parent."""
    # Loaded here once, for every child to come.
    import gc

    import afoot.providers.isolated.worker  # noqa: F401

    gc.freeze()
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(errand.address)
        except OSError:  # the gateway has gone meanwhile
            return
        Keeper(errand, line, guard).run()
