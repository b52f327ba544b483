"""What it means when a child process ends, or when what ran in it raised."""

import signal
from typing import Final

from afoot.core.figures import size
from afoot.errors import RunnerDied, ToolError
from afoot.providers.exits import ended
from afoot.providers.isolated.frames import Died, Limits, Trouble
from afoot.providers.isolated.pipe_run import raised

# Who sends these means the process, and not what runs in it.
_FROM_OUTSIDE: Final = {signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}


class Remote(Exception):
    """The trace of another process, to be shown above our own."""

    def __str__(self) -> str:
        return f"in its child process\n{self.args[0]}"


def explained(tool: str, limits: Limits, died: Died, lost: str) -> Exception:
    """Why a call ended with its process: by its own fault, by a limit, or by somebody else's hand (U4)."""
    number = -died.code
    if died.why == "cpu" or number == signal.SIGXCPU:
        said = f"tool {tool} used more than {limits.cpu_s:g} s of processor time (raise cpu_s)"
        return ToolError.internal(said, code="cpu_limit")
    if died.why == "memory":
        return _out_of_memory(tool, limits)
    if died.why == "processes":
        said = f"tool {tool} started more than {limits.processes} processes (raise processes)"
        return ToolError.internal(said, code="process_limit")
    if lost:  # it was ended by us, as nothing could be heard from it any more
        return ToolError.internal(f"the child process of tool {tool} was ended: {lost}", code="pipe_lost")
    text = f"the child process of tool {tool} {ended(died.code)}"
    if number in _FROM_OUTSIDE:
        return RunnerDied(f"{text}, {died.why or 'by the system or by somebody'}", code="child_killed")
    if 0 < limits.memory_bytes < 4 * died.peak_bytes:  # to run out of it is taken well by few
        text += f"; it may use {size(limits.memory_bytes)} of memory (memory_bytes)"
    return ToolError.internal(text, code="exit" if number <= 0 else "child_crashed")


def broken(tool: str, limits: Limits, trouble: Trouble) -> Exception:
    """What a tool raised in its child, raised here."""
    if not trouble.kind:
        return raised(trouble)
    if trouble.kind == "MemoryError":
        return _out_of_memory(tool, limits)
    error = type(trouble.kind, (Exception,), {})(trouble.message)
    error.__cause__ = Remote(trouble.trace)
    return error


def _out_of_memory(tool: str, limits: Limits) -> ToolError:
    most = size(limits.memory_bytes) if limits.memory_bytes else "what the system gives"
    text = f"tool {tool} is out of memory: it may use {most} (raise memory_bytes)"
    return ToolError.internal(text, code="out_of_memory")
