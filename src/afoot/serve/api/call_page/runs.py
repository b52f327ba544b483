"""The runs of the same tool before and after a call."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.ports import CallQuery
from afoot.serve.api.calls import call_in_path
from afoot.serve.api.request import ApiRequest
from afoot.serve.api.views import CallView, call_view, row_view


class Runs(Struct, frozen=True):
    """The nearest calls of the same tool, or null."""

    earlier: CallView | None
    later: CallView | None


async def runs(request: ApiRequest) -> None:
    """The calls of the same tool right before and right after this one."""
    request.query()
    engine = request.gateway.engine
    own = (await call_in_path(request)).call
    opened = own.opened
    now = engine.clock.now()
    query = CallQuery(tool=opened.tool, server=opened.server, caller=request.only_caller, limit=1)
    # `before` and `after` leave out calls of the very same moment, so the row of this call is not found.
    rows = [
        row_view(row, now)
        for bounded in (replace(query, before=opened.at), replace(query, after=opened.at))
        for row in await engine.journal.find(bounded)
    ]
    living = [
        call_view(live.call, now)
        for live in engine.calls()
        if (live.call.opened.tool, live.call.opened.server) == (opened.tool, opened.server)
        and request.may_see(live.call.opened.caller)
        and live.call.id != own.id
    ]
    found = {one.id: one for one in [*rows, *living]}.values()
    earlier = _nearest((one for one in found if one.opened < opened.at), opened.at)
    later = _nearest((one for one in found if one.opened > opened.at), opened.at)
    await request.answer(200, Runs(earlier, later))


def _nearest(calls: Iterable[CallView], at: float) -> CallView | None:
    return min(calls, key=lambda one: abs(one.opened - at), default=None)
