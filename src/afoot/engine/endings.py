"""How work ends that did not end well, and whether it has begun at all."""

import asyncio
import logging
import traceback
from collections.abc import Set
from contextlib import suppress
from inspect import CORO_CREATED, getcoroutinestate, iscoroutine
from typing import TYPE_CHECKING

from msgspec.structs import replace

from afoot.core.call import Call
from afoot.core.facts import NOTHING, Failure, Finished, Result
from afoot.core.ports import Report
from afoot.core.redact import hidden, without
from afoot.errors import ToolError

MOST_TRACE = 16_000  # characters
MOST_TEXT = 1000
MOST_SAID = 10_000  # of what a tool says of its own failure

log = logging.getLogger("afoot.engine")

if TYPE_CHECKING:
    from afoot.engine.engine import Engine
    from afoot.engine.live import Live


def is_new(task: asyncio.Task[None]) -> bool:
    """Whether the task was not entered yet: cancelled now, it never will be, and nothing in it says so."""
    coroutine = task.get_coro()
    return iscoroutine(coroutine) and getcoroutinestate(coroutine) == CORO_CREATED


def too_large(engine: "Engine", live: "Live", size: int) -> Finished:
    """The end of a call whose result is larger than allowed (G3)."""
    text = f"the result has {size} bytes, over {engine.max_result_bytes} (raise max_result_bytes)"
    return engine.ending(live, "failed", Failure(text, "internal", "result_too_large"))


def bad(engine: "Engine", live: "Live", result: Result) -> Finished:
    """The end of a call whose tool returned an error of its own making."""
    failure = Failure(f"tool {live.tool.name} reported an error", code="tool_error")
    return replace(engine.ending(live, "failed", failure), result=result)


def fitting(report: Report, engine: "Engine", call: Call) -> Report:
    """The report without what is larger than allowed; the history says that it was there (G3)."""
    most = engine.max_result_bytes
    left = most - sum(len(partial) for partial in call.partials) if report.partial else most
    for part, limit in {"data": engine.max_data_bytes, "partial": left, "checkpoint": most}.items():
        size = len(getattr(report, part))
        if size > limit:
            log.warning("call %s: %s of %d bytes was dropped, over %d", call.id, part, size, limit)
            said = report.message or f"{part} over {limit} bytes was dropped"
            report = replace(report, message=said, **{part: NOTHING})
    return report


def told(engine: "Engine", live: "Live", error: ToolError) -> Failure:
    """What a tool said of its own failure, without the secrets that it, or its server, was given."""
    given = secrets(live) | engine.catalog.terms.redactor.forms
    message = without(_said(error.message)[: 4 * MOST_SAID], given)[:MOST_SAID]
    return Failure(message, error.category, error.code, error.retryable, error.retry_after)


def failed(engine: "Engine", live: "Live", error: Exception) -> Failure:
    """Why arguments were not taken: what the tool said of them, or that looking at them crashed."""
    return told(engine, live, error) if isinstance(error, ToolError) else crashed(engine, live, error)


def crashed(engine: "Engine", live: "Live", error: BaseException) -> Failure:
    """A crash is a clean line to the caller; the trace is for log and history (E3). Neither has secrets."""
    said, trace = _words(error)
    text = f"tool {live.tool.name} crashed: {type(error).__name__}: {said}"
    # Cut once more when it is clean: half a secret would not be known as one.
    trace = discreet(engine, live, trace[-4 * MOST_TRACE :])[-MOST_TRACE:]
    text = discreet(engine, live, text[: 4 * MOST_TEXT])[:MOST_TEXT]
    log.error("call %s: tool %s crashed\n%s", live.call.id, live.tool.name, trace)
    return Failure(text, trace=trace)


def _words(error: BaseException) -> tuple[str, str]:
    """What it says, and its trace; an author's own type may raise at either, and its call must end."""
    trace = ""
    with suppress(Exception):
        trace = "".join(traceback.format_exception(error))
    return _said(error), trace


def _said(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return "it cannot be said what"


def discreet(engine: "Engine", live: "Live | None", text: str) -> str:
    """What was said, in this call if in one, without secrets: those that it was given, and those of any."""
    return engine.catalog.terms.redactor.text(text, frozenset() if live is None else secrets(live))


def secrets(live: "Live") -> Set[str]:
    """What this call was given that is not kept: in its arguments, and in answers."""
    given, kept = (live.arguments, live.call.arguments, len(live.said)), live.call.answers
    if live.secrets is None or live.secrets[0] != given:  # they may be large, and lines many
        answered = [(said.content, kept[name].answer.content) for name, said in tuple(live.said.items())]
        live.secrets = given, hidden(*given[:2]).union(*(hidden(*one) for one in answered))
    return live.secrets[1]
