"""afoot: a tool call that keeps reporting keeps running, and everybody who should can see it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afoot.errors import AfootError, CallerError, ToolError
    from afoot.gateway import Gateway
    from afoot.providers.content import Content, Partial
    from afoot.providers.content import ToolResult as Result
    from afoot.providers.context import Context
    from afoot.providers.function import tool
    from afoot.providers.programs import run
    from afoot.providers.reporting import report
    from afoot.providers.transfers import download, track_bytes

__version__ = "0.1.0"

__all__ = [
    "AfootError",
    "CallerError",
    "Content",
    "Context",
    "Gateway",
    "Partial",
    "Result",
    "ToolError",
    "download",
    "report",
    "run",
    "tool",
    "track_bytes",
]

# Found when first used: a client command needs none of them, and importing them all takes half a second.
_WHERE = {
    "AfootError": ("afoot.errors", "AfootError"),
    "CallerError": ("afoot.errors", "CallerError"),
    "Content": ("afoot.providers.content", "Content"),
    "Context": ("afoot.providers.context", "Context"),
    "Gateway": ("afoot.gateway", "Gateway"),
    "Partial": ("afoot.providers.content", "Partial"),
    "Result": ("afoot.providers.content", "ToolResult"),
    "ToolError": ("afoot.errors", "ToolError"),
    "download": ("afoot.providers.transfers", "download"),
    "report": ("afoot.providers.reporting", "report"),
    "run": ("afoot.providers.programs", "run"),
    "tool": ("afoot.providers.function", "tool"),
    "track_bytes": ("afoot.providers.transfers", "track_bytes"),
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'afoot' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    found = globals()[name] = getattr(import_module(module), attribute)
    return found
