"""`PageRun` runs one tool in a page: it sends the request, passes reports on, and waits for the result.

Below it are the readers of the page's result, which is untrusted (B7), and the errors for a caller whose
page or browser went away during the run (B6).
"""

import asyncio
import json
import re
from collections.abc import Callable
from secrets import token_hex
from typing import Any

import msgspec
from msgspec import Raw

from afoot.core.facts import NOTHING, Result
from afoot.core.ports import Report, Run
from afoot.errors import RunnerDied, ToolError
from afoot.providers.arguments import fits_schema
from afoot.providers.browser.profiles import OpenContext, RunFrame
from afoot.providers.browser.tools.draft import ToolDraft
from afoot.providers.content import clean_line, clean_text, finite_number, text_content, without_surrogates
from afoot.wire.browser_data import PageError, PageReport
from afoot.wire.extension import (
    RunCancel,
    RunDispatch,
    RunLog,
    RunProgress,
    RunResult,
    RunWaiting,
    write_frame,
)

LINK_LOST = "link_lost"
URL_LIMIT = 500  # characters
MESSAGE_LIMIT = 1000  # characters
DATA_BYTES = 64 * 1024
# Data of reports is written into the history. The page limits its own rate, but is not trusted to do so:
# a token bucket for each run allows a burst of 1 MB and then 500 kB a second.
HISTORY_BURST = 1_000_000.0  # bytes
HISTORY_RATE_S = 500_000.0  # bytes a second
HISTORY_MIN_BYTES = 1000.0  # the cost of even the smallest data
LOG_LINES = 1000  # of one run; further lines are counted and dropped
MAX_IMPEDIMENTS = 100  # changes of the impediment that are reported for one run
LATE_S = 600.0  # time to wait for the end of a run that was told to stop
LOG_LEVELS = {
    "debug": "debug",
    "log": "info",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
}

ERROR_LIMIT = 10_000
MAX_RETRY_MS = 1e9
CATEGORIES = frozenset(
    (
        "auth",
        "rate_limit",
        "not_found",
        "validation",
        "timeout",
        "cancelled",
        "refused",
        "unavailable",
        "internal",
    )
)
RESULT_KEYS = {"content", "structuredContent", "isError", "_meta"}  # of a result as MCP has it
CONTENT_TYPES = frozenset(("text", "image", "audio", "resource", "resource_link"))

_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")

# By the reason why a document is gone: the code for programs, what happened, what to do.
_ENDINGS = {
    "closed": ("tab_closed", "its tab was closed", "open {url} and call it again"),
    "reloaded": ("tab_reloaded", "its page was loaded anew", "call it again"),
    "navigated": ("tab_navigated", "its tab went to another page", "open {url} and call it again"),
    "cached": ("tab_navigated", "its tab went to another page", "open {url} and call it again"),
    "crashed": ("tab_crashed", "its tab crashed", "load {url} anew and call it again"),
    "discarded": ("tab_discarded", "its tab was discarded for memory", "open tab {tab} and call it again"),
    "removed": ("frame_removed", "its frame was taken out of its page", "call it again"),
    "replaced": ("plugin_replaced", "its plugin's code was replaced", "call it again"),
    "lost": (LINK_LOST, "its page cannot be reached any more", "see that {url} is open, and call it again"),
}  # fmt: skip

CountDropped = Callable[[str, int], None]


