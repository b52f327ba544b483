"""`sections` reads the source and runs nothing: sizes, folders, importers, names, cycles, writes to a `Call`.

No module is named here except `core`, which holds `Call`, so the figures work on any layout of the package.
"""

import ast
import collections
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "afoot"
MANY_ENTRIES = 16
# Words of this project's own making for things that have a name in the field.
COINED = (
    "admission alike bell beside board bookmark canvas carrier conversation crack desk ear errand exchange"
    " guard guest hindered hold join keeper lane library linger listed live manner nursery order outlet"
    " passport patience peer place places pump ring room settle shelf site slip tapes telling terms tongue"
    " trees usual wall wanted ways yields"
).split()
MUTATORS = set("add append clear discard extend insert pop popitem remove setdefault update".split())
Graph = dict[str, set[str]]
Section = tuple[str, list[str]]


@dataclass(slots=True)
class Module:
    """One file of Python, and the modules of ours that it imports."""

    name: str
    path: Path
    text: str
    tree: ast.Module
    at_start: set[str] = field(default_factory=set)  # imported when it is imported itself
    later: set[str] = field(default_factory=set)  # for types, or when a function runs

    @property
    def imported(self) -> set[str]:
        """Every module of ours that it names in an import."""
        return self.at_start | self.later


def sections() -> Iterator[Section]:
    """Yield each figure as a headline and the lines below it."""
    modules = read_modules()
    yield sizes(modules)
    yield folders()
    yield importers(modules)
    yield class_names(modules)
    yield coined_words(modules)
    yield from cycles(modules)
    yield writes_to_call(modules)


def read_modules() -> dict[str, Module]:
    """Return all modules below the package by their dotted names."""
    found: dict[str, Module] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text()
        found[name] = Module(name, path, text, ast.parse(text))
    for module in found.values():
        read_imports(module, module.tree.body, module.at_start, found)
    return found


def read_imports(module: Module, body: Iterable[ast.AST], into: set[str], known: dict[str, Module]) -> None:
    """Sort the imports below some nodes into those of the start and those that come later."""
    for node in body:
        match node:
            case ast.Import(names=names):
                into.update(target for name in names for target in targets(name.name, known))
            case ast.ImportFrom(module=origin, names=names, level=0):
                into.update(target for name in names for target in targets(f"{origin}.{name.name}", known))
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                read_imports(module, node.body, module.later, known)
                read_imports(module, node.orelse, into, known)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                read_imports(module, ast.iter_child_nodes(node), module.later, known)
            case _:
                read_imports(module, ast.iter_child_nodes(node), into, known)
    into.discard(module.name)


def targets(name: str, known: dict[str, Module]) -> Iterator[str]:
    """Yield the module of ours that an imported name is, or lies in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    if name:
        yield name


def sizes(modules: dict[str, Module]) -> Section:
    """Count files and lines by kind, and name the longest."""
    kinds: dict[str, list[int]] = collections.defaultdict(list)
    for path in files(PACKAGE):
        if path.suffix in (".py", ".js", ".ts", ".css", ".html"):
            kinds[path.suffix].append(len(path.read_text().splitlines()))
    lines = [f"{kind[1:]}: {len(found)} files, {sum(found)} lines" for kind, found in sorted(kinds.items())]
    longest = sorted(modules.values(), key=lambda one: -one.text.count("\n"))[:5]
    lines.append("longest: " + ", ".join(f"{short(one.name)} {one.text.count(chr(10))}" for one in longest))
    return "files and lines", lines


def files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, without what Python keeps beside them."""
    yield from (
        path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts
    )


def folders() -> Section:
    """Count the entries of each folder, `__init__.py` and what Python keeps left out."""
    lines = []
    for folder in sorted({path.parent for path in files(PACKAGE)} | {PACKAGE}):
        entries = {path.name for path in folder.iterdir()} - {"__init__.py", "__pycache__"}
        flag = f"   over {MANY_ENTRIES}" if len(entries) > MANY_ENTRIES else ""
        lines.append(f"{len(entries):4} {folder.relative_to(PACKAGE.parent)}{flag}")
    over = sum("over" in line for line in lines)
    return f"entries of each folder ({over} over {MANY_ENTRIES})", lines


def importers(modules: dict[str, Module]) -> Section:
    """Name the modules that exactly one other module imports, with that one."""
    by_target: Graph = collections.defaultdict(set)
    for module in modules.values():
        for target in module.imported:
            by_target[target].add(module.name)
    alone = {
        name: by_target[name]
        for name, module in modules.items()
        if len(by_target[name]) == 1 and module.path.name != "__init__.py"
    }
    lines = [f"{short(name)} <- {short(*by)}" for name, by in alone.items()]
    return f"modules with one importer: {len(alone)}", lines


def class_names(modules: dict[str, Module]) -> Section:
    """Name the classes whose name is used twice or more."""
    places: dict[str, list[str]] = collections.defaultdict(list)
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(short(module.name))
    twice = {name: found for name, found in sorted(places.items()) if len(found) > 1}
    return f"class names used twice or more: {len(twice)}", [
        f"{name}: {', '.join(found)}" for name, found in twice.items()
    ]


