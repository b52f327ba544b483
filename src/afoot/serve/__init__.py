"""The surfaces of a gateway: MCP over HTTP and stdio, and the operator's API."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class ServePackage(ModuleType):
    """A package that can be called: it is also the public function `afoot.serve(…)` (F5).

    Python binds the package to that name when it is imported, in place of any other value, so the package
    itself can be called. The function belongs to `gateway`, a layer above: it is found by name, when called.
    """

    def __call__(self, *targets: object, **options: Any) -> None:
        """Serve tools over MCP until a signal comes; see `afoot.gateway.serving.serve`."""
        import_module("afoot.gateway.serving").serve(*targets, **options)


sys.modules[__name__].__class__ = ServePackage
