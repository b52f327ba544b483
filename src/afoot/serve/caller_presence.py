"""`CallerRequests` are the requests that follow one call; `Callers` knows which callers are connected.

Both live in memory alone: a gateway that starts again learns anew who is there.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from afoot.core.call import ProgressSeries
from afoot.core.ports import OpeningRequest
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall

# Client commands read views of calls, which import this module, and must not load jsonschema_rs or pydantic.
if TYPE_CHECKING:
    from afoot.engine.engine import Engine
    from afoot.providers.upstream.servers import Servers

CHECK_S = 1.0  # how often to check whether the calls of a caller that left are over


class CallerRequests(Struct, eq=False):
    """The requests by which a call's caller follows it, from the one that opened it to the newest.

    In 2026-07-28 a request may end with a round, and the client's retry begins the next one. Only requests of
    the newest round count: an older one that is still open has been given up by its client.
    """

    can_ask: bool  # whether the caller can be asked with a form
    opened_by: OpeningRequest | None = None
    attached: int = 0  # requests of the newest round that follow the call
    round: int = 0  # the newest
    retry_until: float = 0.0  # when the client's retry of a round without questions is due at the latest
    told_place: bool = False  # the model was told at once where a person can answer (Q5)
    taken: tuple[int, int] = (0, 0)  # how many facts and readings the request before has taken
    series: ProgressSeries = field(default_factory=ProgressSeries)  # the numbers that were sent (P4)
    tell_owner: Callable[[bool], object] | None = (
        None  # whether it is followed here, if another gateway has it
    )

    @property
    def is_followed(self) -> bool:
        """Whether a request of the newest round follows the call."""
        return self.attached > 0

    def reopened(self, request: OpeningRequest, *, can_ask: bool) -> None:
        """Count the request that joined the call after its caller had left, as if it had opened it."""
        self.opened_by = request
        self._count(1)
        self.can_ask = self.can_ask or can_ask

    def joined(self, *, can_ask: bool) -> None:
        """Count one more request of the newest round."""
        self._count(max(0, self.attached) + 1)
        self.can_ask = self.can_ask or can_ask

    def waited(self, *, can_ask: bool) -> None:
        """Take note of a request that waits for the call. It is not counted: the call does not run for it."""
        self.can_ask = self.can_ask or can_ask

    def retried(self, number: int, *, can_ask: bool) -> None:
        """Count the retry that begins round `number`."""
        self.can_ask = self.can_ask or can_ask
        self.retry_until = 0.0
        if number > self.round:  # the call waited through a restart, so no request has followed it yet
            self.round = number
            self.attached = 0
        if number == self.round:
            self._count(self.attached + 1)

    def ended_with_round(self, number: int, retry_until: float) -> None:
        """Note that a request ended with round `number`, and the time by which its retry is due."""
        if self.round < number:
            self.round = number
            self._count(0)
            self.retry_until = retry_until

    def left(self, number: int) -> bool:
        """Count one request of round `number` less; True if the call now runs for nobody."""
        if number != self.round:
            return False
        self.attached -= 1
        if self.attached <= 0 and self.tell_owner is not None:
            self.tell_owner(False)
        return self.attached <= 0

    def _count(self, attached: int) -> None:
        was_followed = self.attached > 0
        self.attached = attached
        if self.tell_owner is not None and (attached > 0) is not was_followed:
            self.tell_owner(attached > 0)

    def new_series(self) -> ProgressSeries:
        """Progress numbers for one more request, which go on where those of all others are."""
        return ProgressSeries(self.series.last, self.series.total)

    def merge_series(self, series: ProgressSeries) -> None:
        """Take in the progress numbers of a request that is over; another one may have come further."""
        if (series.last or 0.0) >= (self.series.last or 0.0):
            self.series.last = series.last
            self.series.total = series.total


def requests_of(live: LiveCall) -> CallerRequests:
    """The requests that follow this call; from now on the call carries them."""
    found = live.caller_requests
    if not isinstance(found, CallerRequests):
        found = live.caller_requests = CallerRequests(live.call.opened.can_ask)
    return found


def known_requests(live: LiveCall) -> CallerRequests | None:
    """The requests that follow this call; None if none has since this gateway started."""
    found = live.caller_requests
    return found if isinstance(found, CallerRequests) else None


def is_detached(live: LiveCall, now: float) -> bool:
    """Whether no request follows this call, and no retry is due: it runs for nobody, or is a task (X3)."""
    requests = known_requests(live)
    if requests is None:
        return True
    return requests.attached <= 0 and now >= requests.retry_until and not _is_retry_due(live, requests, now)


def _is_retry_due(live: LiveCall, requests: CallerRequests, now: float) -> bool:
    """Whether the client still asks its user what somebody else has answered: its retry comes (Q1, A5)."""
    call = live.call
    last = next(reversed(call.answers.values()), None)
    if last is None or not (requests.round and requests.can_ask) or last.answer.by == call.opened.caller:
        return False
    asked = call.questions[last.question]
    is_put = asked.kind in ("form", "approval") and asked.to != "operator"
    return is_put and now < call.asked_at[asked.id] + call.opened.limits.answer_s


class Callers:
    """Callers that are connected, by the streams that they hold open for nothing else.

    When one has left, the servers drop the connections that they keep for it alone (U1).
    """

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._open: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def present(self, caller: str, servers: "Servers | None") -> Iterator[None]:
        """Count the caller as connected while this lasts."""
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
                self.left(caller, servers)

    def left(self, caller: str, servers: "Servers | None") -> None:
        """Drop the connections that servers keep for this caller: it will not come again."""
        if servers is None or not any(one.entry.server.per_caller for one in servers.list()):
            return
        task = asyncio.create_task(self._forget(caller, servers))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget(self, caller: str, servers: "Servers") -> None:
        """Wait until its calls, which may run on without it, are over; then drop its connections."""
        wakeup, clock = Wakeup(), self._engine.clock
        while any(live.call.opened.caller == caller for live in self._engine.calls()):
            clock.at(clock.now() + CHECK_S, wakeup.wake)
            await wakeup.wait()
        if caller not in self._open:
            await servers.forget(caller)
