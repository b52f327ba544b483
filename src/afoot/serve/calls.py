"""Calls over the operator's API: found, started, shown, cancelled."""

from collections.abc import Iterable

from msgspec import UNSET, Raw, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.core.call import State
from afoot.core.ports import Query
from afoot.core.redact import redacted
from afoot.engine.engine import Submission
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import UnknownName
from afoot.serve.follow import Follow, follow
from afoot.serve.forecast import foreseen
from afoot.serve.principal import ANSWER
from afoot.serve.request import Request, Wrong, choice, number
from afoot.serve.site import Site
from afoot.serve.view import CallView, Children, full, line, view
from afoot.store.alike import alike, choose

STATES = ("live", "waiting", *(state.value for state in State))
OUTCOMES = ("ok", "failed", "refused", "cancelled", "timed_out", "lost", "uncertain")
FILTERS = ("q", "tool", "server", "state", "outcome", "parent", "before", "limit")
MOST = 500  # calls on a page
TIES = 100  # calls of one moment that a page may have more, so that none falls between two pages


class Page(Struct, frozen=True):
    """Calls, newest first; `next` is the `before` of the next page."""

    calls: list[CallView]
    next: float | None


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """A call that is wanted. Limits can only be lowered here."""

    tool: str
    arguments: Raw | UnsetType = UNSET
    idle_s: float | None = None
    ceiling_s: float | None = None


