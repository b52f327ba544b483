"""`schema_cost` estimates how many steps it takes to check a value against a JSON schema of a stranger.

A schema of a kilobyte whose parts refer to each other twice takes 2^N steps, on the event loop. A schema over
the bound is not used: the tool itself must check.
"""

from math import inf

from msgspec import Struct

MAX_STEPS = 10_000  # about a tenth of a second, if a value misfits everywhere
_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas"))  # their keys are no keywords
_ONLY_REFERRED = frozenset(("$defs", "definitions"))
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))


class SchemaCost(Struct, frozen=True):
    """The number of schemas after all references are filled in, and of references that lead back up."""

    size: float
    loops: float = 0

    @property
    def is_linear(self) -> bool:
        """Whether any value can be checked, in time in proportion to its size."""
        return self.size <= MAX_STEPS and self.loops <= 1

    def allows(self, value: object) -> bool:
        """Whether this value can be checked within the bound: loops multiply with each level of it."""
        if self.size > MAX_STEPS:
            return False
        if self.loops <= 1:
            return True
        steps, level = self.size, [value]
        while level and steps <= MAX_STEPS:
            level = [one for parent in level for one in _children(parent)]
            steps *= self.loops if level else 1
        return steps <= MAX_STEPS


UNBOUNDED = SchemaCost(inf)


def schema_cost(schema: object) -> SchemaCost:
    """The cost of a schema; UNBOUNDED if it refers to anything but a place in itself, or is too deep."""
    try:
        return _Walk(schema).cost_of(schema)
    except (RecursionError, LookupError, ValueError):
        return UNBOUNDED


class _Walk:
    """One walk over a schema, which looks at each part once."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._known: dict[int, SchemaCost | None] = {}  # None: we are inside it

    def cost_of(self, part: object) -> SchemaCost:
        """The cost of a schema or of a list of schemas. Raises LookupError, ValueError, RecursionError."""
        if not isinstance(part, dict) and not isinstance(part, list):
            return SchemaCost(0)
        if id(part) in self._known:
            return self._known[id(part)] or SchemaCost(1, 1)
        self._known[id(part)] = None
        inner = part if isinstance(part, list) else self._inside(part)
        costs = [self.cost_of(one) for one in inner]
        found = SchemaCost(1 + sum(one.size for one in costs), sum(one.loops for one in costs))
        self._known[id(part)] = found
        return found

    def _inside(self, schema: dict[str, object]) -> list[object]:
        found: list[object] = []
        for key, value in schema.items():
            if key in _REFERENCES and isinstance(value, str):
                found.append(self._referred(value))
            elif key == "$id" and schema is not self._root:
                raise ValueError("references below it mean other places")
            elif key in _BY_NAME and isinstance(value, dict):
                found.extend(value.values())
            elif key not in _ONLY_REFERRED:
                found.append(value)
        return found

    def _referred(self, reference: str) -> object:
        place, *steps = reference.split("/")
        if place != "#":
            raise LookupError(reference)
        at = self._root
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(at, list):
                at = at[int(name)]
            elif isinstance(at, dict):
                at = at[name]
            else:
                raise LookupError(reference)
        return at


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
