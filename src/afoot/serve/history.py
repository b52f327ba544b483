"""The history as a whole over the operator's API: what is to go, and all of it as lines (H6)."""

import asyncio
import logging

from msgspec import Struct

from afoot.core.ports import Purge
from afoot.engine.retention import Living
from afoot.engine.retention import purge as purged
from afoot.errors import StoreError
from afoot.serve.calls import resolve
from afoot.serve.request import Request, Wrong
from afoot.serve.site import Site
from afoot.store.alike import alike
from afoot.store.export import lines

NDJSON = "application/x-ndjson"
WAYS = ("older_s", "keep", "call", "everything")
log = logging.getLogger("afoot.serve")


class Want(Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls are to go: by exactly one of these."""

    older_s: float | None = None  # opened and ended longer ago
    keep: int | None = None  # all but so many, the newest
    call: str = ""
    everything: bool = False


class Purged(Struct, frozen=True):
    """How many calls have gone."""

    purged: int


async def purge(request: Request) -> None:
    """Have calls go for good; those that live stay."""
    want = await request.body(Want)
    rule = await _rule(request, want)
    await request.answer(200, Purged(await purged(request.site.engine.journal, rule)))


async def export(request: Request) -> None:
    """Every call, or one, as lines of JSON: its facts, then its readings."""
    given = request.query("call")
    site, reply = request.site, request.reply
    call = (await resolve(site, given["call"])).call.id if "call" in given else ""
    await site.recorded()
    head = [(b"content-type", NDJSON.encode()), (b"cache-control", b"no-store"), *reply.headers]
    await reply.transmit({"type": "http.response.start", "status": 200, "headers": head})
    reply.streaming = True
    try:
        async for piece in lines(site.engine.journal, call):
            if reply.denied or site.engine.closing is not None or not request.is_let_in:
                # What is cut off is seen to be: no last piece comes, and no other word.
                reply.denied = ""
                return
            async with asyncio.timeout(site.settings.stuck_s):
                await reply.transmit({"type": "http.response.body", "body": piece, "more_body": True})
    except TimeoutError:  # nobody reads on
        reply.gone = True
        return
    except StoreError as error:
        log.error("an export was cut off: %s", error)
        reply.gone = True  # nor does it here
        return
    await reply.transmit({"type": "http.response.body", "body": b"", "more_body": False})


async def _rule(request: Request, want: Want) -> Purge:
    engine = request.site.engine
    spare = Living(engine)
    given = [want.older_s is not None, want.keep is not None, want.call != "", want.everything]
    if sum(given) != 1:
        raise Wrong(422, f"must be exactly one of {', '.join(WAYS)}", fields=list(WAYS))
    if want.call:
        call = await _named(request.site, want.call)
        if call in engine:
            raise Wrong(409, f"call {call} lives; only what is over can go", "refused")
        return Purge(calls=[call], spare=spare)
    for name in ("older_s", "keep"):
        if (getattr(want, name) or 0) < 0:
            raise Wrong(422, f"{name}: must not be negative", fields=[name])
    if want.older_s is not None:
        return Purge(before=engine.clock.now() - want.older_s, spare=spare)
    return Purge(keep=want.keep or 0, spare=spare)


async def _named(site: Site, name: str) -> str:
    """The id of the call that is meant; one that cannot be read is found by the list, so that it can go."""
    try:
        return (await resolve(site, name)).call.id
    except StoreError:
        fitting = await alike(site.engine.journal, name, ())
        if len(fitting) != 1:
            raise
        return fitting[0]
