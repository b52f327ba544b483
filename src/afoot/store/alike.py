"""Calls by a part of their id, as people type it."""

from collections.abc import Iterable

from afoot.core.ports import Journal, Query

SHORTEST = 4  # characters of an id that may stand for all of it


async def alike(journal: Journal, name: str, living: Iterable[str]) -> list[str]:
    """The calls whose id begins or ends so; it begins with its time, so that its end tells it from others."""
    if len(name) < SHORTEST:
        return []
    known = {*living, *(row.id for row in await journal.find(Query(text=name, limit=1000)))}
    return sorted(one for one in known if one.startswith(name) or one.endswith(name))


def choose(name: str, fitting: list[str]) -> str:
    """What to say to somebody whose name means more than one call."""
    return f"{len(fitting)} calls are called {name!r}; name one of: {', '.join(fitting[:5])}"
