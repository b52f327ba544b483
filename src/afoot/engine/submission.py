"""What a caller wants run, and what becomes of it where that is more than the ordinary."""

from typing import TYPE_CHECKING

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.facts import Answer, Opened
from afoot.core.ports import Tool

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

HEAVIEST = 1e9  # a weight that sums to a number, whatever a caller sends


class Submission(Struct, frozen=True):
    """What a caller wants run. Limits can only be lowered here (C3)."""

    tool: str
    arguments: Raw = Raw(b"{}")
    caller: str = "local"
    idle_s: float | None = None
    ceiling_s: float | None = None
    answers: dict[str, Answer] = {}  # to questions not asked yet, by key
    parent: str | None = None
    weight: float = 1.0
    can_ask: bool = False  # whether the caller can be asked with a form
    rerun_of: str = ""  # the call that is wanted once more


def special(engine: "Engine", want: Submission, tool: Tool, opened: Opened) -> Opened:
    """The first fact of a call that is not plain: of its parent, its approval, the silence it is allowed."""
    limits, approval = opened.limits, tool.approval
    if limits.patient and tool.name in engine.reporters:
        limits = replace(limits, patient=False)
    if approval == "ask" and engine.policy.allows(tool, want.arguments, want.caller, opened.at):
        approval = "allowlist"
    return replace(
        opened,
        limits=limits,
        parent=want.parent,
        weight=want.weight if 0 <= want.weight <= HEAVIEST else 1.0,
        approval=approval,
        trusted=tool.trusted,
        rerun_of=want.rerun_of,
    )
