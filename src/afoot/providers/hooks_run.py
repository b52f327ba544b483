"""One hook, run once: a command with JSON on its stdin, or a Python function; and what it said."""

import asyncio
import importlib
import importlib.util
import inspect
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from afoot.config import Hook
from afoot.core.facts import NOTHING
from afoot.core.ports import Tool
from afoot.errors import ToolError

BEFORE: Final = "before_call"
REFUSES: Final = 2  # the exit code of a command that says no
MOST_BYTES: Final = 1024 * 1024  # of what a command prints
STUCK: Final = 8  # threads of one hook that never came back; then it is not run any more
_TOLD_CHARS: Final = 500
_CHUNK: Final = 65_536
_REAP_S: Final = 2.0  # a killed process is gone by then
_numbers = count(1)


class HookFailed(Exception):
    """A hook could not be run, or not be understood; the text says what it did."""


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """What a hook answers: nothing, a refusal, or other arguments."""

    refuse: str | bool | None = None
    arguments: dict[str, Any] | None = None

    @property
    def refusal(self) -> str | None:
        """Why it says no, if it does."""
        if self.refuse is None or self.refuse is False:
            return None
        return self.refuse if isinstance(self.refuse, str) and self.refuse else "it gave no reason"

    @property
    def changed(self) -> Raw:
        """The arguments as they are to be, if they are to be others."""
        return NOTHING if self.arguments is None else Raw(msgspec.json.encode(self.arguments))


