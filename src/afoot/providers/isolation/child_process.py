"""`ChildProcess` is one child process as the gateway sees it; `IsolatedCall` is one call in it.

At the end of the module: the error that a call gets when its process ends, or when its tool raised in it.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from afoot.core.facts import Result
from afoot.core.number_format import format_size
from afoot.core.ports import Run
from afoot.errors import RunnerDied, ToolError
from afoot.providers.content import clean_text
from afoot.providers.exit_status import describe_exit
from afoot.providers.functions.lifespans import CLOSE_S
from afoot.providers.isolation.fork_client import FrameConnection
from afoot.providers.isolation.frames import (
    CallDone,
    CancelCall,
    ChildExit,
    CpuUsage,
    EndChild,
    FlushOutput,
    IpcMessage,
    OutputComplete,
    OutputLines,
    RemoteError,
    ResourceLimits,
    RunCall,
    SignalChild,
    ToolSource,
    WatchCall,
)
from afoot.providers.isolation.relay import RunRelay
from afoot.providers.isolation.worker_run import to_exception

END_S: Final = 2 * CLOSE_S + 1  # for a child that was told to end: its lifespan is cancelled in time
EXIT_AFTER_EOF_S: Final = 0.5  # between the end of a child's pipe and its own end
EXIT_REPORT_S: Final = 3.0  # for the fork server to say that a killed child is gone
OUTPUT_WAIT_S: Final = 1.0  # for the fork server to send the rest of a call's output
# The grace of a cancelled call: first it may stop by itself, then it gets SIGTERM. Together they are less
# than one, so that SIGKILL comes before the grace is over, and the call has really stopped by then.
CANCEL_SHARE: Final = 0.5
SIGTERM_SHARE: Final = 0.4
# Whoever sends one of these means the process, and not the tool that runs in it.
_OUTSIDE_SIGNALS: Final = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}


class ChildProcess:
    """One child process. It is ready once it has loaded its module, and runs one call at a time."""

    def __init__(
        self, number: int, source: ToolSource, send_to_fork_server: Callable[[IpcMessage], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.source = source
        self.started_at = loop.time()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[ChildExit] = loop.create_future()
        self.connection: FrameConnection | None = None
        self.kill_reason = ""  # set when it was killed because its connection was lost
        self.is_killed = False  # SIGKILL was sent, or it was told to end; it may still be there
        self.has_lifespan = False
        self._send_to_fork_server = send_to_fork_server
        self._call: IsolatedCall | None = None
        self._exit: ChildExit | None = None
        self._last_output = ""
        # Retrieves the exception, so that asyncio does not complain where nobody waits for this child.
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    def begin(self, call: "IsolatedCall", message: RunCall) -> None:
        """Start a call; raises RunnerDied if the child is gone, ToolError if the message is too long."""
        if self.connection is None or self.connection.is_closing:  # lost since the pool handed it out
            raise RunnerDied("its child process was gone before the call began", began=False)
        self._call = call
        self._send_to_fork_server(WatchCall(self.number, message.limits))
        self.connection.send(message)

    def send(self, message: IpcMessage) -> None:
        """Send a message to the call that runs."""
        if self.connection is not None:
            self.connection.send(message)

    def signal(self, number: int) -> None:
        """Send a signal to the child and to all processes below it."""
        if not self.exited.done():
            self.is_killed = self.is_killed or number == signal.SIGKILL
            self._send_to_fork_server(SignalChild(self.number, number))

    def end(self) -> None:
        """End a child that runs no call: one with a lifespan has time to close it."""
        if self.has_lifespan and self.connection is not None and not self.is_killed:
            self.is_killed = True
            self.connection.send(EndChild())
            asyncio.get_running_loop().call_later(END_S, self.signal, signal.SIGKILL)
        else:
            self.signal(signal.SIGKILL)

    def flush_output(self) -> None:
        """The call is over: have the fork server send the rest of its output."""
        self._send_to_fork_server(FlushOutput(self.number))

    def detach_call(self) -> None:
        """No call runs in this child any more."""
        self._call = None

    def receive(self, message: IpcMessage) -> None:
        """Take a message from the child or, about it, from the fork server."""
        if isinstance(message, ChildExit):
            self._exit = message
            if self.connection is None:
                self._mark_exited()
            else:  # messages that it sent before its end may still be on their way
                asyncio.get_running_loop().call_later(EXIT_AFTER_EOF_S, self._mark_exited)
            return
        if isinstance(message, OutputLines) and not self.ready.done():
            self._last_output = f"; its last words: {clean_text(message.lines[-1], 500)}"
        if self._call is not None:
            self._call.receive(message)

    def on_disconnect(self, why: str, *, is_invalid: bool) -> None:
        """The connection is closed, or carried garbage: kill the child unless it ends by itself soon."""
        self.connection = None
        if self._exit is not None:
            self._mark_exited()
        elif is_invalid:
            self._kill_unreachable(why)
        else:
            asyncio.get_running_loop().call_later(EXIT_AFTER_EOF_S, self._kill_unreachable, why)

    def _mark_exited(self) -> None:
        child_exit = self._exit
        if child_exit is None or self.exited.done():
            return
        self.exited.set_result(child_exit)
        if not self.ready.done():
            if child_exit.why:
                text = f"no child process: {child_exit.why}"
            else:
                how = describe_exit(child_exit.code)
                text = f"its child process {how} while it loaded the tool{self._last_output}"
            self.ready.set_exception(RunnerDied(text, began=False))
        if self._call is not None:
            self._call.receive(child_exit)

    def _kill_unreachable(self, why: str) -> None:
        if not self.exited.done():
            self.kill_reason = self.kill_reason or why
            self.signal(signal.SIGKILL)


class IsolatedCall:
    """One call in one child: passes the child's messages to the engine's run, and replies to the child."""

    def __init__(self, child: ChildProcess, run: Run, message: RunCall, grace_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._child = child
        self._run = run
        self._message = message
        self._grace_s = grace_s
        self._over: asyncio.Future[None] = loop.create_future()
        self._output_complete: asyncio.Future[None] = loop.create_future()
        self._done: CallDone | None = None
        self._spent_s = 0.0
        self._is_worn = False
        self._relay = RunRelay(run, child.send)

    @property
    def is_reusable(self) -> bool:
        """Whether another call may run in the same child."""
        done = self._done
        if done is None or done.left:
            return False
        if done.trouble is not None and done.trouble.kind == "MemoryError":
            return False
        return not (self._is_worn or self._child.kill_reason) and self._output_complete.done()

    async def work(self) -> Result:
        """Run the call; raises the tool's error, ToolError for a crash by its own fault, or RunnerDied."""
        try:
            self._child.begin(self, self._message)
            await self._wait_for_end()
            if self._done is not None:
                await self._wait_for_output()
        finally:
            self._child.detach_call()
            self._relay.close()
            if not self.is_reusable:
                self._child.signal(signal.SIGKILL)
        return self._result()

    def receive(self, message: IpcMessage) -> None:
        """Pass a message of the child, or of the fork server about it, to the run."""
        if self._relay.receive(message):
            return
        if isinstance(message, OutputLines):
            for line in message.lines:
                self._run.log(clean_text(line, 10 * self._message.message_limit), "info", message.stream)
        else:
            self._receive_end(message)

    def _receive_end(self, message: IpcMessage) -> None:
        """Take a message about processor time, or about the end of the call."""
        match message:
            case CpuUsage(cpu_s=cpu_s):
                self._add_cpu_time(cpu_s)
            case OutputComplete(worn=worn):
                self._is_worn = self._is_worn or worn
                _resolve(self._output_complete)
            case CallDone(cpu_s=cpu_s):
                self._add_cpu_time(cpu_s)
                self._done = message
                _resolve(self._over)
            case ChildExit(cpu_s=cpu_s):
                self._add_cpu_time(cpu_s)
                _resolve(self._over)
                _resolve(self._output_complete)

    def _add_cpu_time(self, cpu_s: float) -> None:
        if cpu_s > self._spent_s:
            self._run.spent(cpu_s - self._spent_s)
            self._spent_s = cpu_s

    async def _wait_for_end(self) -> None:
        try:
            await asyncio.shield(self._over)
        except asyncio.CancelledError:
            await self._stop()

    async def _stop(self) -> None:
        """Cancel the tool, then send SIGTERM, then SIGKILL, all within the call's grace (C7)."""
        self._child.send(CancelCall(self._run.cancelled or "cancelled"))
        for share, number in ((CANCEL_SHARE, signal.SIGTERM), (SIGTERM_SHARE, signal.SIGKILL)):
            await asyncio.wait([self._over], timeout=share * self._grace_s)
            if self._over.done():
                return
            self._child.signal(number)
            # The signal may have met anything in the child, also threads that an earlier call left idle.
            self._is_worn = True
        await asyncio.wait([self._over], timeout=EXIT_REPORT_S)
        if not self._over.done():
            raise asyncio.CancelledError

    async def _wait_for_output(self) -> None:
        self._child.flush_output()
        await asyncio.wait([self._output_complete], timeout=OUTPUT_WAIT_S)

    def _result(self) -> Result:
        done = self._done
        if done is not None and done.result is not None:
            return done.result
        if self._run.cancelled is not None:
            raise asyncio.CancelledError
        tool = self._message.tool
        limits = self._message.limits
        if done is None:
            raise error_for_exit(tool, limits, self._child.exited.result(), self._child.kill_reason)
        assert done.trouble is not None
        raise error_for_trouble(tool, limits, done.trouble)


