"""Callers over the operator's API: what each has running, what it has used, and what it may use (G2)."""

from collections import Counter

from msgspec import Struct

from afoot.core.call import State
from afoot.engine.quota import Refusal, Used, over
from afoot.serve.request import Request
from afoot.tables import QuotaSettings


class QuotaView(Struct, frozen=True):
    """What a caller may use; 0: without end."""

    calls: int
    cpu_s: float
    per_s: float
    concurrent: int
    concurrency: int


class CallerView(Struct, frozen=True):
    """A caller: its calls that live and of these that wait in a queue; what it has used of its quota."""

    caller: str
    live: int
    queued: int
    calls: int = 0  # within `per_s`
    cpu_s: float = 0.0
    refused: int = 0  # calls over its quota, since the gateway started
    last_refused: Refusal | None = None
    quota: QuotaView | None = None
    free_at: float | None = None  # when it may call again, if time alone keeps it from that


class CallerList(Struct, frozen=True):
    """Callers that have calls now, or a quota of which they have used something; by name."""

    callers: list[CallerView]


async def index(request: Request) -> None:
    """The callers there are, and their quotas."""
    request.query()
    engine = request.site.engine
    lives = [live.call for live in engine.calls() if live.parent is None]
    live = Counter(call.opened.caller for call in lives)
    queued = Counter(call.opened.caller for call in lives if call.state is State.QUEUED and not call.open)
    names = sorted({*live, *(engine.quota.used if engine.quota is not None else ())})
    seen = [_seen(request, name, live[name], queued[name]) for name in names]
    await request.answer(200, CallerList(seen))


def _seen(request: Request, caller: str, live: int, queued: int) -> CallerView:
    engine = request.site.engine
    limits = None if engine.quota is None else engine.quota.of(caller)
    if engine.quota is None or limits is None:
        return CallerView(caller, live, queued)
    used = engine.quota.used.get(caller) or Used()
    now = engine.clock.now()
    used.forget(now - limits.per_s)
    full = over(limits, used, now, lambda: 0)
    return CallerView(
        caller, live, queued, len(used.calls), round(used.cpu_s, 3), used.refused, used.last, _shown(limits),
        now + full[1] if full else None,
    )  # fmt: skip


def _shown(limits: QuotaSettings) -> QuotaView:
    return QuotaView(limits.calls, limits.cpu_s, limits.per_s, limits.concurrent, limits.concurrency)
