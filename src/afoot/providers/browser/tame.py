"""Whether a page's schema can be checked in bounded time: one that refers to itself may take for ever."""

from math import inf
from typing import Any
from urllib.parse import unquote

MOST = 10_000  # parts of a schema, each counted as often as it is referred to
_OPEN = ("$dynamicRef", "$recursiveRef")  # what these mean is found only while checking


def is_tame(schema: dict[str, Any]) -> bool:
    """Whether a check of it ends soon, whatever is checked; others are left to the page itself."""
    known: dict[str, float] = {}  # how much a reference costs

    def cost(part: object) -> float:
        if isinstance(part, list):
            return sum(map(cost, part))
        if not isinstance(part, dict):
            return 0
        to = part.get("$ref")
        more = referred(to) if isinstance(to, str) else 0
        return inf if any(name in part for name in _OPEN) else 1 + more + sum(map(cost, part.values()))

    def referred(to: str) -> float:
        if to not in known:
            known[to] = inf  # until it is known: a circle costs without end
            known[to] = cost(_at(schema, to))
        return known[to]

    try:
        return cost(schema) <= MOST
    except (LookupError, ValueError, TypeError, RecursionError):  # it refers to what is not in it
        return False


def _at(schema: dict[str, Any], to: str) -> object:
    """The part of a schema that `#/a/b` means; raises LookupError, ValueError, TypeError."""
    if not to.startswith("#/") and to != "#":
        raise LookupError(to)
    part: Any = schema
    for step in to.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        part = part[int(name) if isinstance(part, list) else name]
    return part