class Cancel(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a call should stop."""

    reason: str = "the operator cancelled it"


async def index(request: Request) -> None:
    """The calls that fit, newest first; those that live with their newest values."""
    given = request.query(*FILTERS)
    limit = int(number(given.get("limit", "100"), "limit", 1, MOST))
    query = Query(
        given.get("q", ""),
        given.get("tool", ""),
        given.get("server", ""),
        choice(given.get("state", ""), "state", STATES),
        choice(given.get("outcome", ""), "outcome", OUTCOMES),
        before=number(given["before"], "before", 0, 1e12) if "before" in given else None,
        limit=limit,
        parent=given.get("parent", ""),
        caller=request.only,
    )
    calls = await find(request.site, query)
    await request.answer(200, Page(calls, calls[-1].opened if len(calls) >= limit else None))


async def find(site: Site, query: Query) -> list[CallView]:
    """Calls of the history and those that live, as one list."""
    now = site.engine.clock.now()
    living = {live.call.id: foreseen(site.engine, live, now) for live in site.engine.calls()}
    found = [one for key, one in living.items() if _fits(one, query) and _holds(site.engine[key], query.text)]
    if query.state in ("", "finished"):
        # The history has older values of calls that live, so it is asked for as many more.
        most = query.limit + len(living) + TIES
        rows = await site.engine.journal.find(replace(query, limit=most))
        found += [line(row, now) for row in rows if row.id not in living]
    found.sort(key=lambda one: (one.opened, one.id), reverse=True)
    page = found[: query.limit]
    return page + [one for one in found[query.limit :] if one.opened == page[-1].opened]


async def start(request: Request) -> None:
    """Start a call: its events until its end, or with `Prefer: respond-async` only where to find it."""
    want = await request.body(Start)
    site = request.site
    arguments = Raw(b"{}") if want.arguments is UNSET else want.arguments
    check(want, bytes(arguments), site.settings.max_arguments_bytes)
    is_alone = "respond-async" in request.header(b"prefer").lower()
    live = site.engine.submit(
        Submission(
            want.tool, arguments, request.who.caller, want.idle_s, want.ceiling_s,
            can_ask=not is_alone and ANSWER in request.who.scopes,  # whoever reads along can answer too
        )
    )  # fmt: skip
    place = (b"location", f"/api/calls/{live.call.id}".encode())
    if is_alone:
        await site.recorded()  # what is acknowledged is not lost (H1)
        applied = (b"preference-applied", b"respond-async")
        await request.answer(202, view(live.call, site.engine.clock.now()), place, applied)
    else:
        request.reply.add(place)
        await follow(request, live, Follow())


async def show(request: Request) -> None:
    """One call with everything that is known of it."""
    request.query()
    engine = request.site.engine
    live = await asked(request)
    call = live.call
    samples = await engine.journal.samples(call.id)
    now = engine.clock.now()
    seen = foreseen(engine, live, now, full(call, samples, now))
    if live.below is None:  # those that it has made, if any, are over
        total, failed = await engine.journal.children(call.id)
        seen = replace(seen, children=Children(total, 0, failed) if total else None)
    await request.answer(200, seen)


async def cancel(request: Request) -> None:
    """Ask a call to stop."""
    want = await request.body(Cancel)
    site = request.site
    live = await asked(request)
    call = live.call
    if call.opened.caller != request.who.caller:
        request.who.demand(ANSWER)
    if call.end is not None:
        raise Wrong(409, f"call {call.id} is over: {call.end.outcome}", "refused", outcome=call.end.outcome)
    site.engine.cancel(live, request.who.role, want.reason or Cancel().reason, request.identity)
    seen = view(call, site.engine.clock.now())
    await site.recorded()
    await request.answer(202, seen)


async def asked(request: Request) -> Live:
    """The call that a path names, if the asker may see it."""
    return await visible(request, request.names["id"])


async def visible(request: Request, name: str) -> Live:
    """The call of this name, if the asker may see it: what is another's is unknown (S3)."""
    if not request.only:
        return await resolve(request.site, name)
    live = await recall(request.site.engine, name)
    if not request.owns(live.call.opened.caller):
        raise UnknownName("call", name)
    return live


async def resolve(site: Site, name: str) -> Live:
    """The call of this id, or the only one whose id begins or ends so; raises UnknownName, Wrong."""
    try:
        return await recall(site.engine, name)
    except UnknownName:
        pass
    journal = site.engine.journal
    living = [live.call.id for live in site.engine.calls()]
    fitting = await alike(journal, name, living)
    if len(fitting) == 1:
        return await recall(site.engine, fitting[0])
    if fitting:
        raise Wrong(409, choose(name, fitting), nearest=fitting[:5])
    recent = [row.id for row in await journal.find(Query(limit=200))]
    raise UnknownName("call", name, _comparable(name, [*recent, *living]))


def _comparable(name: str, ids: Iterable[str]) -> list[str]:
    """Ids cut to the length of the name: a short name would be near to none."""
    return sorted({one[-max(len(name), 8) :] for one in ids})


def _fits(one: CallView, query: Query) -> bool:
    # A call that waits is live, whatever its state: waiting is none of them.
    also = {"live": one.state != "finished", "waiting": one.waiting is not None}
    state_fits = query.state in ("", one.state) or also.get(query.state, False)
    return (
        state_fits
        and query.tool in ("", one.tool)
        and query.server in ("", one.server)
        and query.outcome in ("", one.outcome)
        and query.parent in ("", one.parent)
        and query.caller in ("", one.caller)
        and (query.before is None or one.opened < query.before)
    )


def _holds(live: Live, text: str) -> bool:
    if not text:
        return True
    call = live.call
    message = (call.latest.message if call.latest else None) or ""
    arguments = json.encode(json.decode(call.opened.arguments or b"{}")).decode()
    wanted = text.lower()
    return any(wanted in one.lower() for one in (call.id, call.opened.tool, message, arguments))


def check(want: Start, arguments: bytes, limit: int) -> None:
    """What is wanted must be an object of a size that is allowed; raises Wrong."""
    if len(arguments) > limit:
        raise Wrong(413, f"arguments: over {limit} bytes (raise max_arguments_bytes)", fields=["arguments"])
    if marks := redacted(Raw(arguments)):
        raise Wrong(422, f"arguments: {', '.join(marks)}: a mark for a secret is no value", fields=marks)
    if arguments.lstrip()[:1] != b"{":
        raise Wrong(422, "arguments: must be an object", fields=["arguments"])
    for name in ("idle_s", "ceiling_s"):
        value = getattr(want, name)
        if value is not None and not 0 < value < 1e9:
            raise Wrong(422, f"{name}: must be a number of seconds over 0", fields=[name])
