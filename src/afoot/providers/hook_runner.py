"""`ActiveHook` runs one hook, a command with JSON on its stdin or a function, and reads its answer."""

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
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from afoot.config.settings import Hook
from afoot.core.facts import NOTHING
from afoot.core.names import pattern_fits, pattern_trusts
from afoot.core.ports import Tool
from afoot.core.redaction import DEFAULT_REDACTOR
from afoot.errors import ToolError
from afoot.providers.content import truncate

BEFORE_CALL: Final = "before_call"
BEFORE_QUESTION: Final = "before_question"
REFUSED_EXIT_CODE: Final = 2  # of a command that refuses the call
MAX_OUTPUT_BYTES: Final = 1024 * 1024  # that a command may print
MAX_STUCK_THREADS: Final = 8  # threads of one hook that did not return; then it is not run any more
_ERROR_CHARS: Final = 500
_CHUNK: Final = 65_536
# By event: the fields of the answer that a hook on it may give.
_ANSWER_FIELDS: Final = {BEFORE_CALL: ("refuse", "arguments"), BEFORE_QUESTION: ("action", "content")}
_REAP_S: Final = 2.0  # for a killed process to end
_numbers = count(1)


class HookFailed(Exception):
    """A hook could not be run, or its answer not be read; the text says what it did."""


class HookAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of a hook: nothing, a refusal, other arguments, or the action and content for a question."""

    refuse: str | bool | None = None
    arguments: dict[str, Any] | None = None
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None

    @property
    def refusal(self) -> str | None:
        """The reason why the hook refuses the call; None if it does not."""
        if self.refuse is None or self.refuse is False:
            return None
        return self.refuse if isinstance(self.refuse, str) and self.refuse else "it gave no reason"

    @property
    def changed(self) -> Raw:
        """The arguments that the call gets instead, if it does."""
        return NOTHING if self.arguments is None else Raw(msgspec.json.encode(self.arguments))


class ActiveHook:
    """A hook in force: its settings, its function if it has one, and the number of its stuck threads."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.name = f"{hook.on} hook {hook.python or DEFAULT_REDACTOR.text(' '.join(hook.words()))[:80]}"
        self._function: Callable[[Any], object] | None = None
        self._load_error = ""
        self.stuck = 0

    def load(self) -> None:
        """Load its function; raises HookFailed, as each run will."""
        if self.hook.python:
            try:
                self._function = _find_function(self.hook.python)
            except Exception as error:  # somebody's module may raise anything
                self._load_error = f"cannot be loaded: {_describe(error)}"
                raise HookFailed(self._load_error) from error

    def matches(self, tool: Tool) -> bool:
        """Whether the hook is for this tool, by a name or pattern of the settings.

        A hook that answers questions can let a call run: its pattern must say whose tools it means (U12).
        """
        pattern = self.hook.tools
        is_lax = self.hook.on == BEFORE_QUESTION and pattern != "*"
        return pattern_fits(pattern, tool) and (not is_lax or pattern_trusts(pattern, tool))

    async def run(self, event: dict[str, Any]) -> HookAnswer:
        """Run the hook and return its answer; raises HookFailed, also for a hook that takes too long."""
        limit = asyncio.timeout(self.hook.timeout_s)
        try:
            async with limit:
                return await (self._run_function(event) if self.hook.python else self._run_command(event))
        except TimeoutError as error:
            if not limit.expired():
                raise HookFailed(f"failed: {_describe(error)}") from error
            raise HookFailed(f"took longer than {self.hook.timeout_s:g} s (raise its timeout_s)") from None
        except HookFailed:
            raise
        except Exception as error:  # whatever else goes wrong with it is its failure too
            raise HookFailed(f"failed: {_describe(error)}") from error

    async def _run_function(self, event: dict[str, Any]) -> HookAnswer:
        if self._function is None:
            raise HookFailed(self._load_error or "was not loaded")
        given: Any = msgspec.json.decode(msgspec.json.encode(event))  # a copy, which it may change
        try:
            is_async = inspect.iscoroutinefunction(self._function)
            value = self._function(given) if is_async else await self._in_thread(self._function, given)
            if inspect.isawaitable(value):
                value = await value
        except ToolError as error:
            if error.category == "refused" and self.hook.on == BEFORE_CALL:
                return HookAnswer(error.message)
            raise HookFailed(f"failed: {_describe(error)}") from error
        except (HookFailed, TimeoutError):
            raise
        except Exception as error:
            raise HookFailed(f"failed: {_describe(error)}") from error
        return _parse_answer(value, self.hook.on)

    async def _in_thread(self, function: Callable[[Any], object], event: Any) -> object:
        """Run a function in a thread of its own, so that one that hangs blocks only itself."""
        if self.stuck >= MAX_STUCK_THREADS:
            raise HookFailed(f"is not run any more: {self.stuck} of its threads never came back")
        thread = _HookThread(function, event)
        try:
            return await thread.future
        except asyncio.CancelledError:
            if not thread.has_returned:
                self.stuck += 1
                thread.on_late_return = self._on_thread_returned
            raise

    def _on_thread_returned(self) -> None:
        self.stuck -= 1

    async def _run_command(self, event: dict[str, Any]) -> HookAnswer:
        try:
            process = await _spawn(self.hook.words())
        except (OSError, ValueError) as error:
            raise HookFailed(f"cannot be run: {error}") from None
        try:
            fed = _feed(process, msgspec.json.encode(event))
            out, err, _ = await asyncio.gather(
                _read_output(process.stdout), _read_output(process.stderr), fed
            )
            code = await process.wait()
        except BaseException:
            await _kill(process)
            raise
        return self._read_exit(code, out, err.decode(errors="replace").strip())

    def _read_exit(self, code: int, out: bytes, err: str) -> HookAnswer:
        if self.hook.on == BEFORE_CALL and code == REFUSED_EXIT_CODE:
            return HookAnswer(err or True)
        if code:
            raise HookFailed(f"exited with {code}{f': {err[-_ERROR_CHARS:]}' if err else ''}")
        if self.hook.on not in _ANSWER_FIELDS or not out.strip():
            return HookAnswer()
        if len(out) > MAX_OUTPUT_BYTES:
            raise HookFailed(f"printed over {MAX_OUTPUT_BYTES} bytes")
        try:
            return _parse_answer(msgspec.json.decode(out), self.hook.on)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HookFailed(f"printed what is no JSON: {error}") from None


