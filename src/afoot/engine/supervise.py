"""One attempt of one call: what its provider may do to it, and the one place that catches everything."""

import asyncio
import logging
import traceback
from typing import TYPE_CHECKING

from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Answer, Failure, Finished, Logged, Question, Reading, Reported, Result
from afoot.core.ports import Report
from afoot.engine.live import Live
from afoot.errors import ToolError

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

SAMPLE_S = 1.0  # at most one reading a second goes into the history

log = logging.getLogger("afoot.engine")


class Attempt:
    """A run as the engine gives it to a provider (`core.ports.Run`)."""

    __slots__ = ("_engine", "_live", "attempt")

    def __init__(self, engine: "Engine", live: Live) -> None:
        self._engine = engine
        self._live = live
        self.attempt = live.call.attempt

    @property
    def id(self) -> str:
        return self._live.call.id

    @property
    def cancelled(self) -> str | None:
        cancel = self._live.call.cancel
        return None if cancel is None else cancel.reason

    @property
    def resumed_from(self) -> Raw:
        return self._live.call.checkpoint

    def report(self, progress: float | None, total: float | None, message: str | None) -> None:
        """Note a reading: seen at once, sampled into the history; nothing waits, nothing is encoded."""
        live, call = self._live, self._live.call
        if call.end is not None or call.attempt != self.attempt:
            self.content(Report(progress, total, message))
            return
        now = self._engine.clock.now()
        live.heard = now
        reading = Reading(now, progress, total, message)
        call.latest = reading
        call.readings += 1
        if live.readings is not None:
            live.readings.append(reading)
        if now - live.sampled >= SAMPLE_S:
            self._engine.sample(live, now)
        else:
            live.left_out += 1
        for follower in live.watchers:
            follower.notice(now)

    def content(self, report: Report) -> None:
        """Record a report that is more than numbers, or that comes too late."""
        live = self._live
        now = self._engine.clock.now()
        if live.call.is_finished:
            if now - live.late_at < SAMPLE_S and not report.partial:
                return  # a runaway tool fills no history
            live.late_at = now
        live.heard = now
        if len(bytes(report.data)) > self._engine.max_data_bytes:
            log.warning("call %s: data over %d bytes was dropped", live.call.id, self._engine.max_data_bytes)
            report = replace(report, data=NOTHING)
        self._engine.commit(
            live,
            Reported(
                now,
                self.attempt,
                report.progress,
                report.total,
                report.message,
                report.data,
                report.partial,
                report.checkpoint,
            ),  # fmt: skip
        )

    def alive(self) -> None:
        """A heartbeat: it re-arms the idle limit and is no advance (C5)."""
        self._live.heard = self._engine.clock.now()

    def log(self, text: str, level: str, logger: str) -> None:
        if self._live.call.started is not None:
            self._engine.commit(self._live, Logged(self._engine.clock.now(), text, level, logger))

    async def ask(self, question: Question) -> Answer:
        return await self._engine.ask(self._live, question)


async def supervise(engine: "Engine", live: Live) -> None:
    """Run the call's work to its end, whatever that is, and say how it ended."""
    assert live.work is not None
    call = live.call
    try:
        result = await live.work(Attempt(engine, live))
    except asyncio.CancelledError:
        reason = call.cancel.reason if call.cancel else "the gateway is shutting down"
        end = engine.ending(live, "cancelled", Failure(f"cancelled: {reason}", "cancelled", "cancelled"))
    except ToolError as error:
        end = engine.ending(live, "failed", told(error))
    except (Exception, SystemExit) as error:
        log.exception("call %s: tool %s crashed", call.id, live.tool.name)
        end = engine.ending(live, "failed", crashed(live, error))
    else:
        end = fitting(engine, live, result)
    engine.end(live, end)


def fitting(engine: "Engine", live: Live, result: Result) -> Finished:
    """The end of work that returned; a result that is too large is a failure that says so (G3)."""
    size = len(bytes(result.content)) + len(bytes(result.structured))
    if size > engine.max_result_bytes:
        text = f"the result has {size} bytes, over {engine.max_result_bytes} (raise max_result_bytes)"
        return engine.ending(live, "failed", Failure(text, "internal", "result_too_large"))
    return Finished(engine.clock.now(), "failed" if result.is_error else "ok", result)


def told(error: ToolError) -> Failure:
    """What a tool said of its own failure."""
    return Failure(error.message, error.category, error.code, error.retryable, error.retry_after)


def crashed(live: Live, error: BaseException) -> Failure:
    """A crash is a clean line to the caller; the trace is for log and history (E3)."""
    trace = "".join(traceback.format_exception(error))[-16_000:]
    return Failure(f"tool {live.tool.name} crashed: {type(error).__name__}: {error}"[:1000], trace=trace)
