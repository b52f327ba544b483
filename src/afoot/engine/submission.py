"""What a caller wants run, and what becomes of it where that is more than the ordinary."""

from typing import TYPE_CHECKING

from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.core.declared import of_tool
from afoot.core.facts import Answer, Opened, Trace
from afoot.core.ports import Tool
from afoot.errors import Refused

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

HEAVIEST = 1e9  # a weight that sums to a number, whatever a caller sends


class Claim(Struct, frozen=True):
    """How its caller means to find a call again: by a key that it chose, or as a task."""

    key: str = ""
    task: bool = False


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
    claim: Claim | None = None
    trace: Trace | None = None  # that the caller's request is part of
    inner: bool = False  # made by a call of ours, whose caller has paid for it


def check(engine: "Engine", want: Submission) -> None:
    """Whether a call may be opened now at all; raises Refused."""
    if engine.closing is not None:
        raise Refused(f"no new calls: {engine.closing}")
    if engine.require_history and (why := engine.recorder.degraded) is not None:
        raise Refused(f"no new calls while the history cannot be written: {why}", 5.0)
    if engine.quota is not None and not want.inner:
        engine.quota.take(want.caller, engine.clock.now(), lambda: _living(engine, want.caller))


def _living(engine: "Engine", caller: str) -> int:
    return sum(live.call.opened.caller == caller and not live.inner for live in engine.calls())


def special(engine: "Engine", want: Submission, tool: Tool, opened: Opened) -> Opened:
    """The first fact of a call that is not plain: of its parent, its approval, the silence it is allowed."""
    limits, approval = opened.limits, tool.approval
    if limits.patient and tool.name in engine.reporters:
        limits = replace(limits, patient=False)
    if approval == "ask" and engine.policy.allows(tool, want.arguments, want.caller, opened.at):
        approval = "allowlist"
    return replace(
        opened,
        arguments=kept(engine, tool, want.arguments),
        limits=limits,
        parent=None if _is_anothers(engine, want) else want.parent,
        weight=want.weight if 0 <= want.weight <= HEAVIEST else 1.0,
        approval=approval,
        trusted=tool.trusted,
        rerun_of=want.rerun_of,
        key=want.claim.key if want.claim else "",
        task=want.claim is not None and want.claim.task,
    )


def _is_anothers(engine: "Engine", want: Submission) -> bool:
    """Whether the parent that a caller names is somebody else's call: nobody puts calls below those (S3)."""
    above = engine[want.parent] if want.parent is not None and want.parent in engine else None
    return above is not None and above.call.opened.caller != want.caller


def kept(engine: "Engine", tool: Tool, arguments: Raw) -> Raw:
    """The arguments as they are kept and shown: without secrets (S4)."""
    return engine.catalog.terms.redactor.value(arguments, of_tool(tool.definition))
