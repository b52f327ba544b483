"""A provider of isolated tools for tests, and what is left of its processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from afoot.config.tables import IsolationSettings
from afoot.core.facts import Limits, Result
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider
from afoot.providers.isolation import processes
from afoot.providers.isolation.pool import ChildPool
from tests.providers.fake_run import ScriptedRun
from tests.providers.isolation import isolated_tools as tools

PATIENCE_S = 25.0


class Isolated:
    """A provider of some tools of `isolated_tools`, each in children of one family."""

    def __init__(self, grace_s: float = 4.0, **isolation: Any) -> None:
        self.settings = FunctionSettings(Limits(grace_s=grace_s), isolation=IsolationSettings(**isolation))
        self.children = ChildPool(self.settings.isolation)
        found = [one for one in vars(tools).values() if hasattr(one, "__afoot_tool__")]
        self.provider = FunctionProvider(found, settings=self.settings, pool=self.children)

    async def call(self, tool: str, run: ScriptedRun | None = None, **arguments: object) -> Result:
        """One call, prepared and run to its end."""
        return await self.provider.prepare(tool, Raw(msgspec.json.encode(arguments)))(run or ScriptedRun())


@asynccontextmanager
async def family(grace_s: float = 4.0, **isolation: Any) -> AsyncIterator[Isolated]:
    """Isolated tools while the block lasts; then nothing of them is left."""
    before = set(below_here())
    made = Isolated(grace_s, **isolation)
    async with made.children:
        yield made
    await happens(lambda: set(below_here()) <= before)


def below_here() -> list[int]:
    """The processes that descend from this one, but for dead ones and what other tests' browsers start."""
    return [pid for pid in processes.descendants(os.getpid()) if not is_dead(pid) and not _is_a_browsers(pid)]


def _is_a_browsers(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm") as name:
            return name.read().startswith(("chrom", "Xvfb"))
    except OSError:
        return False


async def happens(happened: Callable[[], object]) -> None:
    """Wait for what other processes do."""
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not happened():
        assert asyncio.get_running_loop().time() < end, f"it never happened; {below_here()} are left"
        await asyncio.sleep(0.02)


def command(pid: int) -> bytes:
    """The words a process was started with."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_dead(pid: int) -> bool:
    """Whether a process is over, though its parent may not know."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
