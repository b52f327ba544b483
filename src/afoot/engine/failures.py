"""Functions that say in a `Failure` why a call did not end well, without secrets, within bounds (E2, S4)."""

import logging
import traceback
from contextlib import suppress

from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.facts import NOTHING, Failure, Finished
from afoot.core.names import titled
from afoot.core.ports import Report, Tool
from afoot.core.redaction import Redactor
from afoot.core.rules import outcome_of_dead
from afoot.engine.live_call import LiveCall
from afoot.errors import RunnerDied, ToolError

SPENT_BUDGET = "budget_spent"
MAX_TRACE_CHARS = 16_000
MAX_ERROR_CHARS = 10_000  # of what a tool says of its own failure, or crashes with
CUT_MARK = f"… (cut at {MAX_ERROR_CHARS:,} characters)"

log = logging.getLogger("afoot.engine")


def failure_from_error(error: BaseException, live: LiveCall, redactor: Redactor) -> Failure:
    """The failure that an exception means: what the tool says itself, or that it crashed."""
    if isinstance(error, ToolError):
        return failure_from_tool_error(error, live, redactor)
    return failure_from_crash(error, live, redactor)


def failure_from_tool_error(error: ToolError, live: LiveCall, redactor: Redactor) -> Failure:
    """The failure that a tool tells itself, without the secrets that it, or its server, was given."""
    # Cut once more when it is clean: half a secret would not be known as one.
    message = _text_of(error.message)[: 4 * MAX_ERROR_CHARS]
    own = live.secrets()
    message = _cut_end(redactor.prose(message, own))
    return Failure(
        message,
        error.category,
        error.code,
        error.retryable,
        error.retry_after,
        error.clock,
        hint=error.hint and redactor.prose(error.hint, own),
    )


def failure_from_crash(error: BaseException, live: LiveCall, redactor: Redactor) -> Failure:
    """A clean line for the caller; the trace is for the log and the history (E3). Neither has secrets."""
    trace = ""
    with suppress(Exception):  # an author's own type may raise here, and its call must end all the same
        trace = "".join(traceback.format_exception(error))
    text = f"{titled(live.tool.name)} crashed: {type(error).__name__}: {_text_of(error)}"
    # Cut once more when it is clean: half a secret would not be known as one.
    trace = redactor.text(trace[-4 * MAX_TRACE_CHARS :], live.secrets())
    trace = trace if len(trace) <= MAX_TRACE_CHARS else "…" + trace[1 - MAX_TRACE_CHARS :]
    text = _cut_end(redactor.text(text[: 4 * MAX_ERROR_CHARS], live.secrets()))
    log.error("call %s: %s crashed\n%s", live.call.id, titled(live.tool.name), trace)
    return Failure(text, trace=trace)


def spent_budget(tool: Tool) -> ToolError:
    """The error of a call whose caller has no time left: its tool is not started (C11)."""
    text = f"{tool.name} was not started: the budget of its caller was spent on arrival"
    return ToolError(text, "refused", code=SPENT_BUDGET, retryable=True)


def too_large(size: int, max_result_bytes: int) -> Failure:
    """The failure of a call whose result is larger than allowed (G3)."""
    text = f"the result has {size} bytes, over {max_result_bytes} (raise max_result_bytes)"
    return Failure(text, "internal", "result_too_large")


def reported_error(tool: Tool) -> Failure:
    """The failure of a call whose tool returned an error as its result."""
    return Failure(f"tool {tool.name} reported an error", code="tool_error")


def runner_death(live: LiveCall, died: RunnerDied, redactor: Redactor) -> tuple[str, Failure]:
    """The outcome and the failure of a call whose runner died and that is not run again (U4).

    It is lost if nothing can have happened, and uncertain otherwise.
    """
    call = live.call
    outcome = outcome_of_dead(call, began=died.began or call.begun)
    tries = f" (attempt {call.attempt})" if call.attempt > 1 else ""
    more = ""
    if outcome == "uncertain":
        more = "; its effects may have happened"
        if not call.is_safe:
            more += ", so it was not run again"
    may_repeat = outcome == "lost" or call.is_safe
    text = f"{outcome}: {redactor.text(str(died), live.secrets())}{tries}{more}"
    return outcome, Failure(text, "unavailable", died.code or outcome, retryable=may_repeat)


def child_error(tool: str, end: Finished) -> ToolError:
    """The error that a tool gets whose child call did not end well."""
    failure = end.failure
    if failure is None:
        return ToolError.internal(f"{tool} ended {end.outcome}")
    return ToolError(
        f"{tool}: {failure.message}",
        failure.category,
        code=failure.code,
        retryable=failure.retryable,
        retry_after=failure.retry_after_s,
        clock=failure.clock,
    )


def drop_oversized(report: Report, call: Call, max_result_bytes: int, max_data_bytes: int) -> Report:
    """The report without parts that are larger than allowed; its message says so in the history (G3)."""
    left = max_result_bytes
    if report.partial:
        left -= sum(len(partial) for partial in call.partials)
    limits = {
        "data": max_data_bytes,
        "partial": left,
        "checkpoint": max_result_bytes,
        "more": max_data_bytes,
    }
    for part, limit in limits.items():
        size = len(getattr(report, part))
        if size > limit:
            log.warning("call %s: %s of %d bytes was dropped, over %d", call.id, part, size, limit)
            message = report.message or f"{part} over {limit} bytes was dropped"
            report = replace(report, message=message, **{part: NOTHING})
    return report


def _cut_end(text: str) -> str:
    """Cut a text to MAX_ERROR_CHARS, and mark the cut."""
    return text if len(text) <= MAX_ERROR_CHARS else text[: MAX_ERROR_CHARS - len(CUT_MARK)] + CUT_MARK


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:  # an author's own type may raise anything
        return "it cannot be said what"
