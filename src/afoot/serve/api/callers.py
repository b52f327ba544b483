"""Callers over the operator's API: their live calls, what they have used, and their quotas (G2)."""

from collections import Counter

from msgspec import Struct

from afoot.config.tables import QuotaSettings
from afoot.core.call import State
from afoot.engine.quota import QuotaRefusal, QuotaUsage, exceeded_limit
from afoot.serve.api.request import ApiRequest


class QuotaView(Struct, frozen=True):
    """A caller's quota; 0 means no limit."""

    calls: int
    cpu_s: float
    per_s: float
    concurrent: int
    concurrency: int
    sessions: int


class CallerView(Struct, frozen=True):
    """A caller: its live calls, how many of these are queued, and what it has used of its quota."""

    caller: str
    live: int
    queued: int
    calls: int = 0  # within `per_s`
    cpu_s: float = 0.0
    refused: int = 0  # calls over its quota, since the gateway started
    last_refused: QuotaRefusal | None = None
    quota: QuotaView | None = None
    free_at: float | None = None  # when it may call again, if it only has to wait


class CallerList(Struct, frozen=True):
    """Callers with live calls, or with a quota of which they have used something; by name."""

    callers: list[CallerView]


async def index(request: ApiRequest) -> None:
    """All callers, and their quotas."""
    request.query()
    engine = request.gateway.engine
    lives = [live.call for live in engine.calls() if live.parent is None]
    live = Counter(call.opened.caller for call in lives)
    queued = Counter(call.opened.caller for call in lives if call.state is State.QUEUED and not call.open)
    names = sorted({*live, *(engine.quota.used if engine.quota is not None else ())})
    seen = [_caller_view(request, name, live[name], queued[name]) for name in names]
    await request.answer(200, CallerList(seen))


def _caller_view(request: ApiRequest, caller: str, live: int, queued: int) -> CallerView:
    engine = request.gateway.engine
    limits = None if engine.quota is None else engine.quota.limits_of(caller)
    if engine.quota is None or limits is None:
        return CallerView(caller, live, queued)
    used = engine.quota.used.get(caller) or QuotaUsage()
    now = engine.clock.now()
    used.forget(now - limits.per_s)
    full = exceeded_limit(limits, used, now, lambda: 0)
    return CallerView(
        caller, live, queued, len(used.calls), round(used.cpu_s, 3), used.refused, used.last,
        _quota_view(limits), now + full[1] if full else None,
    )  # fmt: skip


def _quota_view(limits: QuotaSettings) -> QuotaView:
    return QuotaView(
        limits.calls, limits.cpu_s, limits.per_s, limits.concurrent, limits.concurrency, limits.sessions
    )