class PageRun:
    """A run under way (`profiles.ContextRun`). Its frames come from its own page context alone (B7)."""

    def __init__(self, run: Run, context: OpenContext, draft: ToolDraft, count: CountDropped) -> None:
        self.id = token_hex(16)
        self.run = run
        self.context = context
        self._draft = draft
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._outcome: asyncio.Future[RunResult] = self._loop.create_future()
        self._seq = 0
        self._is_back = False  # after a lost link, a page sends frames again that were not acknowledged
        self._cancel_reason: str | None = None
        self._logged = 0
        self._impediment = ("", "")
        self._impediment_count = 0
        self._history_credit = HISTORY_BURST
        self._history_at = self._loop.time()

    @property
    def call_id(self) -> str:
        """The id of the call that it belongs to."""
        return self.run.id

    async def execute(self, given: Raw) -> Result:
        """Run the tool in its page, and wait for the end; raises ToolError, RunnerDied."""
        context = self.context
        context.runs[self.id] = self
        try:
            if not self._send(RunDispatch(context.info.id, self.id, self._draft.page, given)):
                raise unsent_error(context)
            self.check_impediment()
            try:
                await asyncio.wait([self._outcome])
            except asyncio.CancelledError as cancelled:
                await self._cancel_and_wait(str(cancelled))
                if not self._outcome.done():
                    raise
            return read_result(self._outcome.result(), self._draft)
        finally:
            context.runs.pop(self.id, None)
            if self._outcome.done() and not self._outcome.cancelled():
                self._outcome.exception()  # retrieved here, in case this task was cancelled twice

    def fail(self, error: RunnerDied) -> None:
        """End the run with this error, unless it has ended: its page or its browser is gone."""
        if not self._outcome.done():
            self._outcome.set_exception(error)

    def resume(self) -> None:
        """Go on after a lost link: the page still runs the tool. A cancel that it missed is sent again."""
        self._is_back = True
        self.check_impediment()
        if self._cancel_reason is not None:
            self._loop.call_soon(self._send_cancel)  # after the welcome, which comes first

    def on_frame(self, frame: RunFrame) -> None:
        """Handle a frame that came from the run's own page context."""
        self._log_frame("in", frame)
        match frame:
            case RunProgress():
                self._on_progress(frame)
            case RunWaiting():
                self._on_waiting(frame)
            case RunLog():
                self._on_log(frame)
            case RunResult():
                self._on_result(frame)

    def check_impediment(self) -> None:
        """Report what slows or stops the run now, if that has changed."""
        now = self.context.impediment()
        # The limit keeps a page that flickers from filling the history.
        if now != self._impediment and self._impediment_count < MAX_IMPEDIMENTS:
            self._impediment = now
            self._impediment_count += 1
            self.run.hindered(*now)

    def _on_progress(self, frame: RunProgress) -> None:
        """Pass reports on. The page limits their rate, and the engine samples them for the history."""
        if not self._is_next(frame.seq):
            return
        if frame.dropped > 0:
            self._count("reports left out by pages", frame.dropped)
        for report in frame.reports:
            self._report(report)

    def _on_waiting(self, frame: RunWaiting) -> None:
        """Report that the run waits for a person in its tab, or (no message) that it goes on (C6)."""
        if self._outcome.done():
            return
        if frame.message is None:
            self.run.waiting(None)
        else:
            self.run.waiting(clean_line(frame.message, MESSAGE_LIMIT) or "waiting for somebody in the tab")

    def _on_log(self, frame: RunLog) -> None:
        self._logged += 1
        if self._logged > LOG_LINES:
            self._count("log lines over the limit", 1)
            return
        level = LOG_LEVELS.get(frame.level, "info")
        self.run.log(clean_text(frame.text, 10 * MESSAGE_LIMIT), level, self._draft.source.address)

    def _on_result(self, frame: RunResult) -> None:
        if self._outcome.done() or not self._is_next(frame.seq):
            return
        self._outcome.set_result(frame)

    async def _cancel_and_wait(self, reason: str) -> None:
        """Tell the page to stop, and wait for its end: a result that it still sends may count (X2).

        The engine's own grace is shorter; a result that comes after it is kept as a late one.
        """
        self._cancel_reason = self.run.cancelled or reason or "the call is over"
        self._send_cancel()
        await asyncio.wait([self._outcome], timeout=LATE_S)

    def _send_cancel(self) -> None:
        if not self._outcome.done():
            self._send(RunCancel(self.context.info.id, self.id, self._cancel_reason or ""))

    def _send(self, message: RunDispatch | RunCancel) -> bool:
        self._log_frame("out", message)
        return self.context.profile.is_up and self.context.profile.carrier.send(message)

    def _log_frame(self, way: str, message: RunDispatch | RunCancel | RunFrame) -> None:
        """Write a frame to the wire log, if the call has one."""
        if self.run.wire_log is not None:
            self.run.wire_log.add(self.run.id, "page", way, write_frame(message))

    def _is_next(self, seq: int) -> bool:
        """Whether this frame is new. A repeated one is counted, except after a lost link."""
        if seq > self._seq:
            self._seq = seq
            return True
        if not self._is_back:
            self._count("frames out of order", 1)
        return False

    def _report(self, report: PageReport) -> None:
        """Clean a report, and pass it on (P4)."""
        progress = finite_number(report.progress)
        total = finite_number(report.total)
        message = clean_line(report.message, MESSAGE_LIMIT)
        if progress != report.progress or total != report.total:
            self._count("numbers repaired", 1)
        data = report.data
        if len(data) > DATA_BYTES:
            self._count("data over the limit", 1)
            data = NOTHING
        if data and bytes(data) != b"null" and self._may_write(len(data)):
            self.run.content(Report(progress, total, message, Raw(bytes(data))))
        elif report.alive and progress is None and total is None and message is None:
            self.run.alive()
        else:
            self.run.report(progress, total, message)

    def _may_write(self, size: int) -> bool:
        """Whether data of this size may be written to the history now; if not, only the data is dropped."""
        now = self._loop.time()
        earned = (now - self._history_at) * HISTORY_RATE_S
        self._history_credit = min(HISTORY_BURST, self._history_credit + earned)
        self._history_at = now
        cost = max(HISTORY_MIN_BYTES, size)
        if self._history_credit < cost:
            self._count("data over the rate", 1)
            return False
        self._history_credit -= cost
        return True


