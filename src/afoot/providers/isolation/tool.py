"""`IsolatedTool` is a tool that runs in child processes, with the limits of its calls."""

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from msgspec import Raw, Struct

from afoot.config.tables import IsolationSettings
from afoot.core.facts import NOTHING, Result
from afoot.core.ports import Run, RunnerStart, Tool
from afoot.errors import BadTool
from afoot.providers.functions.options import FunctionSettings, ToolOptions
from afoot.providers.isolation.child_process import IsolatedCall
from afoot.providers.isolation.frames import ResourceLimits, RunCall, ToolSource
from afoot.providers.isolation.pool import ChildPool

DEFAULT_CONCURRENCY: Final = max(4, 2 * (os.cpu_count() or 1))  # calls of one isolated tool at once
FILE_MODULE_PREFIX: Final = "afoot_file_"  # of the names of modules that were loaded from files
_OPTION_NAMES: Final = {
    "cpu_s": "cpu",
    "memory_bytes": "memory",
    "open_files": "open_files",
    "processes": "processes",
}


class FunctionDeclaration(Protocol):
    """A function as its author declared it: the part of `FunctionTool` that is needed here."""

    function: Callable[..., Any]
    options: ToolOptions
    name: str
    is_async: bool
    home: str

    @property
    def location(self) -> str: ...


class IsolatedTool(Struct, frozen=True):
    """One isolated tool, as its provider needs it."""

    name: str
    source: ToolSource
    limits: ResourceLimits
    pool: ChildPool
    grace_s: float
    start_s: float
    message_limit: int

    def start(self) -> RunnerStart | None:
        """The start of a child process, or None if one is ready."""
        if self.pool.is_ready(self.source):
            return None
        return RunnerStart(
            f"starting a child process for {self.name}",
            lambda: self.pool.wait_until_ready(self.source, self.start_s),
        )

    async def work(self, arguments: Raw, run: Run) -> Result:
        """Run one call in a child of its own."""
        saved = run.resumed_from if bytes(run.resumed_from) else NOTHING
        message = RunCall(
            self.name,
            arguments,
            run.id,
            run.attempt,
            run.caller,
            saved,
            self.message_limit,
            self.limits,
            run.origin,
        )
        child = await self.pool.acquire(self.source)
        call = IsolatedCall(child, run, message, self.grace_s)
        try:
            return await call.work()
        finally:
            self.pool.release(child, call.is_reusable)


def make_isolated_tool(
    function: FunctionDeclaration, tool: Tool, settings: FunctionSettings, pool: ChildPool
) -> IsolatedTool | None:
    """The isolated tool, or None for a function that runs in the gateway's own process.

    A function is isolated by the settings, by its author, or because it is sync and declared CPU-bound.
    Raises BadTool for one that no other process can find.
    """
    overrides = settings.effective_settings.isolation(tool)
    options = function.options
    by_kind = options.get("cpu_bound", False) and not function.is_async
    is_isolated = overrides.get("isolate", options.get("isolate", by_kind))
    if not settings.isolation.enabled or not is_isolated:
        return None
    limits = settings.effective_settings.apply_to(tool).limits
    return IsolatedTool(
        function.name,
        find_source(function),
        _resource_limits(options, overrides, settings.isolation),
        pool,
        limits.grace_s,
        limits.start_s,
        settings.message_limit,
    )


def find_source(function: FunctionDeclaration) -> ToolSource:
    """The module or file in which a child finds this tool; raises BadTool if there is none."""
    # With an app, a child loads the module that has the app.
    name = function.home or getattr(inspect.unwrap(function.function), "__module__", "")
    module = sys.modules.get(name)
    values = () if module is None else vars(module).values()
    if not any(getattr(value, "__afoot_tool__", None) is function for value in values):
        must = "an isolated tool must be at the top of a module, with @afoot.tool above it"
        raise BadTool(f"tool {function.name} ({function.location}): {must}; isolate=False runs it here")
    if not name.startswith(FILE_MODULE_PREFIX) and name != "__main__":
        return ToolSource(name)
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        must = "an isolated tool must be in a file, where another process finds it"
        raise BadTool(f"tool {function.name} ({function.location}): {must}")
    return ToolSource(name, str(Path(file).resolve()))


def _resource_limits(
    options: ToolOptions, overrides: Mapping[str, float], defaults: IsolationSettings
) -> ResourceLimits:
    """The limits of one call: a setting for the tool wins over its author's option, that over the default.

    An infinite limit means none.
    """
    by_author: Mapping[str, Any] = options
    found: dict[str, Any] = {}
    for key, option in _OPTION_NAMES.items():
        value = overrides.get(key, by_author.get(option, getattr(defaults, key)))
        found[key] = 0 if value == math.inf else value
    return msgspec.convert(found, ResourceLimits)
