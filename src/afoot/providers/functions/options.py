"""`ToolOptions` are the options of the decorator `tool`, `FunctionSettings` the settings of a provider."""

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, TypedDict

from msgspec import Struct

from afoot.config.tables import IsolationSettings, is_label
from afoot.core.facts import Limits
from afoot.engine.catalog import EffectiveSettings
from afoot.providers.functions.context import MESSAGE_LIMIT
from afoot.providers.functions.threads import STUCK_LIMIT


class ToolOptions(TypedDict, total=False):
    """The options of `tool`. Those left out come from the function, or from the settings."""

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
    scopes: Sequence[str]
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
    worker: str
    input_schema: Mapping[str, Any]


class FunctionSettings(Struct, frozen=True):
    """The settings for every function of a provider."""

    limits: Limits = Limits()
    queue: int = 1000
    message_limit: int = MESSAGE_LIMIT
    stuck_limit: int = STUCK_LIMIT
    cancel_waits: bool = False  # whether a cancelled call waits for its thread, so that its result counts
    capture: bool = True
    lifecycle: str = "off"
    isolation: IsolationSettings = IsolationSettings()
    effective_settings: EffectiveSettings = EffectiveSettings()


Check = tuple[str, Callable[[Any], bool]]  # the allowed values in words, and the test of a value


def _one_of(*words: str) -> Check:
    listed = ", ".join(f'"{word}"' for word in words if word)
    return f"one of {listed}", lambda value: value in words


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and _is_number(value)


TEXT: Final[Check] = "text", lambda value: value is None or isinstance(value, str)
_FLAG: Final[Check] = "True or False", lambda value: isinstance(value, bool)
_TABLE: Final[Check] = "a dict", lambda value: isinstance(value, Mapping)
_WORDS: Final[Check] = (
    "a list of texts",
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(one, str) and one and not any(map(str.isspace, one)) for one in value)
    ),
)
COUNT: Final[Check] = "a whole number, 0 or more", _is_whole
_LIMIT: Final[Check] = "a whole number (0 is no limit)", lambda value: _is_whole(value) or value == math.inf
# By option; an empty word stands for one that is left out.
CHECKS: Final[dict[str, Check]] = {
    **dict.fromkeys(("name", "title", "description", "icon"), TEXT),
    "idle": (
        "a number of seconds above 0, or None for no limit",
        lambda value: value is None or (_is_number(value) and value > 0),
    ),
    "ceiling": ("a number of seconds above 0", lambda value: _is_number(value) and 0 < value < math.inf),
    **dict.fromkeys(("concurrency", "queue"), COUNT),
    "approval": _one_of("", "auto", "ask", "off"),
    **dict.fromkeys(("read_only", "destructive", "idempotent", "open_world"), _FLAG),
    **dict.fromkeys(("own_loop", "isolate", "cpu_bound"), _FLAG),
    "cpu": ("a number of seconds (0 is no limit)", _is_number),
    "memory": ("a whole number of bytes (0 is no limit)", _LIMIT[1]),
    **dict.fromkeys(("open_files", "processes"), _LIMIT),
    "lifecycle": _one_of("off", "stages"),
    "task": _one_of("", "forbidden", "optional", "required"),
    "on_disconnect": _one_of("cancel", "detach"),
    "join": _one_of("", "same-arguments"),
    "worker": (
        "a label of letters, digits, _ and -",
        lambda value: isinstance(value, str) and is_label(value),
    ),
    **dict.fromkeys(("requires", "input_schema"), _TABLE),
    "scopes": _WORDS,
}


def find_mistake(options: Mapping[str, object], checks: Mapping[str, Check] = CHECKS) -> str:
    """The first mistake in the options, or "". A misspelt option must not silently switch off an approval."""
    for key, value in options.items():
        if key not in checks:
            near = get_close_matches(key, checks, n=1)
            return f"unknown option {key!r}; " + (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(checks)}"
            )
        allowed, fits = checks[key]
        if not fits(value):
            return f"{key} must be {allowed}, not {value!r}"
    return ""
