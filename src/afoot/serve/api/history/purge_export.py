"""`purge` deletes calls of the history over the operator's API; `export` sends the history as lines (H6)."""

import asyncio
import logging

from msgspec import Struct

from afoot.core.ports import PurgeRule
from afoot.engine.retention import LiveCallIds
from afoot.engine.retention import purge as purged
from afoot.errors import StoreError
from afoot.serve.api.calls import resolve_call
from afoot.serve.api.history.call_filters import FILTERS, read_filters
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.gateway_state import GatewayState
from afoot.store.export import export_lines
from afoot.store.search import find_by_id_part

NDJSON = "application/x-ndjson"
PURGE_OPTIONS = ("older_s", "keep", "call", "everything")
log = logging.getLogger("afoot.serve")


class PurgeRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The calls to delete, by exactly one of these."""

    older_s: float | None = None  # calls that were opened and ended longer ago
    keep: int | None = None  # all calls but the newest, so many
    call: str = ""
    everything: bool = False


class PurgeResult(Struct, frozen=True):
    """The number of calls that were deleted."""

    purged: int


async def purge(request: ApiRequest) -> None:
    """Delete calls for good; live calls stay."""
    want = await request.body(PurgeRequest)
    rule = await _purge_rule(request, want)
    await request.answer(200, PurgeResult(await purged(request.gateway.engine.journal, rule)))


async def export(request: ApiRequest) -> None:
    """Export all calls, one, or those that match, as lines of JSON: the facts of each, then its readings."""
    given = request.query("call", *FILTERS)
    gateway, reply = request.gateway, request.reply
    query = read_filters(request, given) if any(name in given for name in FILTERS) else None
    if query is not None and "call" in given:
        raise ApiError(422, "call: one call, or filters, but not both", fields=["call"])
    call = (await resolve_call(gateway, given["call"])).call.id if "call" in given else ""
    await gateway.wait_until_recorded()
    head = [(b"content-type", NDJSON.encode()), (b"cache-control", b"no-store"), *reply.headers]
    await reply.transmit({"type": "http.response.start", "status": 200, "headers": head})
    reply.streaming = True
    try:
        async for piece in export_lines(gateway.engine.journal, call, query):
            if reply.denied or gateway.engine.closing is not None or not request.is_still_admitted:
                # The client sees that the body is cut off: its last chunk never comes.
                reply.denied = ""
                return
            async with asyncio.timeout(gateway.settings.stuck_s):
                await reply.transmit({"type": "http.response.body", "body": piece, "more_body": True})
    except TimeoutError:  # the client does not read any more
        reply.gone = True
        return
    except StoreError as error:
        log.error("an export was cut off: %s", error)
        reply.gone = True  # the last chunk does not come here either
        return
    await reply.transmit({"type": "http.response.body", "body": b"", "more_body": False})


async def _purge_rule(request: ApiRequest, want: PurgeRequest) -> PurgeRule:
    engine = request.gateway.engine
    spare = LiveCallIds(engine)
    given = [want.older_s is not None, want.keep is not None, want.call != "", want.everything]
    if sum(given) != 1:
        raise ApiError(422, f"must be exactly one of {', '.join(PURGE_OPTIONS)}", fields=list(PURGE_OPTIONS))
    if want.call:
        call = await _call_id(request.gateway, want.call)
        if call in engine:
            raise ApiError(409, f"call {call} lives; only what is over can go", "refused")
        return PurgeRule(calls=[call], spare=spare)
    for name in ("older_s", "keep"):
        if (getattr(want, name) or 0) < 0:
            raise ApiError(422, f"{name}: must not be negative", fields=[name])
    if want.older_s is not None:
        return PurgeRule(before=engine.clock.now() - want.older_s, spare=spare)
    return PurgeRule(keep=want.keep or 0, spare=spare)


async def _call_id(gateway: GatewayState, name: str) -> str:
    """The id of the call; one that cannot be read is found in the list, so that it can be purged."""
    try:
        return (await resolve_call(gateway, name)).call.id
    except StoreError:
        fitting = await find_by_id_part(gateway.engine.journal, name, ())
        if len(fitting) != 1:
            raise
        return fitting[0]