def read_result(ended: RunResult, draft: ToolDraft) -> Result:
    """The result of a run; raises ToolError if it failed, or if the result does not fit its outputSchema."""
    if ended.error is not None:
        raise _read_error(ended.error)
    if not ended.value:
        return _check_output(Result(Raw(b"[]")), draft)
    value = _decode(ended.value)
    if isinstance(value, str):
        return _check_output(Result(text_content(value)), draft)
    if isinstance(value, dict) and value.keys() <= RESULT_KEYS and _is_content(value.get("content")):
        structured = value.get("structuredContent")
        data = Raw(msgspec.json.encode(structured)) if isinstance(structured, dict) else NOTHING
        is_error = value.get("isError") is True
        built = Result(Raw(msgspec.json.encode(value["content"])), data, is_error)
        return built if is_error else _check_output(built, draft)
    text = text_content(bytes(ended.value).decode(errors="replace"))
    return _check_output(Result(text, ended.value.copy() if isinstance(value, dict) else NOTHING), draft)


def _check_output(built: Result, draft: ToolDraft) -> Result:
    """Check a result against the tool's outputSchema, because hosts rely on it; raises ToolError."""
    if not draft.output:
        return built
    if not built.structured or not fits_schema(draft.output, msgspec.json.decode(built.structured)):
        what = f"{draft.page} returned something that does not fit its own outputSchema"
        raise ToolError.internal(what, code="bad_result")
    return built


def _read_error(error: PageError) -> ToolError:
    """The error that a page threw. Its category counts if it is one of ours; its text is cleaned and cut."""
    name = clean_line(error.name, 100) or "Error"
    text = clean_text(error.message, ERROR_LIMIT).strip()
    if not text:
        message = name
    elif name in ("Error", "ToolError"):
        message = text
    else:
        message = f"{name}: {text}"
    category = error.category if error.category in CATEGORIES else "internal"
    if category == "internal" and name == "AbortError":
        category = "cancelled"
    wait_ms = error.retry_after_ms
    wait_s = wait_ms / 1000 if wait_ms is not None and 0 <= wait_ms <= MAX_RETRY_MS else None
    code = error.code if _CODE.fullmatch(error.code) else None
    return ToolError(message, category, code=code, retryable=error.retryable, retry_after=wait_s)


def _decode(value: Raw) -> Any:
    """The JSON value that a page sent; None if it can only be shown as the text it is."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # half a surrogate pair, or a number that only the standard library reads
    except RecursionError:
        return None
    try:
        found = json.loads(bytes(value).decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return without_surrogates(found) if isinstance(found, str) else None


def _is_content(items: object) -> bool:
    """Whether this is a list of MCP content blocks."""
    return isinstance(items, list) and all(
        isinstance(item, dict) and item.get("type") in CONTENT_TYPES and _is_complete(item) for item in items
    )


def _is_complete(item: dict[str, Any]) -> bool:
    """Whether a content block has the fields of its type: hosts refuse a result if one is missing."""
    match item["type"]:
        case "text":
            return isinstance(item.get("text"), str)
        case "image" | "audio":
            return isinstance(item.get("data"), str) and isinstance(item.get("mimeType"), str)
        case "resource":
            return isinstance(item.get("resource"), dict) and isinstance(item["resource"].get("uri"), str)
        case _:
            return isinstance(item.get("uri"), str) and isinstance(item.get("name"), str)


def context_gone_error(context: OpenContext, why: str) -> RunnerDied:
    """The error of a run whose document is gone."""
    code, what, then = _ENDINGS.get(why, _ENDINGS["lost"])
    then = then.format(url=page_url(context), tab=context.key)
    return RunnerDied(f"{what} while it ran there; {then}", code=code)


def unknown_run_error(context: OpenContext) -> RunnerDied:
    """The error of a run that the browser does not know any more after a lost link."""
    what = f"the link to the browser was lost, and {page_url(context)} knows nothing of it any more"
    return RunnerDied(f"{what}; call it again", code=LINK_LOST)


def link_lost_error(context: OpenContext, grace_s: float) -> RunnerDied:
    """The error of a run whose browser did not come back."""
    lost = f"the link to {context.profile.name} was lost for over {grace_s:g} s (link_grace_s)"
    what = lost if grace_s else f"{context.profile.name} is gone"
    then = f"see that the browser runs and has {page_url(context)} open, and call it again"
    return RunnerDied(f"{what}; {then}", code=LINK_LOST)


def unsent_error(context: OpenContext) -> RunnerDied:
    """The error of a run whose request could not be sent."""
    return RunnerDied(f"{context.profile.name} could not be reached", began=False, code=LINK_LOST)


def page_url(context: OpenContext) -> str:
    """The last address of a context's page, without query and fragment: they may hold secrets."""
    url = (context.info.url or context.tab.url).partition("#")[0].partition("?")[0]
    return clean_line(url, URL_LIMIT) or context.info.origin or "its page"