class _HookThread:
    """A function in a daemon thread, whose value is delivered to the loop."""

    def __init__(self, function: Callable[[Any], object], event: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[object] = self._loop.create_future()
        self.has_returned = False
        self.on_late_return: Callable[[], object] = lambda: None
        # Named as tools' threads are, so that a fake clock waits for it as for those.
        name = f"afoot-tool-hook-{next(_numbers)}"
        threading.Thread(target=self._work, args=(function, event), name=name, daemon=True).start()

    def _work(self, function: Callable[[Any], object], event: Any) -> None:
        try:
            value, error = function(event), None
        except BaseException as raised:  # also SystemExit, which is only a failure here
            value, error = None, raised
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self._deliver, value, error)

    def _deliver(self, value: object, error: BaseException | None) -> None:
        self.has_returned = True
        if self.future.done():
            self.on_late_return()
        elif error is None:
            self.future.set_result(value)
        else:
            is_known = isinstance(error, ToolError)
            self.future.set_exception(error if is_known else HookFailed(f"failed: {_describe(error)}"))


def _parse_answer(value: object, on: str) -> HookAnswer:
    """The answer of a hook that has a say; anything that another one returns is ignored."""
    fields = _ANSWER_FIELDS.get(on)
    if value is None or fields is None:
        return HookAnswer()
    named = " nor ".join(f'"{field}"' for field in fields)
    try:
        answer = msgspec.convert(value, HookAnswer)
    except msgspec.ValidationError as error:
        raise HookFailed(f"gave neither {named}: {error}") from None
    given = [field for field in answer.__struct_fields__ if getattr(answer, field) is not None]
    if foreign := [field for field in given if field not in fields]:
        raise HookFailed(f"gave neither {named}, but {', '.join(foreign)}")
    if answer.content is not None and answer.action is None:
        raise HookFailed('gave "content" without "action"')
    return answer


def _find_function(named: str) -> Callable[[Any], object]:
    """Return the function that "package.module:function" or "file.py:function" names."""
    place, _, name = named.rpartition(":")
    module = _load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name} is no function")
    return found


def _load_file(file: Path) -> object:
    """Load a file as a module; its folder is importable, as it is for files of tools."""
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


def _describe(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return truncate(text, _ERROR_CHARS)


async def _spawn(words: list[str]) -> Process:
    """Start a command in a group of its own.

    asyncio cancels a start by killing the first process alone, and may then wait for ever. So a start is
    not cancelled: its process is killed as soon as it is there.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _kill(starting.result())
        raise


async def _feed(process: Process, event: bytes) -> None:
    """Write the event to its stdin; a command need not read it."""
    assert process.stdin is not None
    with suppress(OSError, RuntimeError):  # uvloop raises RuntimeError where the pipe is closed already
        process.stdin.write(event)
        await process.stdin.drain()
    process.stdin.close()


async def _read_output(stream: asyncio.StreamReader | None) -> bytes:
    """Read its output to the end; more than the limit is dropped."""
    assert stream is not None
    kept = bytearray()
    while chunk := await stream.read(_CHUNK):
        if len(kept) <= MAX_OUTPUT_BYTES:
            kept += chunk
    return bytes(kept)


async def _kill(process: Process) -> None:
    """Kill the command, and everything that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_REAP_S):  # pipes close only when they are read to their end
            await asyncio.gather(_read_output(process.stdout), _read_output(process.stderr), process.wait())
