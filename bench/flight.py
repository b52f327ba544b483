"""`Flight` keeps a number of requests in flight, bounded in count and time, on every transport alike."""

import asyncio
import itertools
import time
from dataclasses import dataclass, field

from bench.wire import FAILED, BenchError, Template

LIMIT_S = 60.0
"""No flight lasts longer, whatever the server does."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests to send: `at_once` in flight, at most `limit` in all, no new one after `seconds`."""

    template: Template
    at_once: int
    limit: int
    seconds: float = LIMIT_S
    until_notes: int | None = None
    """Land when so many notifications came, without waiting for answers."""


@dataclass(slots=True)
class Flight:
    """Counts answers and notifications while requests are in flight."""

    plan: Plan
    numbers: "itertools.count[int]"
    landed: "asyncio.Future[None]"
    sent: int = 0
    answered: int = 0
    notes: int = 0
    last: bytes = b""
    began: float = field(default_factory=time.perf_counter)
    ended: float = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first request to the last answer."""
        return self.ended - self.began

    def next(self) -> bytes:
        """Return the next request, or nothing when the plan is used up."""
        if self.sent >= self.plan.limit or time.perf_counter() - self.began >= self.plan.seconds:
            return b""
        self.sent += 1
        return self.plan.template.fill(next(self.numbers))

    def note(self, count: int) -> None:
        """Count notifications."""
        self.notes += count
        if self.plan.until_notes is not None and self.notes >= self.plan.until_notes:
            self._land()

    def answer(self, body: bytes) -> bytes:
        """Count an answer, and return the request to send in its place."""
        if FAILED.search(body):
            self.fail(f"the server answered with an error: {body[:500]!r}")
            return b""
        self.answered += 1
        self.last = body
        request = self.next()
        if not request and self.answered == self.sent:
            self._land()
        return request

    def fail(self, text: str) -> None:
        """End the flight with an error; a second one changes nothing."""
        if not self.landed.done():
            self.landed.set_exception(BenchError(text))

    async def wait(self) -> None:
        """Wait for the last answer; raises BenchError after LIMIT_S."""
        try:
            async with asyncio.timeout(LIMIT_S):
                await self.landed
        except TimeoutError as error:
            counts = f"{self.answered} of {self.sent} answered, {self.notes} notifications"
            raise BenchError(f"not finished after {LIMIT_S:g} s: {counts}") from error

    def _land(self) -> None:
        if not self.landed.done():
            self.ended = time.perf_counter()
            self.landed.set_result(None)
