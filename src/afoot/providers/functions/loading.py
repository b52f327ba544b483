"""`load_file` and `load_module` find the tools, the app and the servers of a file or module.

A file is read afresh each time. A server is an object of the `mcp` SDK or of FastMCP. Nothing here imports
either of them.
"""

import importlib
import inspect
import itertools
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from afoot.errors import BadTool, CallerError
from afoot.providers.functions.lifespans import App
from afoot.providers.isolation.tool import FILE_MODULE_PREFIX
from afoot.providers.offers.offer import declared_tools

SDK_MODULE: Final = "mcp.server.lowlevel.server"
# The attribute in which a high-level server keeps the low-level one: `mcp`, `fastmcp`.
LOW_LEVEL: Final = ("_lowlevel_server", "_mcp_server")

_module_numbers = itertools.count(1)
_imported_by_file: dict[Path, set[str]] = {}  # by file: the modules of its own folder that it imported


class Loaded(Struct, frozen=True):
    """The tools of one target in the order in which it names them, its app, and its servers by name."""

    tools: list[Callable[..., Any]]
    app: App | None = None
    servers: dict[str, object] = {}


def tools_in(module: ModuleType) -> list[Callable[..., Any]]:
    """The tools, resources and prompts of a module, in its order; imported ones count, too."""
    found: dict[int, Callable[..., Any]] = {}
    for value in vars(module).values():
        if declared_tools(value):
            found.setdefault(id(value), value)
    return list(found.values())


def app_in(module: ModuleType) -> App | None:
    """The one `App` of a module, which may be imported; raises CallerError if it has several."""
    found = {id(value): (name, value) for name, value in vars(module).items() if isinstance(value, App)}
    if len(found) > 1:
        names = ", ".join(name for name, _ in found.values())
        where = getattr(module, "__file__", None) or module.__name__
        raise CallerError(f"{where} has several apps ({names}): keep one afoot.App in a file")
    return next((app for _, app in found.values()), None)


def load_function(function: Callable[..., Any]) -> Loaded:
    """A function that is offered by itself, and the app of its module; raises CallerError as `app_in`."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    declared = declared_tools(function)
    for tool in declared:
        if tool.app is None and module is not None:
            tool.app = app_in(module)
    return Loaded([function], declared[0].app if declared else None)


def low_level_server(value: object) -> Any:
    """Return the SDK's `Server` that an object is, or has inside; None for all but servers."""
    sdk = sys.modules.get(SDK_MODULE)  # no server can be made before it is imported
    if sdk is None:
        return None
    # Without running code of the object: a module may hold proxies that fail when they are touched.
    inside = (inspect.getattr_static(value, name, None) for name in LOW_LEVEL)
    return next((one for one in (value, *inside) if issubclass(type(one), sdk.Server)), None)


def servers_in(module: ModuleType) -> dict[str, object]:
    """Return the servers that a module names, by name; those that another one has mounted are part of it."""
    found: dict[int, tuple[str, object]] = {}
    for name, value in vars(module).items():
        if (low := low_level_server(value)) is not None:
            found.setdefault(id(low), (name, value))
    for _, value in tuple(found.values()):
        for mounted in _mounted_servers(value):
            found.pop(id(low_level_server(mounted)), None)
    return dict(found.values())


def only_server(servers: Mapping[str, object], place: str) -> str:
    """Return the name of the only server of a file or module; raises CallerError that names several."""
    if len(servers) > 1:
        named = ", ".join(servers)
        raise CallerError(
            f"{place} has several servers ({named}): name one, as {place}:{next(iter(servers))}"
        )
    return next(iter(servers))


def _mounted_servers(server: object) -> Iterator[object]:
    """Yield the servers that a FastMCP server has mounted, which its providers hold."""
    for provider in getattr(server, "providers", ()):
        inner = provider
        while (wrapped := getattr(inner, "_inner", None)) is not None:  # a namespace, or another transform
            inner = wrapped
        if (mounted := getattr(inner, "server", None)) is not None and mounted is not server:
            yield mounted


