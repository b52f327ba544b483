"""What the author of a tool may say of it, and what holds for every function of a provider."""

from collections.abc import Mapping
from typing import Any, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.core.isolation import Isolation
from afoot.core.ports import Tool
from afoot.engine.terms import Terms
from afoot.providers.context import MESSAGE_LIMIT
from afoot.providers.places import STUCK_LIMIT


class Options(TypedDict, total=False):
    """What `tool` may be told. What is left out comes from the function, or from the settings."""

    name: str
    title: str
    description: str
    icon: str
    idle: float | None
    ceiling: float
    concurrency: int
    queue: int
    approval: str
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    requires: Mapping[str, object]
    own_loop: bool
    isolate: bool
    cpu_bound: bool
    cpu: float
    memory: int
    open_files: int
    processes: int
    lifecycle: str
    task: str
    on_disconnect: str
    join: str
    input_schema: Mapping[str, Any]


class Settings(Struct, frozen=True):
    """What holds for every function of a provider."""

    limits: Limits = Limits()
    queue: int = 1000
    message_limit: int = MESSAGE_LIMIT
    stuck_limit: int = STUCK_LIMIT
    cancel_waits: bool = False  # whether a cancelled call waits for its thread, so that its result counts
    capture: bool = True
    lifecycle: str = "off"
    isolation: Isolation = Isolation()
    terms: Terms = Terms()


_LASTING: dict[str, tuple[str, ...]] = {
    "task": ("", "forbidden", "optional", "required"),
    "on_disconnect": ("cancel", "detach"),
    "join": ("", "same-arguments"),
}


def lasting_of(tool: Tool, options: Options) -> Tool:
    """The tool with what its author says of calls that outlast their requests; raises ValueError."""
    found = {key: str(options.get(key, offered[0])) for key, offered in _LASTING.items()}
    for key, said in found.items():
        if said not in _LASTING[key]:
            words = ", ".join(f'"{word}"' for word in _LASTING[key] if word)
            raise ValueError(f"{key} must be one of {words}, not {said!r}")
    return replace(tool, **found)


def approval_of(options: Options) -> str:
    """What the author says of approval; raises ValueError for what there is not."""
    said = options.get("approval", "")
    if said not in ("", "auto", "ask", "off"):
        raise ValueError(f'approval must be "auto", "ask" or "off", not {said!r}')
    return said
