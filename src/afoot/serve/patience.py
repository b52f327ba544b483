"""Callers that cannot wait: how long each waits for an answer, and what more its list of tools has (H5)."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import inf

from msgspec import Raw

from afoot.config import Settings
from afoot.engine.terms import STOPPED
from afoot.wire.handle import TOOLS, widened
from afoot.wire.messages import Budget

SHARE = 0.75  # of the caller's limit; the rest is for the way back

# Hosts whose limit is fixed and not moved by progress, by the name they send; 0 in the settings: none at all.
KNOWN = {"zed": 60.0, "cline": 60.0, "roo?code": 60.0, "claude-ai": 60.0, "goose*": 300.0}
_LASTING = STOPPED.encode()
LONGEST = 100  # characters of a client's name that are looked at


def limit(settings: Settings, budget: Budget, client: str) -> float:
    """Seconds that this caller waits for an answer, by its own word or its name; else as long as it takes."""
    if budget.wait_s is not None:
        return budget.wait_s or inf
    name = client[:LONGEST].lower()
    for pattern, seconds in (*settings.caller_limits.items(), *KNOWN.items()):
        if fnmatchcase(name, pattern.lower()):
            return seconds or inf
    return settings.caller_limit_s or inf


def offered(tools: Iterable[Raw], limit_s: float) -> list[Raw]:
    """The tools as this caller sees them: for one that cannot wait each may end in a handle.

    What outlives its caller needs somebody who can stop it (X3).
    """
    tools = list(tools)
    if limit_s == inf:
        is_lasting = any(_LASTING in one for one in map(bytes, tools))
        return [*tools, *TOOLS.values()] if is_lasting else tools
    return [*(widened(bytes(one)) for one in tools), *TOOLS.values()]
