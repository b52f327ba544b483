"""Cancels of calls: at once, or after a few seconds in which they can be withdrawn.

The delay is kept here and not in the page that asks, so the cancel comes although that page was closed or its
connection broke. It is no fact: while it is pending, nothing has happened to the call.
"""

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.call import State
from afoot.engine.live_call import LiveCall
from afoot.serve.access.principal import ANSWER
from afoot.serve.api.calls import call_in_path
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.api.views import call_view
from afoot.serve.gateway_state import GatewayState, PendingCancel

MAX_DELAY_S = 60.0


class CancelCallRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a call should stop, and after how many seconds."""

    reason: str = "the operator cancelled it"
    after_s: float = 0.0


async def cancel(request: ApiRequest) -> None:
    """Ask a call to stop, now or in a moment."""
    want = await request.body(CancelCallRequest)
    gateway = request.gateway
    live = await _own_live_call(request)
    reason = want.reason or CancelCallRequest().reason
    if not 0 <= want.after_s <= MAX_DELAY_S:
        raise ApiError(422, f"after_s: must be a number from 0 to {MAX_DELAY_S:g}", fields=["after_s"])
    if not want.after_s:
        _forget(gateway, live)
        _cancel_now(request, live, reason)
    elif _may_withdraw(request, live):
        _forget(gateway, live)
        due = gateway.engine.clock.now() + want.after_s
        timer = gateway.engine.clock.at(due, lambda: _cancel_now(request, live, reason))
        gateway.pending_cancels[live.call.id] = PendingCancel(due, timer, request.identity)
    seen = call_view(live.call, gateway.engine.clock.now())
    await gateway.wait_until_recorded()
    pending = gateway.pending_cancels.get(live.call.id)
    await request.answer(202, replace(seen, cancel_due=pending.due) if pending else seen)


async def withdraw(request: ApiRequest) -> None:
    """Withdraw a cancel that is still pending."""
    request.query()
    gateway = request.gateway
    live = await _own_live_call(request)
    if not _may_withdraw(request, live):
        request.principal.require_scope(ANSWER)
    if not _forget(gateway, live):
        what = (
            "is being cancelled already" if live.call.state is State.CANCELLING else "has no pending cancel"
        )
        raise ApiError(409, f"call {live.call.id} {what}", "refused")
    await request.answer(200, call_view(live.call, gateway.engine.clock.now()))


async def _own_live_call(request: ApiRequest) -> LiveCall:
    """The call that the path names, if it lives and the asker may stop it; raises ApiError, Denied."""
    live = await call_in_path(request)
    call = live.call
    if call.opened.caller != request.principal.caller:
        request.principal.require_scope(ANSWER)
    if call.end is not None:
        raise ApiError(
            409, f"call {call.id} is over: {call.end.outcome}", "refused", outcome=call.end.outcome
        )
    return live


def _may_withdraw(request: ApiRequest, live: LiveCall) -> bool:
    """Whether the asker may take back or put off the pending cancel of a call, if there is one.

    The caller of a call may not do so with the cancel of somebody else, who wants it to stop.
    """
    pending = request.gateway.pending_cancels.get(live.call.id)
    return pending is None or pending.by == request.identity or ANSWER in request.principal.scopes


def _cancel_now(request: ApiRequest, live: LiveCall, reason: str) -> None:
    """Cancel a call; nothing happens if it is over by now."""
    request.gateway.pending_cancels.pop(live.call.id, None)
    request.gateway.engine.cancel(live, request.principal.role, reason, request.identity)


def _forget(gateway: GatewayState, live: LiveCall) -> bool:
    """Drop the pending cancel of a call, and return whether there was one."""
    pending = gateway.pending_cancels.pop(live.call.id, None)
    if pending is not None:
        pending.timer.cancel()
    return pending is not None