def coined_words(modules: dict[str, Module]) -> Section:
    """Count the coined words in names: where a name is defined, and wherever one is used.

    A word counts where it is a part of a name: `shelf` in `Shelf`, `_shelf_of` and `shelf.py`. Some are plain
    English too, such as `join` of a string, so the definitions say more than the uses.
    """
    defined: collections.Counter[str] = collections.Counter()
    used: collections.Counter[str] = collections.Counter()
    for module in modules.values():
        for name in {*definitions(module.tree), module.name.rpartition(".")[2]}:
            defined.update(set(words(name)))
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type == tokenize.NAME:
                used.update(set(words(token.string)))
    found = sorted((word for word in COINED if defined[word]), key=lambda word: -defined[word])
    total = sum(defined[word] for word in COINED)
    lines = [f"{word}: {defined[word]} defined, {used[word]} used" for word in found]
    return f"coined words: {len(found)} of {len(COINED)} live, in {total} definitions", lines


def definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module gives: to classes, functions, parameters, variables and fields."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name


def words(name: str) -> list[str]:
    """Return the parts of a name in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def cycles(modules: dict[str, Module]) -> Iterator[Section]:
    """Name the import cycles: those at run time, then with imports for types and inside functions too."""
    at_start = {name: module.at_start for name, module in modules.items()}
    every = {name: module.imported for name, module in modules.items()}
    for what, graph in (("at run time", at_start), ("with types and late imports", every)):
        knots = [*tangles(graph)]
        by_package = collections.Counter(package(one) for knot in knots for one in knot)
        between = [*tangles(packages(graph))]
        lines = [f"{len(knot)} modules: {', '.join(short(one) for one in knot)}" for knot in knots]
        lines += [f"in {name}: {count} modules in cycles" for name, count in sorted(by_package.items())]
        lines += [f"between packages: {', '.join(short(one) for one in knot)}" for knot in between]
        yield f"import cycles {what}: {len(knots)} of modules, {len(between)} of packages", lines


def packages(graph: Graph) -> Graph:
    """Return which top package imports which."""
    found: Graph = collections.defaultdict(set)
    for name, imported in graph.items():
        found[package(name)] |= {package(one) for one in imported} - {package(name)}
    return found


def package(name: str) -> str:
    """Return the top package, or top module, that a module belongs to."""
    return ".".join(name.split(".")[:2])


def tangles(graph: Graph) -> Iterator[list[str]]:
    """Yield the sets of two or more nodes that all reach each other."""
    reached = {name: reach(graph, name) for name in graph}
    seen: set[str] = set()
    for name in sorted(graph):
        if name in reached[name] and name not in seen:
            knot = sorted(one for one in reached[name] if name in reached.get(one, ()))
            seen.update(knot)
            yield knot


def reach(graph: Graph, start: str) -> set[str]:
    """Return all nodes that one can go to, itself only if there is a way back."""
    found: set[str] = set()
    todo = [*graph[start]]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(graph.get(name, ()))
    return found


def writes_to_call(modules: dict[str, Module]) -> Section:
    """Name the places outside its module that change a field of `Call`.

    An object counts as a call if it is named `call`, ends in `.call`, or is annotated so.
    """
    home, fields = call_fields(modules)
    lines = [
        f"{module.path.relative_to(ROOT)}:{line} {what}"
        for module in modules.values()
        if module.name != home
        for line, what in sorted(call_writes(module.tree, fields))
    ]
    return f"writes to a field of Call outside {short(home)}: {len(lines)}", lines


def call_fields(modules: dict[str, Module]) -> tuple[str, set[str]]:
    """Return the module of `core` that defines `Call`, and the fields it declares."""
    for module in modules.values():
        for node in module.tree.body:
            if (
                isinstance(node, ast.ClassDef)
                and node.name == "Call"
                and package(module.name) == "afoot.core"
            ):
                declared = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
                return module.name, {one.id for one in declared if isinstance(one, ast.Name)}
    return "core", set()


def call_writes(tree: ast.Module, fields: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every change of a call's field."""
    annotated = {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        and node.annotation is not None
        and ast.unparse(node.annotation) == "Call"
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, value=value, ctx=ast.Store() | ast.Del()):
                changed = is_call(value, annotated) and name in fields
            case ast.Subscript(value=ast.Attribute(attr=name, value=value), ctx=ast.Store() | ast.Del()):
                changed = is_call(value, annotated) and name in fields
            case ast.Call(func=ast.Attribute(attr=verb, value=ast.Attribute(attr=name, value=value))):
                changed = verb in MUTATORS and is_call(value, annotated) and name in fields
            case ast.Call(func=ast.Name(id="setattr"), args=[value, *_]):
                changed = is_call(value, annotated)
            case _:
                continue
        if changed:
            yield node.lineno, ast.unparse(node)


def is_call(node: ast.expr, annotated: set[str]) -> bool:
    """Whether an expression seems to be a call."""
    match node:
        case ast.Name(id=name):
            return name == "call" or name in annotated
        case ast.Attribute(attr="call"):
            return True
        case _:
            return False


def short(name: str) -> str:
    """Return a module's name below the package."""
    return name.removeprefix("afoot.")
