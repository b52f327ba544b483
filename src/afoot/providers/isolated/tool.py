"""A tool that runs in child processes: what its calls may use, and the work of one."""

import math
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import NOTHING, Result
from afoot.core.isolation import Isolation
from afoot.core.ports import Run, Start, Tool
from afoot.providers.isolated.child import Shift
from afoot.providers.isolated.children import Children
from afoot.providers.isolated.frames import Begin, Limits, Source
from afoot.providers.isolated.source import Declared, source_of
from afoot.providers.options import Options, Settings

CONCURRENCY = max(4, 2 * (os.cpu_count() or 1))  # calls of one isolated tool at once, where nothing is set
_NAMES = {"cpu_s": "cpu", "memory_bytes": "memory", "open_files": "open_files", "processes": "processes"}


class IsolatedTool(Struct, frozen=True):
    """One tool, as far as its provider needs to know."""

    name: str
    source: Source
    limits: Limits
    children: Children
    grace_s: float
    start_s: float
    message_limit: int

    def start(self) -> Start | None:
        """What must be up first, if nothing is."""
        if self.children.is_ready(self.source):
            return None
        return Start(
            f"starting a child process for {self.name}",
            lambda: self.children.ready(self.source, self.start_s),
        )

    async def work(self, arguments: Raw, run: Run) -> Result:
        """One call in a child of its own."""
        saved = run.resumed_from if bytes(run.resumed_from) else NOTHING
        begin = Begin(
            self.name, arguments, run.id, run.attempt, run.caller, saved, self.message_limit, self.limits
        )
        child = await self.children.take(self.source)
        shift = Shift(child, run, begin, self.grace_s)
        try:
            return await shift.work()
        finally:
            self.children.give_back(child, shift.is_fit)


def isolated(found: Declared, offer: Tool, settings: Settings, children: Children) -> IsolatedTool | None:
    """The tool, if it runs in children: by the settings, its author, or as one that keeps a processor busy.

    Raises BadTool for one that no other process can find.
    """
    told, options = settings.terms.isolation(offer), found.options
    by_kind = options.get("cpu_bound", False) and not found.is_async
    if not settings.isolation.enabled or not told.get("isolate", options.get("isolate", by_kind)):
        return None
    limits = settings.terms.settle(offer).limits
    return IsolatedTool(
        found.name,
        source_of(found),
        _limits(options, told, settings.isolation),
        children,
        limits.grace_s,
        limits.start_s,
        settings.message_limit,
    )


def _limits(options: Options, told: Mapping[str, float], usual: Isolation) -> Limits:
    """What a call may use: the nearest setting wins. An infinite limit is none."""
    said: Mapping[str, Any] = options
    found = {key: told.get(key, said.get(own, getattr(usual, key))) for key, own in _NAMES.items()}
    return msgspec.convert({key: 0 if value == math.inf else value for key, value in found.items()}, Limits)
