"""The house rules, read from the source itself: who may import whom, and what is pure."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "afoot"

# Higher may import lower. The groups in one row that never import each other are named in APART.
LAYERS = (
    ("cli", "gateway", "testing", "__init__", "__main__"),
    ("serve",),
    ("providers", "cluster", "bridge"),
    ("engine", "wire", "store", "observe"),
    ("hosts",),
    ("config",),
    ("core",),
    ("errors",),
)
APART = {"engine", "wire", "store", "observe"}
PURE = {"core", "wire"}

# A package, and the only places that may import it.
ONLY_IN = {
    "opentelemetry": ("observe",),
    "redis": ("store.redis", "cluster"),
    "docket": ("cluster",),
    "starlette": ("serve",),
    "uvicorn": ("serve",),
    "mcp": ("providers.upstream",),
    "mcp_types": ("providers.upstream",),
    "fastmcp": ("providers.upstream",),
    "httpx2": ("providers.upstream",),
}
IMPURE_MODULES = set(
    "anyio asyncio concurrent http httpx httpx2 logging multiprocessing os pathlib queue random secrets"
    " select selectors shutil signal socket sqlite3 ssl subprocess sys tempfile threading time uvloop".split()
)
IMPURE_NAMES = {"breakpoint", "input", "open", "print"}
IMPURE_METHODS = {"now", "today", "utcnow"}


def modules() -> list[str]:
    """Return the dotted names, below afoot, of all modules."""
    found = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in found)


@cache
def read(path: Path) -> ast.Module:
    """Return the tree of a file, which several rules look at."""
    return ast.parse(path.read_text())


def parse(module: str) -> ast.Module:
    """Return the tree of a module, or of a package's own file."""
    path = SOURCE.joinpath(*module.split("."))
    return read(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


def imports(module: str) -> Iterator[str]:
    """Yield the dotted name of everything a module imports, also inside functions."""
    for node in ast.walk(parse(module)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(level=level, module=origin, names=names):
                assert level == 0, f"{module}, line {node.lineno}: imports name the whole path"
                # `from afoot import core` names a module only in its second half.
                yield from (f"{origin}.{name.name}" for name in names)


def inner(name: str) -> str | None:
    """Return what a dotted name is below afoot, its root included, or None for another package."""
    head, _, rest = name.partition(".")
    if head != "afoot":
        return None
    first = rest.split(".")[0]
    known = (SOURCE / first).is_dir() or (SOURCE / f"{first}.py").exists()
    return rest if first and known else "__init__"


def rank(top: str) -> int:
    """Return the row of a top-level module; a new one has to be given a place first."""
    return next(row for row, names in enumerate(LAYERS) if top in names)


def under(module: str, places: tuple[str, ...]) -> bool:
    """Say whether a module is one of the places or below one."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def test_every_module_has_a_place_in_the_layers() -> None:
    """House: a file nobody placed is a file nobody can reason about."""
    placed = {name for names in LAYERS for name in names}
    assert {module.split(".")[0] for module in modules()} <= placed


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    """House: cli > gateway > serve > providers, cluster > engine | wire | store | observe > core."""
    top = module.split(".")[0]
    for name in imports(module):
        target = (inner(name) or top).split(".")[0]
        assert rank(target) >= rank(top), f"{module} imports {name}, which lies above it"
        assert target == top or not {target, top} <= APART, f"{module} imports {name}, its neighbour"


@pytest.mark.parametrize("module", modules())
def test_a_foreign_package_stays_in_its_place(module: str) -> None:
    """House: each dependency is known to one part of the tree."""
    for name in imports(module):
        places = ONLY_IN.get(name.split(".")[0])
        assert places is None or under(module, places), f"{module} imports {name}, allowed only in {places}"


@pytest.mark.parametrize("module", [name for name in modules() if name.split(".")[0] in PURE])
def test_core_and_wire_are_pure(module: str) -> None:
    """House: no asyncio, no time, no logging, no I/O, no async def; time is an argument."""
    assert not {name.split(".")[0] for name in imports(module)} & IMPURE_MODULES
    assert not [name for name in imports(module) if under(name, ("afoot.config",))], "settings are arguments"
    for node in ast.walk(parse(module)):
        where = f"{module}, line {getattr(node, 'lineno', 0)}"
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith), where
        match node:
            case ast.Call(func=ast.Name(id=name)):
                assert name not in IMPURE_NAMES, where
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="date" | "datetime"))):
                assert name not in IMPURE_METHODS, where


@pytest.mark.parametrize("module", modules())
def test_a_module_begins_by_saying_what_lives_in_it(module: str) -> None:
    """House: the first line is a docstring of one sentence."""
    docstring = ast.get_docstring(parse(module)) or ""
    assert docstring.split("\n\n")[0].endswith("."), f"{module} does not say what lives in it"
