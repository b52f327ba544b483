"""`writes_outside` finds every write to a field of a `Call` that is not in `core/call.py`, by syntax alone.

A call changes by facts and readings alone, and the functions of `core/call.py` take these in. A write
anywhere else is a second door: nothing records it, and the fold of the stored facts is another call.

Whether a name holds a `Call` is told from the syntax: the name `call` and every attribute `.call`, names and
attributes annotated with `Call`, and names bound to one of these, to `Call(...)` or to `fold(...)`. A write
is an assignment to a field, also in a tuple, with an operator, by `del` or as the target of a loop; one to an
item of a field; `setattr` and its kind; and a method that changes a list or a dict.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

HOME = Path("core") / "call.py"
MAKERS = {"Call", "fold"}
SETTERS = {"setattr", "delattr", "__setattr__", "__delattr__", "force_setattr"}
CHANGES = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse",
    "setdefault", "sort", "update",
}  # fmt: skip

_FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def writes_outside(path: Path) -> list[str]:
    """Every write to a field of a `Call` below this folder, as `FILE:LINE: CODE`; empty: one door."""
    found: list[str] = []
    for file in sorted(path.rglob("*.py")):
        inside = file.relative_to(path)
        if inside.parts[-2:] != HOME.parts:
            lines = writes(file.read_text())
            found += [f"{inside}:{line}: {code}" for line, code in lines]
    return found


def writes(source: str) -> list[tuple[int, str]]:
    """The same for one module: line and code of each write."""
    tree = ast.parse(source)
    attributes = {"call"} | _annotated_attributes(tree)
    return sorted(set(_writes(tree, {"call"}, attributes)))


def _writes(scope: _Scope, known: set[str], attributes: set[str]) -> Iterator[tuple[int, str]]:
    """The writes of a scope and of the functions in it, which see its names; `known`: the names around it."""
    names = _names(scope, known, attributes)
    calls = _Calls(names, attributes)
    for node in _own(scope):
        if isinstance(node, ast.expr) and calls.is_write(node):
            yield node.lineno, ast.unparse(node)
        if isinstance(node, _FUNCTIONS):
            yield from _writes(node, names, attributes)


class _Calls:
    """Tells which expressions of one scope hold a call, and which statements write to one."""

    def __init__(self, names: set[str], attributes: set[str]) -> None:
        self._names = names
        self._attributes = attributes

    def holds(self, node: ast.expr | None) -> bool:
        """Whether this expression is a call, as far as its syntax tells."""
        match node:
            case ast.Name(id=name):
                return name in self._names
            case ast.Attribute(attr=name):
                return name in self._attributes
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in MAKERS
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.holds(value)
            case _:
                return False

    def is_write(self, node: ast.expr) -> bool:
        """Whether this node writes to a field of a call."""
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                return self._is_field(node)
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                return self._is_field(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in CHANGES:
                return self._is_field(value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]):
                return name in SETTERS and self.holds(first)
            case _:
                return False

    def _is_field(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and self.holds(node.value)


def _own(scope: _Scope) -> Iterator[ast.AST]:
    """Every node of a scope. A function in it is one of them, but nothing within that function is."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(node))


def _names(scope: _Scope, known: set[str], attributes: set[str]) -> set[str]:
    """The names that hold a call somewhere in this scope; an argument hides a name from outside."""
    nodes = list(_own(scope))
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = {"call"} | (known - arguments)
    for node in nodes:
        match node:
            case ast.arg(arg=name, annotation=annotation) if _is_call(annotation):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_call(annotation):
                names.add(name)
    size = 0
    while size < len(names):  # a name may be bound to one that is found only later
        size = len(names)
        calls = _Calls(names, attributes)
        for target, value in _bound(scope):
            if isinstance(target, ast.Name) and calls.holds(value):
                names.add(target.id)
    return names


def _bound(scope: _Scope) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets and values of all assignments, tuples taken apart."""
    for node in _own(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairs(target, value)
            case ast.NamedExpr(target=target, value=value):
                yield target, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
            for one, other in zip(targets, values, strict=True):
                yield from _pairs(one, other)
        case _:
            yield target, value


def _annotated_attributes(tree: ast.Module) -> set[str]:
    """Fields and properties of the module's classes that hold a call."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for one in ast.walk(node):
            match one:
                case ast.AnnAssign(
                    target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation
                ):
                    found |= {name} if _is_call(annotation) else set()
                case ast.FunctionDef(name=name, returns=annotation, decorator_list=[ast.Name(id="property")]):
                    found |= {name} if _is_call(annotation) else set()
    return found


def _is_call(annotation: ast.expr | None) -> bool:
    """Whether an annotation is `Call`, or `Call | None`, in quotes or not."""
    match annotation:
        case ast.Name(id="Call") | ast.Attribute(attr="Call") | ast.Constant(value="Call"):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_call(left) or _is_call(right)
        case ast.Constant(value=str(text)):
            return "Call" in text.split(" | ")
        case _:
            return False


if __name__ == "__main__":
    print("\n".join(writes_outside(Path(sys.argv[1]))))
