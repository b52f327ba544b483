"""`ResourceOptions` and `PromptOptions` are the options of the decorators `resource` and `prompt`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

from afoot.providers.functions.options import CHECKS, COUNT, TEXT, Check


class PromptOptions(TypedDict, total=False):
    """The options of `prompt`. Those left out come from the function, or from the settings."""

    name: str
    title: str
    description: str
    icon: str
    idle: float | None
    ceiling: float
    concurrency: int
    queue: int
    own_loop: bool
    scopes: Sequence[str]


class ResourceOptions(PromptOptions, total=False):
    """The options of `resource`."""

    mime_type: str
    annotations: Mapping[str, Any]
    size: int


PROMPT_CHECKS: Final[dict[str, Check]] = {key: CHECKS[key] for key in PromptOptions.__annotations__}
RESOURCE_CHECKS: Final[dict[str, Check]] = {
    **PROMPT_CHECKS,
    "mime_type": TEXT,
    "annotations": ("a dict", lambda value: isinstance(value, Mapping)),
    "size": COUNT,
}
