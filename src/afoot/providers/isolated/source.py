"""Where a function is to be found again in another process."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from afoot.errors import BadTool
from afoot.providers.isolated.frames import Source
from afoot.providers.options import Options

MADE: Final = "afoot_file_"  # how the names of modules begin that were read from files


class Declared(Protocol):
    """A function as its author declared it."""

    function: Callable[..., Any]
    options: Options
    name: str
    is_async: bool

    @property
    def where(self) -> str: ...


def source_of(tool: Declared) -> Source:
    """Where a child finds this tool; raises BadTool for one that only this process can have."""
    module = getattr(inspect.unwrap(tool.function), "__module__", "")
    found = sys.modules.get(module)
    if found is None or all(getattr(one, "__afoot_tool__", None) is not tool for one in vars(found).values()):
        must = "an isolated tool must be at the top of a module, with @afoot.tool above it"
        raise BadTool(f"tool {tool.name} ({tool.where}): {must}; isolate=False runs it here")
    if not module.startswith(MADE) and module != "__main__":
        return Source(module)
    file = getattr(found, "__file__", None)
    if file is None or not Path(file).is_file():
        must = "an isolated tool must be in a file, where another process finds it"
        raise BadTool(f"tool {tool.name} ({tool.where}): {must}")
    return Source(module, str(Path(file).resolve()))
