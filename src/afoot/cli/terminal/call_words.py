"""`state_of` names the state of a call that people see; `warning` and `last_words` say the most about it.

Words and rules are those of the console (`web/lib/state.js`, `web/components/live/message_cell.js`).
"""

from msgspec import Struct

from afoot.cli.terminal.call_clocks import ClockReading, has_own_question, is_silence_last
from afoot.cli.terminal.fact_text import failure_text
from afoot.cli.terminal.live.live_state import CallNode
from afoot.cli.terminal.text import clean, format_estimate, format_left
from afoot.core.call import Call, State
from afoot.core.facts import Question

DESTRUCTIVE = "destructive"  # the tag of a question whose run may destroy something
CEILING_WORDS_S = 60.0  # with more left, the time on the clock says enough


class StateLook(Struct, frozen=True):
    """How a state is shown: by its word, by a shape of its own, and by the texture of its bar."""

    word: str
    shape: str
    ascii_shape: str
    style: str
    bar: str = "━"


STATES = {
    "waiting": StateLook("waiting", "◆", "?", "warn"),
    "running": StateLook("running", "▶", ">", "live"),
    "stalled": StateLook("stalled", "△", "!", "bad", "╍"),
    "held_up": StateLook("held up", "⊘", "%", "dim", "┅"),
    "queued": StateLook("queued", "◌", ".", "dim"),
    "retrying": StateLook("next attempt", "↻", "@", "live"),
    "cancelling": StateLook("cancelling", "□", "o", "dim"),
    "done": StateLook("done", "✓", "+", "good"),
    "failed": StateLook("failed", "✗", "x", "bad"),
    "cancelled": StateLook("cancelled", "■", "#", "dim"),
}
ASCII_SHAPES = {look.shape: look.ascii_shape for look in STATES.values()}
# The states that are counted, in their order. A call that is tried again or cancelled counts as running.
COUNTED_STATES = ("waiting", "running", "stalled", "held_up", "queued")
_OUTCOME_WORDS = {"timed_out": "timed out", "refused": "refused", "lost": "lost", "uncertain": "uncertain"}


def state_of(node: CallNode, at: float) -> str:
    """The state of a call at an instant, a key of STATES: the most telling one.

    A call whose child asks runs on; it is the child that waits.
    """
    call = node.call
    if call.end is not None:
        return state_of_outcome(call.end.outcome)
    if call.state is State.CANCELLING or node.cancel_due is not None:
        return "cancelling"
    if call.open and has_own_question(call):
        return "waiting"
    if call.state is State.QUEUED:
        return "retrying" if call.attempt else "queued"
    if call.hindered is not None:
        return "held_up"
    if node.stalled or is_silence_last(call, node.heard, at):
        return "stalled"
    return "retrying" if call.attempt > 1 else "running"


def state_of_outcome(outcome: str) -> str:
    """The state of a call that has ended so."""
    return {"ok": "done", "cancelled": "cancelled"}.get(outcome, "failed")


def warning(node: CallNode, state: str, clocks: ClockReading) -> str:
    """Return the warning of a call that is about to end or is held up; empty for any other."""
    silence_left_s = float("inf")
    if clocks.is_silence_last:
        silence_left_s = max(0.0, (clocks.idle_s or 0.0) - clocks.silent_s)
    left_s = clocks.ceiling_left_s if clocks.is_ceiling_last else float("inf")
    if left_s < silence_left_s and left_s <= CEILING_WORDS_S:
        return f"{format_left(left_s)} to the ceiling"
    if clocks.is_silence_last:
        return f"stalled, ends in {format_left(silence_left_s)}"
    if state == "stalled":
        return STATES[state].word
    hindered = node.call.hindered
    return f"held up: {clean(hindered.by)}" if state == "held_up" and hindered is not None else ""


def time_left(node: CallNode, state: str) -> str:
    """The time left, if anybody knows: a stalled or held-up call has no estimate that holds."""
    return format_estimate(node.eta) if state in ("running", "retrying") else ""


def tags(node: CallNode) -> list[str]:
    """Words before the message: a run that may destroy something, another attempt, a caller who left."""
    found = [DESTRUCTIVE] if node.destructive & node.call.open.keys() else []
    if node.call.attempt > 1 and node.call.end is None:
        found.append(f"attempt {node.call.attempt}")
    if node.detached and node.call.end is None:
        found.append("detached")
    return found


def last_words(node: CallNode, state: str, at: float) -> str:
    """The most important message about a call: a question, why it ended, or what it said last."""
    call = node.call
    latest = call.latest.message if call.latest is not None else None
    if call.end is not None:
        return _words_at_end(call) or node.result_line or latest or ""
    if node.cancel_due is not None:
        return f"cancels in {format_left(max(0.0, node.cancel_due - at))}"
    if state == "held_up" and call.hindered is not None:
        return join_words(call.hindered.hint, latest or "", sign=", ")
    if call.open:
        return _question_words(next(iter(call.open.values())))
    if call.state is State.QUEUED and call.admitted is not None:
        return call.admitted.what
    if call.cancel is not None and call.cancel.reason:
        return call.cancel.reason
    if call.hindered is not None:
        return join_words(call.hindered.by, call.hindered.hint, sign=", ")
    return latest or ""


def waiting_text(call: Call) -> str:
    """For whom or what a call waits."""
    kinds = {one.kind for one in call.open.values()}
    if "approval" in kinds:
        return "waiting for approval"
    return "waiting for a call below" if kinds == {"below"} else "waiting for an answer"


def join_words(*parts: str, sign: str = " · ") -> str:
    """The parts that are not empty in one line."""
    return sign.join(part for part in parts if part)


def _question_words(question: Question) -> str:
    """The words of a question; of an approval the arguments alone, as its row names the tool."""
    words = question.message
    is_run = question.kind == "approval" and words.startswith("Run ") and words.endswith(")?")
    return (words.partition("(")[2][:-2] if is_run else words) or "waits for an answer"


def _words_at_end(call: Call) -> str:
    """Why a call did not end well; its outcome is named where the word of its state says too little."""
    end = call.end
    if end is None or end.outcome == "ok":
        return ""
    return join_words(_OUTCOME_WORDS.get(end.outcome, ""), failure_text(end), sign=": ")