class Attached:
    """A hook that is in force: its setting, its function if it has one, and its stuck threads."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.name = f"{hook.on} hook {hook.python or ' '.join(hook.words())[:80]}"
        self._function: Callable[[Any], object] | None = None
        self._missing = ""
        self.stuck = 0

    def load(self) -> None:
        """Find its function; raises HookFailed now, and whenever it is to be run."""
        if self.hook.python:
            try:
                self._function = _found(self.hook.python)
            except Exception as error:  # somebody's module may raise anything
                self._missing = f"cannot be loaded: {_shown(error)}"
                raise HookFailed(self._missing) from error

    def wants(self, tool: Tool) -> bool:
        """Whether it is for this tool: by its name, as server/name, or by a pattern of either."""
        own = tool.inner or tool.name
        return any(fnmatchcase(name, self.hook.tools) for name in (tool.name, own, f"{tool.server}/{own}"))

    async def run(self, event: dict[str, Any]) -> Said:
        """Run it; raises HookFailed, also when it takes too long."""
        limit = asyncio.timeout(self.hook.timeout_s)
        try:
            async with limit:
                return await (self._python(event) if self.hook.python else self._command(event))
        except TimeoutError as error:
            if not limit.expired():
                raise HookFailed(f"failed: {_shown(error)}") from error
            raise HookFailed(f"took longer than {self.hook.timeout_s:g} s (raise its timeout_s)") from None
        except HookFailed:
            raise
        except Exception as error:  # whatever else goes wrong with it is its failure too
            raise HookFailed(f"failed: {_shown(error)}") from error

    async def _python(self, event: dict[str, Any]) -> Said:
        if self._function is None:
            raise HookFailed(self._missing or "was not loaded")
        given: Any = msgspec.json.decode(msgspec.json.encode(event))  # its own: it may change what it gets
        try:
            is_async = inspect.iscoroutinefunction(self._function)
            value = self._function(given) if is_async else await self._in_thread(self._function, given)
            if inspect.isawaitable(value):
                value = await value
        except ToolError as error:
            if error.category == "refused":
                return Said(error.message)
            raise HookFailed(f"failed: {_shown(error)}") from error
        except (HookFailed, TimeoutError):
            raise
        except Exception as error:
            raise HookFailed(f"failed: {_shown(error)}") from error
        return _read(value) if self.hook.on == BEFORE else Said()

    async def _in_thread(self, function: Callable[[Any], object], event: Any) -> object:
        """In a thread of its own: a function that hangs hurts nobody but itself."""
        if self.stuck >= STUCK:
            raise HookFailed(f"is not run any more: {self.stuck} of its threads never came back")
        thread = _Thread(function, event)
        try:
            return await thread.future
        except asyncio.CancelledError:
            if not thread.is_back:
                self.stuck += 1
                thread.then = self._came_back
            raise

    def _came_back(self) -> None:
        self.stuck -= 1

    async def _command(self, event: dict[str, Any]) -> Said:
        try:
            process = await _spawned(self.hook.words())
        except (OSError, ValueError) as error:
            raise HookFailed(f"cannot be run: {error}") from None
        try:
            fed = _fed(process, msgspec.json.encode(event))
            out, err, _ = await asyncio.gather(_printed(process.stdout), _printed(process.stderr), fed)
            code = await process.wait()
        except BaseException:
            await _killed(process)
            raise
        return self._understood(code, out, err.decode(errors="replace").strip())

    def _understood(self, code: int, out: bytes, err: str) -> Said:
        if self.hook.on == BEFORE and code == REFUSES:
            return Said(err or True)
        if code:
            raise HookFailed(f"exited with {code}{f': {err[-_TOLD_CHARS:]}' if err else ''}")
        if self.hook.on != BEFORE or not out.strip():
            return Said()
        if len(out) > MOST_BYTES:
            raise HookFailed(f"printed over {MOST_BYTES} bytes")
        try:
            return _read(msgspec.json.decode(out))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HookFailed(f"printed what is no JSON: {error}") from None


class _Thread:
    """A function in a daemon thread, and its value on the loop."""

    def __init__(self, function: Callable[[Any], object], event: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[object] = self._loop.create_future()
        self.is_back = False
        self.then: Callable[[], object] = lambda: None  # when it came back too late
        # Named as tools' threads are, so that a fake clock waits for it as for those.
        name = f"afoot-tool-hook-{next(_numbers)}"
        threading.Thread(target=self._work, args=(function, event), name=name, daemon=True).start()

    def _work(self, function: Callable[[Any], object], event: Any) -> None:
        try:
            value, error = function(event), None
        except BaseException as raised:  # also SystemExit: it is a failure and nothing else
            value, error = None, raised
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: object, error: BaseException | None) -> None:
        self.is_back = True
        if self.future.done():
            self.then()
        elif error is None:
            self.future.set_result(value)
        else:
            is_known = isinstance(error, ToolError)
            self.future.set_exception(error if is_known else HookFailed(f"failed: {_shown(error)}"))


def _read(value: object) -> Said:
    if value is None:
        return Said()
    try:
        return msgspec.convert(value, Said)
    except msgspec.ValidationError as error:
        raise HookFailed(f'gave neither "refuse" nor "arguments": {error}') from None


def _found(named: str) -> Callable[[Any], object]:
    """The function that "package.module:function" or "file.py:function" means."""
    place, _, name = named.rpartition(":")
    module = _loaded(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name} is no function")
    return found


def _loaded(file: Path) -> object:
    """A file as a module; its folder is importable, as it is for files of tools."""
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"afoot_hooks_{file.stem}_{next(_numbers)}", file.resolve())
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _shown(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text[:_TOLD_CHARS]


async def _spawned(words: list[str]) -> Process:
    """Start a command in a group of its own.

    asyncio cancels a start by killing its first process alone, and may then wait for ever. So a start is
    not cancelled, and what nobody wants any more is killed as soon as it is there.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _killed(starting.result())
        raise


async def _fed(process: Process, event: bytes) -> None:
    """Give it the event; one that does not read it may still be right."""
    assert process.stdin is not None
    with suppress(OSError, RuntimeError):  # uvloop raises this one where the pipe is closed already
        process.stdin.write(event)
        await process.stdin.drain()
    process.stdin.close()


async def _printed(stream: asyncio.StreamReader | None) -> bytes:
    """What it prints, to its end; more than may be is read and forgotten."""
    assert stream is not None
    kept = bytearray()
    while chunk := await stream.read(_CHUNK):
        if len(kept) <= MOST_BYTES:
            kept += chunk
    return bytes(kept)


async def _killed(process: Process) -> None:
    """End it, and whatever it started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_REAP_S):  # its pipes are closed only once they are read to their end
            await asyncio.gather(_printed(process.stdout), _printed(process.stderr), process.wait())
