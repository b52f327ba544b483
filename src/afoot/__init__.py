"""afoot runs tools for AI agents with live progress: a tool call that keeps reporting keeps running."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from afoot.errors import AfootError, CallerError, ToolError
    from afoot.gateway import Gateway
    from afoot.gateway.asgi import asgi_app
    from afoot.gateway.serving import serve, serve_async
    from afoot.providers.content import Content, Partial
    from afoot.providers.content import ToolResult as Result
    from afoot.providers.functions.context import Caller, Context
    from afoot.providers.functions.dependencies import Depends
    from afoot.providers.functions.lifespans import App
    from afoot.providers.functions.progress.downloads import download, track_bytes
    from afoot.providers.functions.progress.programs import run
    from afoot.providers.functions.reporting import report
    from afoot.providers.functions.tool import tool
    from afoot.providers.offers.contents import Message
    from afoot.providers.offers.offer import completion, prompt, resource

__version__ = "0.1.0"

__all__ = [
    "AfootError",
    "App",
    "Caller",
    "CallerError",
    "Content",
    "Context",
    "Depends",
    "Gateway",
    "Message",
    "Partial",
    "Result",
    "ToolError",
    "asgi_app",
    "completion",
    "download",
    "prompt",
    "report",
    "resource",
    "run",
    "serve",
    "serve_async",
    "tool",
    "track_bytes",
]

# Found when first used: a client command needs none of them, and importing them all takes half a second.
_WHERE = {
    "AfootError": ("afoot.errors", "AfootError"),
    "App": ("afoot.providers.functions.lifespans", "App"),
    "Caller": ("afoot.providers.functions.context", "Caller"),
    "CallerError": ("afoot.errors", "CallerError"),
    "Content": ("afoot.providers.content", "Content"),
    "Context": ("afoot.providers.functions.context", "Context"),
    "Depends": ("afoot.providers.functions.dependencies", "Depends"),
    "Gateway": ("afoot.gateway", "Gateway"),
    "Message": ("afoot.providers.offers.contents", "Message"),
    "Partial": ("afoot.providers.content", "Partial"),
    "Result": ("afoot.providers.content", "ToolResult"),
    "ToolError": ("afoot.errors", "ToolError"),
    "asgi_app": ("afoot.gateway.asgi", "asgi_app"),
    "completion": ("afoot.providers.offers.offer", "completion"),
    "download": ("afoot.providers.functions.progress.downloads", "download"),
    "prompt": ("afoot.providers.offers.offer", "prompt"),
    "report": ("afoot.providers.functions.reporting", "report"),
    "resource": ("afoot.providers.offers.offer", "resource"),
    "run": ("afoot.providers.functions.progress.programs", "run"),
    "serve": ("afoot.serve", ""),  # the package, which is a `ServePackage`
    "serve_async": ("afoot.gateway.serving", "serve_async"),
    "tool": ("afoot.providers.functions.tool", "tool"),
    "track_bytes": ("afoot.providers.functions.progress.downloads", "track_bytes"),
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'afoot' has no attribute {name!r}")
    module, attribute = _WHERE[name]
    found: object = import_module(module)
    found = globals()[name] = getattr(found, attribute) if attribute else found
    return found
