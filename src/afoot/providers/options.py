"""What the author of a tool may say of it, and what holds for every function of a provider."""

from collections.abc import Mapping
from typing import Any, TypedDict

from msgspec import Struct

from afoot.core.facts import Limits
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
    lifecycle: str
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
