"""What an author says of a tool is checked when it is said: a wrong letter takes no question away."""

import math
from typing import Any, get_type_hints

import pytest

from afoot.errors import BadTool
from afoot.providers.functions.options import ToolOptions, find_mistake
from afoot.providers.functions.tool import tool


def work() -> str:
    """Do nothing."""
    return ""


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    """A1, E5: who mistypes `destructive` is told, and not served without its approval."""
    said: dict[str, Any] = {"destructve": True}
    with pytest.raises(
        BadTool, match=r"tool work \(.*test_options\.py:\d+\): unknown option 'destructve'; did"
    ):
        tool(**said)(work)
    assert find_mistake(said).endswith("did you mean 'destructive'?")
    assert "destructive" in find_mistake({"zzzzz": 1}) and "did you mean" not in find_mistake({"zzzzz": 1})
    assert not hasattr(work, "__afoot_tool__")


def test_every_option_is_known() -> None:
    """E5: what the type checker knows, and nothing else."""
    for key in get_type_hints(ToolOptions):
        assert "unknown" not in find_mistake({key: object()})
        assert f"{key} must be " in find_mistake({key: object()})


@pytest.mark.parametrize(
    ("key", "said", "allowed"),
    [
        ("memory", -1, r"a whole number of bytes \(0 is no limit\), not -1"),
        ("memory", 1.5, "a whole number of bytes"),
        ("cpu", "q", r"a number of seconds \(0 is no limit\), not 'q'"),
        ("cpu", math.nan, "a number of seconds"),
        ("idle", "x", "a number of seconds above 0, or None for no limit, not 'x'"),
        ("idle", 0, "a number of seconds above 0"),
        ("ceiling", None, "a number of seconds above 0, not None"),
        ("ceiling", math.inf, "a number of seconds above 0"),
        ("concurrency", True, "a whole number, 0 or more, not True"),
        ("processes", -2, "a whole number"),
        ("destructive", "yes", "True or False, not 'yes'"),
        ("approval", "never", 'one of "auto", "ask", "off", not'),
        ("lifecycle", "on", 'one of "off", "stages"'),
        ("requires", ["a"], "a dict"),
        ("title", 3, "text"),
    ],
)
def test_a_value_that_means_nothing_is_refused_in_one_line(key: str, said: object, allowed: str) -> None:
    """E4: tool, option, and what is allowed, where the tool is declared."""
    options: dict[str, Any] = {key: said}
    with pytest.raises(BadTool, match=f"tool work .*: {key} must be {allowed}") as told:
        tool(**options)(work)
    assert "\n" not in str(told.value)


def test_what_options_may_be_is_taken() -> None:
    """E4, G1: no limit, in each of its ways."""
    right: dict[str, Any] = {
        "idle": None, "ceiling": 1, "cpu": math.inf, "memory": math.inf, "open_files": 0, "approval": "",
        "join": "same-arguments", "title": None, "requires": {}, "queue": 0, "lifecycle": "stages",
    }  # fmt: skip
    assert find_mistake(right) == ""