class RemoteTraceback(Exception):
    """The traceback of another process, shown above our own."""

    def __str__(self) -> str:
        return f"in its child process\n{self.args[0]}"


def error_for_exit(tool: str, limits: ResourceLimits, child_exit: ChildExit, kill_reason: str) -> Exception:
    """The error of a call whose process ended: by its own fault, by a limit, or by another process (U4)."""
    number = -child_exit.code
    if child_exit.why == "cpu" or number == signal.SIGXCPU:
        text = f"tool {tool} used more than {limits.cpu_s:g} s of processor time (raise cpu_s)"
        return ToolError.internal(text, code="cpu_limit")
    if child_exit.why == "memory":
        return _memory_limit_error(tool, limits)
    if child_exit.why == "processes":
        text = f"tool {tool} started more than {limits.processes} processes (raise processes)"
        return ToolError.internal(text, code="process_limit")
    if kill_reason:
        text = f"the child process of tool {tool} was ended: {kill_reason}"
        return ToolError.internal(text, code="pipe_lost")
    text = f"the child process of tool {tool} {describe_exit(child_exit.code)}"
    if number in _OUTSIDE_SIGNALS:
        text = f"{text}, {child_exit.why or 'by the system or by somebody'}"
        return RunnerDied(text, code="child_killed")
    # Few programs survive a lack of memory in good order: they crash in some other way.
    if 0 < limits.memory_bytes < 4 * child_exit.peak_bytes:
        text += f"; it may use {format_size(limits.memory_bytes)} of memory (memory_bytes)"
    return ToolError.internal(text, code="exit" if number <= 0 else "child_crashed")


def error_for_trouble(tool: str, limits: ResourceLimits, trouble: RemoteError) -> Exception:
    """The exception that a tool raised in its child, to be raised here."""
    if not trouble.kind:
        return to_exception(trouble)
    if trouble.kind == "MemoryError":
        return _memory_limit_error(tool, limits)
    error = type(trouble.kind, (Exception,), {})(trouble.message)
    error.__cause__ = RemoteTraceback(trouble.trace)
    return error


def _memory_limit_error(tool: str, limits: ResourceLimits) -> ToolError:
    most = format_size(limits.memory_bytes) if limits.memory_bytes else "what the system gives"
    text = f"tool {tool} is out of memory: it may use {most} (raise memory_bytes)"
    return ToolError.internal(text, code="out_of_memory")


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