def load_file(path: str | Path) -> Loaded:
    """The tools, the app and the servers of a file.

    Raises CallerError naming file and line if it cannot be run, has no tools and no servers, or several apps.
    """
    return offers_of(run_file(path), str(path))


def load_module(name: str) -> Loaded:
    """The tools, the app and the servers of a module that can be imported.

    Raises CallerError if there is no such module, it has neither tools nor servers, or several apps.
    """
    if not all(part.isidentifier() for part in name.split(".")) or os.path.isfile(name):
        what = "no name of a module"
        if os.path.isdir(name):
            what = "a folder"
        elif os.path.isfile(name):
            what = "no Python file"
        raise CallerError(f"cannot serve {name!r}: this is {what}; name a file of tools (.py), or a module")
    try:
        module = importlib.import_module(name)
    except (BadTool, KeyboardInterrupt):
        raise
    except ImportError as error:
        raise CallerError(f"cannot load {name}: {error}") from None
    except BaseException as error:
        raise CallerError(_load_error(error, _failed_file(error) or name)) from error
    return offers_of(module, name)


def run_file(path: str | Path, module_name: str = "") -> ModuleType:
    """Run a file as a module, under `module_name` or else under a new name.

    Its folder becomes importable, and modules that it imported from there are read afresh, too. Raises
    CallerError naming file and line if it cannot be run.
    """
    file = Path(path).resolve()
    try:
        source = file.read_bytes()
    except OSError as error:
        raise CallerError(f"cannot read {path}: {error.strerror or error}") from error
    for name in _imported_by_file.pop(file, ()):
        sys.modules.pop(name, None)
    folder = str(file.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    before = set(sys.modules)
    # A new name each time: calls that run keep the old module, and types are found by their module's name.
    module = _run(file, source, module_name or f"{FILE_MODULE_PREFIX}{file.stem}_{next(_module_numbers)}")
    _imported_by_file[file] = {
        name for name in set(sys.modules) - before if _is_in_folder(sys.modules.get(name), folder)
    }
    return module


def offers_of(module: ModuleType, name: str) -> Loaded:
    """The offers of a module; raises CallerError if it has neither tools nor servers, or several apps."""
    tools, servers = tools_in(module), servers_in(module)
    if not tools and not servers:
        raise CallerError(f"no tools in {name}: decorate functions with @afoot.tool, or make an MCP server")
    app = app_in(module)
    for function in tools if app is not None else ():
        for tool in declared_tools(function):
            tool.app = app
            tool.home = module.__name__
    return Loaded(tools, app, servers)


def _run(file: Path, source: bytes, name: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    arguments, sys.argv = sys.argv, [str(file)]  # ours are no options of a program that reads its own
    try:
        # Without the import system, whose cached bytecode cannot tell two edits within a second.
        exec(compile(source, str(file), "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[module.__name__]
        if isinstance(error, KeyboardInterrupt | BadTool):
            raise
        raise CallerError(_load_error(error, file)) from error
    finally:
        sys.argv = arguments
    return module


def _load_error(error: BaseException, file: Path | str) -> str:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, ModuleNotFoundError):
        what += f" (install it for {sys.executable}, which runs afoot)"
    if isinstance(error, SyntaxError):
        return (
            f"cannot load {error.filename or file}, line {error.lineno}: {type(error).__name__}: {error.msg}"
        )
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    return f"cannot load {file}, line {lines[-1]}: {what}" if lines else f"cannot load {file}: {what}"


def _failed_file(error: BaseException) -> str:
    """The file that failed during an import: the last one that the import system ran."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    run = [file for before, file in itertools.pairwise(files) if before.startswith("<frozen importlib")]
    return next((file for file in run[::-1] if not file.startswith("<frozen importlib")), "")


def _is_in_folder(module: ModuleType | None, folder: str) -> bool:
    origin = getattr(module, "__file__", None)
    return bool(origin) and Path(str(origin)).is_relative_to(folder)
