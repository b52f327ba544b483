"""What the author of a tool may say of it, and what holds for every function of a provider."""

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, TypedDict

from msgspec import Struct

from afoot.core.facts import Limits
from afoot.core.isolation import Isolation
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


_Kind = tuple[str, Callable[[Any], bool]]  # what is allowed, in words; and whether a value is


def _words(*words: str) -> _Kind:
    listed = ", ".join(f'"{word}"' for word in words if word)
    return f"one of {listed}", lambda said: said in words


def _number(said: object) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool) and said >= 0


def _whole(said: object) -> bool:
    return isinstance(said, int) and _number(said)


_TEXT: Final[_Kind] = "text", lambda said: said is None or isinstance(said, str)
_FLAG: Final[_Kind] = "True or False", lambda said: isinstance(said, bool)
_TABLE: Final[_Kind] = "a dict", lambda said: isinstance(said, Mapping)
_COUNT: Final[_Kind] = "a whole number, 0 or more", _whole
_MOST: Final[_Kind] = "a whole number (0 is no limit)", lambda said: _whole(said) or said == math.inf
# By option; where a word may be left out, the empty one stands for that.
_KINDS: Final[dict[str, _Kind]] = {
    **dict.fromkeys(("name", "title", "description", "icon"), _TEXT),
    "idle": (
        "a number of seconds above 0, or None for no limit",
        lambda said: said is None or (_number(said) and said > 0),
    ),
    "ceiling": ("a number of seconds above 0", lambda said: _number(said) and 0 < said < math.inf),
    **dict.fromkeys(("concurrency", "queue"), _COUNT),
    "approval": _words("", "auto", "ask", "off"),
    **dict.fromkeys(("read_only", "destructive", "idempotent", "open_world"), _FLAG),
    **dict.fromkeys(("own_loop", "isolate", "cpu_bound"), _FLAG),
    "cpu": ("a number of seconds (0 is no limit)", _number),
    "memory": ("a whole number of bytes (0 is no limit)", _MOST[1]),
    **dict.fromkeys(("open_files", "processes"), _MOST),
    "lifecycle": _words("off", "stages"),
    "task": _words("", "forbidden", "optional", "required"),
    "on_disconnect": _words("cancel", "detach"),
    "join": _words("", "same-arguments"),
    **dict.fromkeys(("requires", "input_schema"), _TABLE),
}


def mistake(options: Mapping[str, object]) -> str:
    """What is wrong with what an author said, or nothing. One wrong letter must not take away a question."""
    for key, said in options.items():
        if key not in _KINDS:
            near = get_close_matches(key, _KINDS, n=1)
            return f"unknown option {key!r}; " + (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_KINDS)}"
            )
        allowed, fits = _KINDS[key]
        if not fits(said):
            return f"{key} must be {allowed}, not {said!r}"
    return ""
