"""Where a function is to be found again in another process."""

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from afoot.providers.isolated.frames import Source

MADE: Final = "afoot_file_"  # how the names of modules begin that were read from files


def source_of(function: Callable[..., Any], where: str) -> Source:
    """Where a child finds this function; raises TypeError for one that only this process can have."""
    inner = inspect.unwrap(function)
    name, module = getattr(inner, "__qualname__", ""), getattr(inner, "__module__", "")
    found = sys.modules.get(module)
    if not name or "<" in name or found is None:
        raise TypeError(f"{where}: an isolated tool must be a function at the top of a module")
    if not module.startswith(MADE) and module != "__main__":
        return Source(module)
    file = getattr(found, "__file__", None)
    if file is None or not Path(file).is_file():
        raise TypeError(f"{where}: an isolated tool must be in a file, where another process finds it")
    return Source(module, str(Path(file).resolve()))
