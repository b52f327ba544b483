"""One run of a tool in a page, from its dispatch to its end: what it says, and how it is stopped."""

import asyncio
from collections.abc import Callable
from secrets import token_hex

from msgspec import Raw

from afoot.core.facts import NOTHING, Result
from afoot.core.ports import Report, Run
from afoot.errors import RunnerDied
from afoot.providers.browser.deaths import unsent
from afoot.providers.browser.offers import Draft
from afoot.providers.browser.results import result
from afoot.providers.browser.rooms import OpenRoom
from afoot.providers.hygiene import line, lines, number
from afoot.wire.link import Asking, Cancel, Dispatch, Ended, Progressed, Said, write
from afoot.wire.room import PageReport

MESSAGE_LIMIT = 1000
DATA_BYTES = 64 * 1024
BURST, RATE_S = 20_000.0, 10_000.0  # reports at once, and a second; of more the newest is kept
DATA_COST = 20.0  # one with data is written down, and counts as so many
DATA_WEIGHT = 50  # or as one more for each so many bytes
CALM_S = 0.1  # so long after a flood its newest report may wait
LOG_LINES = 1000
HINDRANCES = 100  # that are told of one run
LATE_S = 600.0  # so long the end of a run that was told to stop is waited for
LEVELS = {
    "debug": "debug",
    "log": "info",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
}

Count = Callable[[str, int], None]


class Errand:
    """A run under way. Whatever comes from its room, and from nowhere else, is told here (B7)."""

    def __init__(self, run: Run, room: OpenRoom, draft: Draft, count: Count) -> None:
        self.id = token_hex(16)
        self.run, self.room = run, room
        self._draft, self._count = draft, count
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[Ended] = self._loop.create_future()
        self._seq = 0
        self._is_back = False  # what was sent before its link was lost may be sent again
        self._stop: str | None = None
        self._logged = 0
        self._hindrance, self._hindrances = ("", ""), 0
        self._credit, self._at = BURST, self._loop.time()
        self._newest: PageReport | None = None  # of those that were too many
        self._calm: asyncio.TimerHandle | None = None

    async def work(self, given: Raw) -> Result:
        """Have it run, and wait for its end; raises ToolError, RunnerDied."""
        room = self.room
        room.runs[self.id] = self
        try:
            if not self._send(Dispatch(room.room.id, self.id, self._draft.page, given)):
                raise unsent(room)
            self.look()
            try:
                await asyncio.wait([self._end])
            except asyncio.CancelledError as cancelled:
                await self._stopped(str(cancelled))
                if not self._end.done():
                    raise
            return result(self._end.result(), self._draft)
        finally:
            room.runs.pop(self.id, None)
            if self._calm is not None:
                self._calm.cancel()
            if self._end.done() and not self._end.cancelled():
                self._end.exception()  # nobody else asks for it, where this was cancelled twice

    def die(self, how: RunnerDied) -> None:
        """What it ran on is gone."""
        if not self._end.done():
            self._end.set_exception(how)

    def returned(self) -> None:
        """Its browser is back, and so is its room, where it still runs: what it missed is said again."""
        self._is_back = True
        self.look()
        if self._stop is not None:
            self._loop.call_soon(self._tell)  # a browser hears nothing before its welcome

    def tape(self, way: str, message: Dispatch | Cancel | Progressed | Asking | Said | Ended) -> None:
        """Take down what is said of it, where that is wanted."""
        if self.run.tapes is not None:
            self.run.tapes.add(self.run.id, "page", way, write(message))

    def look(self) -> None:
        """See whether something slows it or stops it now."""
        now = self.room.hindrance()
        if now != self._hindrance and self._hindrances < HINDRANCES:  # one who flickers fills no history
            self._hindrance = now
            self._hindrances += 1
            self.run.hindered(*now)

    def progressed(self, frame: Progressed) -> None:
        """It reported."""
        if not self._is_next(frame.seq):
            return
        if frame.dropped > 0:
            self._count("reports left out by pages", frame.dropped)
        for report in frame.reports:
            self._report(report)

    def asking(self, frame: Asking) -> None:
        """It waits for a person in its tab, or no more (C6)."""
        if not self._end.done():
            said = None if frame.message is None else line(frame.message, MESSAGE_LIMIT)
            is_over = frame.message is None
            self.run.waiting(None if is_over else said or "waiting for somebody in the tab")

    def said(self, frame: Said) -> None:
        """It logged a line."""
        self._logged += 1
        if self._logged > LOG_LINES:
            self._count("log lines over the limit", 1)
            return
        level = LEVELS.get(frame.level, "info")
        self.run.log(lines(frame.text, 10 * MESSAGE_LIMIT), level, self._draft.source.address)

    def ended(self, frame: Ended) -> None:
        """It is over."""
        if self._end.done() or not self._is_next(frame.seq):
            return
        self._flush()
        self._end.set_result(frame)

    async def _stopped(self, reason: str) -> None:
        """Tell the page to stop, and wait for its end: what it gives back then may still count (X2).

        The engine has its own grace: what comes later is kept as late.
        """
        self._stop = self.run.cancelled or reason or "the call is over"
        self._tell()
        await asyncio.wait([self._end], timeout=LATE_S)

    def _tell(self) -> None:
        if not self._end.done():
            self._send(Cancel(self.room.room.id, self.id, self._stop or ""))

    def _send(self, message: Dispatch | Cancel) -> bool:
        self.tape("out", message)
        return self.room.profile.is_up and self.room.profile.carrier.send(message)

    def _is_next(self, seq: int) -> bool:
        """Whether this frame is new; what is sent again after a lost link is no oddity."""
        if seq > self._seq:
            self._seq = seq
            return True
        if not self._is_back:
            self._count("frames out of order", 1)
        return False

    def _report(self, report: PageReport) -> None:
        now = self._loop.time()
        self._credit = min(BURST, self._credit + (now - self._at) * RATE_S)
        self._at = now
        cost = max(DATA_COST, len(report.data) / DATA_WEIGHT) if report.data else 1.0
        if self._credit < cost:
            self._count("reports over the rate", 1)
            self._newest = report
            if self._calm is None:
                self._calm = self._loop.call_later(CALM_S, self._flush)
            return
        self._credit -= cost
        self._newest = None
        self._pass(report)

    def _flush(self) -> None:
        """The newest of what was too much is told after all."""
        report, self._newest = self._newest, None
        if self._calm is not None:
            self._calm.cancel()
            self._calm = None
        if report is not None:
            self._pass(report)

    def _pass(self, report: PageReport) -> None:
        """A report made fit to be passed on (P4)."""
        progress, total = number(report.progress), number(report.total)
        said = line(report.message, MESSAGE_LIMIT)
        if progress != report.progress or total != report.total:
            self._count("numbers repaired", 1)
        data = report.data
        if len(data) > DATA_BYTES:
            self._count("data over the limit", 1)
            data = NOTHING
        if data and bytes(data) != b"null":
            self.run.content(Report(progress, total, said, Raw(bytes(data))))
        elif report.alive and progress is None and total is None and said is None:
            self.run.alive()
        else:
            self.run.report(progress, total, said)
