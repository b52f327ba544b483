"""Calls over the operator's API: found, started, shown, cancelled and run again, and their wire log."""

from collections.abc import Iterable, Mapping

from msgspec import UNSET, Raw, Struct, UnsetType, json
from msgspec.structs import replace

from afoot.config.tables import TRACE_ID
from afoot.core.call import State
from afoot.core.ports import CallQuery
from afoot.core.redaction import redacted_pointers
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import load_call
from afoot.engine.wire_log import CallMessages, WireMessage
from afoot.errors import UnknownName
from afoot.serve.access.principal import ANSWER
from afoot.serve.api.history.call_filters import ENDED_FILTERS, FILTERS, read_filters, read_flag, read_time
from afoot.serve.api.live.call_events import FollowOptions, is_position, stream_events
from afoot.serve.api.request import ApiError, ApiRequest, read_choice, read_number
from afoot.serve.api.views import (
    CallView,
    ChildCounts,
    call_view,
    call_view_with_forecast,
    full_call_view,
    row_view,
)
from afoot.serve.gateway_state import GatewayState
from afoot.store.conditions import SORTS
from afoot.store.search import ambiguous_id_message, find_by_id_part

STATES = ("live", "waiting", *(state.value for state in State))
LIST_OPTIONS = (*FILTERS, "state", "before", "sort", "skip", "count", "below", "above", "limit")
SORT_CHOICES = tuple(way + name for name in SORTS for way in ("", "-"))
# Options for calls that have ended: the order and the number of live ones change while they are read.
ENDED_OPTIONS = (*ENDED_FILTERS, "sort", "skip", "count")
MAX_SKIP = 1_000_000
MAX_PAGE = 500  # calls on a page
MAX_LEVELS = 64  # of calls above a call
MAX_TIES = 100  # more calls that a page may have if they are of its last moment: none falls between two pages


class CallPage(Struct, frozen=True):
    """Calls, newest first unless `sort` says otherwise; `next` is the `before` of the next page.

    `total` and `roots` are told if `count` asks for them: all calls that match, and those that no call made.
    `above` has the calls above those of the page that are not on it, if they are asked for.
    """

    calls: list[CallView]
    next: float | None
    total: int | UnsetType = UNSET
    roots: int | UnsetType = UNSET
    above: list[CallView] | UnsetType = UNSET


class StartRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A call to start. Limits can only be lowered here."""

    tool: str
    arguments: Raw | UnsetType = UNSET
    idle_s: float | None = None
    ceiling_s: float | None = None


class RerunRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Run the same tool again, with the same arguments or with these."""

    arguments: Raw | UnsetType = UNSET


class WireView(Struct, frozen=True):
    """The newest messages of a call, oldest first; `left_out` counts those before them.

    `recording`: whether messages are recorded now.
    """

    recording: bool
    messages: list[WireMessage]
    left_out: int


async def index(request: ApiRequest) -> None:
    """The calls that match, newest first; live ones with their newest values."""
    given = request.query(*LIST_OPTIONS)
    query = _read_list_query(request, given)
    gateway = request.gateway
    if any(name in given for name in ENDED_OPTIONS):
        await gateway.wait_until_recorded()
        now = gateway.engine.clock.now()
        calls = [row_view(row, now) for row in await gateway.engine.journal.find(query)]
        page = CallPage(calls, None)
        if read_flag(given, "count"):
            every = await gateway.engine.journal.outlines(replace(query, is_root=False))
            page = replace(page, total=len(every), roots=sum(not one.parent for one in every))
    else:
        calls = await find_calls(gateway, query)
        page = CallPage(calls, calls[-1].opened if len(calls) >= query.limit else None)
    if read_flag(given, "above"):
        page = replace(page, above=await _calls_above(request, calls))
    if read_flag(given, "below"):
        page = replace(page, calls=await _with_descendants(gateway, calls))
        if page.above is not UNSET:
            page = replace(page, above=await _with_descendants(gateway, page.above))
    await request.answer(200, page)


async def start(request: ApiRequest) -> None:
    """Start a call: its events until its end, or with `Prefer: respond-async` only where to find it."""
    want = await request.body(StartRequest)
    gateway = request.gateway
    arguments = Raw(b"{}") if want.arguments is UNSET else want.arguments
    check_start(want, bytes(arguments), gateway.settings.max_arguments_bytes)
    is_alone = "respond-async" in request.header(b"prefer").lower()
    live = gateway.engine.submit(
        Submission(
            want.tool, arguments, request.principal.caller, want.idle_s, want.ceiling_s,
            can_ask=not is_alone and ANSWER in request.principal.scopes,  # the events' reader can answer
            origin=request.origin,
        )
    )  # fmt: skip
    place = (b"location", f"/api/calls/{live.call.id}".encode())
    if is_alone:
        await gateway.wait_until_recorded()  # an acknowledged call is not lost (H1)
        applied = (b"preference-applied", b"respond-async")
        await request.answer(202, call_view(live.call, gateway.engine.clock.now()), place, applied)
    else:
        request.reply.add(place)
        await stream_events(request, live, FollowOptions())


async def show(request: ApiRequest) -> None:
    """One call with everything that is known of it."""
    request.query()
    engine = request.gateway.engine
    live = await call_in_path(request)
    is_own = live.mirror is None
    samples = await engine.journal.samples(live.call.id)
    if is_own and live.mirror is not None:  # let go of meanwhile: its end is that of its new owner
        live = await call_in_path(request)
    call = live.call
    now = engine.clock.now()
    seen = call_view_with_forecast(engine, live, now, full_call_view(call, samples, now))
    if live.below is None:  # its child calls, if there were any, are finished
        total, failed = await engine.journal.children(call.id)
        seen = replace(seen, children=ChildCounts(total, 0, failed) if total else None)
    if (due := request.gateway.cancel_due(call)) is not None:
        seen = replace(seen, cancel_due=due)
    if seen.trace and (template := request.gateway.settings.otel.trace_url):
        seen = replace(seen, trace_url=template.replace(TRACE_ID, seen.trace))
    await request.answer(200, seen)


async def rerun(request: ApiRequest) -> None:
    """Start a new call of the same tool that is linked to this one and needs a new approval."""
    want = await request.body(RerunRequest)
    gateway = request.gateway
    before = (await call_in_path(request)).call
    arguments = before.opened.arguments if want.arguments is UNSET else want.arguments
    _check_secrets_given(before.opened.arguments, arguments)
    offer = gateway.function_offers.called(before.opened.tool)
    name = offer[1].name if offer is not None else gateway.engine.catalog.find_again(before.opened)
    start = StartRequest(name, arguments or Raw(b"{}"))
    check_start(start, bytes(arguments or b"{}"), gateway.settings.max_arguments_bytes)
    live = gateway.engine.submit(
        Submission(
            start.tool,
            arguments or Raw(b"{}"),
            request.principal.caller,
            rerun_of=before.id,
            origin=request.origin,
            offer=offer,
        )
    )
    await gateway.wait_until_recorded()  # an acknowledged call is not lost (H1)
    place = (b"location", f"/api/calls/{live.call.id}".encode())
    await request.answer(202, call_view(live.call, gateway.engine.clock.now()), place)


async def show_wire(request: ApiRequest) -> None:
    """The messages on both sides of the gateway for a call, if they are recorded (`record_wire`)."""
    request.query()
    call = (await call_in_path(request)).call.id
    wire_log = request.gateway.engine.wire_log
    messages = CallMessages() if wire_log is None else wire_log[call]
    await request.answer(200, WireView(wire_log is not None, list(messages.said), messages.left_out))


async def find_calls(gateway: GatewayState, query: CallQuery) -> list[CallView]:
    """Live calls and those of the history, as one list."""
    now = gateway.engine.clock.now()
    living = {
        live.call.id: call_view_with_forecast(gateway.engine, live, now) for live in gateway.engine.calls()
    }
    found = [
        one
        for key, one in living.items()
        if _matches(one, query) and _contains_text(gateway.engine[key], query.text)
    ]
    if query.state in ("", "finished"):
        # The history may also list live calls, with older values, so as many more rows are read.
        most = query.limit + len(living) + MAX_TIES
        rows = await gateway.engine.journal.find(replace(query, limit=most))
        found += [row_view(row, now) for row in rows if row.id not in living]
    found.sort(key=lambda one: (one.opened, one.id), reverse=True)
    page = found[: query.limit]
    return page + [one for one in found[query.limit :] if one.opened == page[-1].opened]


async def call_in_path(request: ApiRequest) -> LiveCall:
    """The call that the path names, if the asker may see it."""
    return await visible_call(request, request.names["id"])


async def visible_call(request: ApiRequest, name: str) -> LiveCall:
    """The call of this name, if the asker may see it; the call of another caller is unknown to it (S3)."""
    if not request.only_caller:
        return await resolve_call(request.gateway, name)
    return await request.gateway.own_call(name, request.only_caller)


async def resolve_call(gateway: GatewayState, name: str) -> LiveCall:
    """The call with this id, or the only one whose id begins or ends so; raises UnknownName, ApiError."""
    try:
        return await load_call(gateway.engine, name)
    except UnknownName:
        pass
    journal = gateway.engine.journal
    living = [live.call.id for live in gateway.engine.calls()]
    fitting = await find_by_id_part(journal, name, living)
    if len(fitting) == 1:
        return await load_call(gateway.engine, fitting[0])
    if fitting:
        raise ApiError(409, ambiguous_id_message(name, fitting), nearest=fitting[:5])
    recent = [row.id for row in await journal.find(CallQuery(limit=200))]
    raise UnknownName("call", name, _comparable(name, [*recent, *living]))


def check_start(want: StartRequest, arguments: bytes, limit: int) -> None:
    """Check the arguments' size and type, and the limits; raises ApiError."""
    if len(arguments) > limit:
        raise ApiError(
            413, f"arguments: over {limit} bytes (raise max_arguments_bytes)", fields=["arguments"]
        )
    if marks := redacted_pointers(Raw(arguments)):
        raise ApiError(422, f"arguments: {', '.join(marks)}: a mark for a secret is no value", fields=marks)
    if arguments.lstrip()[:1] != b"{":
        raise ApiError(422, "arguments: must be an object", fields=["arguments"])
    for name in ("idle_s", "ceiling_s"):
        value = getattr(want, name)
        if value is not None and not 0 < value < 1e9:
            raise ApiError(422, f"{name}: must be a number of seconds over 0", fields=[name])


def _read_list_query(request: ApiRequest, given: Mapping[str, str]) -> CallQuery:
    """The calls that a list wants, in its order; raises ApiError."""
    query = read_filters(request, given)
    state = read_choice(given.get("state", ""), "state", STATES)
    for name in ENDED_OPTIONS:
        if name in given and state != "finished":
            raise ApiError(422, f"{name}: only for calls that have ended, with state=finished", fields=[name])
    bounds = [one for one in (query.before, read_time(given, "before")) if one is not None]
    return replace(
        query,
        state=state,
        before=min(bounds, default=None),
        limit=int(read_number(given.get("limit", "100"), "limit", 1, MAX_PAGE)),
        sort=read_choice(given.get("sort", "-opened"), "sort", SORT_CHOICES),
        skip=int(read_number(given.get("skip", "0"), "skip", 0, MAX_SKIP)),
    )


async def _with_descendants(gateway: GatewayState, calls: list[CallView]) -> list[CallView]:
    """Add the counts of all ended calls below it to each of these calls."""
    counts = await gateway.engine.journal.descendants([one.id for one in calls])
    return [
        replace(one, below=ChildCounts(counts[one.id][0], 0, counts[one.id][1])) if one.id in counts else one
        for one in calls
    ]


async def _calls_above(request: ApiRequest, calls: list[CallView]) -> list[CallView]:
    """The calls above these, at any depth, that are not among them and that the asker may see."""
    engine = request.gateway.engine
    now = engine.clock.now()
    known = {one.id for one in calls}
    found: list[CallView] = []
    level = calls
    for _ in range(MAX_LEVELS):
        wanted = {one.parent for one in level if isinstance(one.parent, str)} - known
        if not wanted:
            break
        known |= wanted
        level = [call_view_with_forecast(engine, engine[name], now) for name in wanted if name in engine]
        ended = wanted - {one.id for one in level}
        rows = await engine.journal.find(CallQuery(ids=ended, limit=len(ended))) if ended else []
        level += [row_view(row, now) for row in rows]
        found += [one for one in level if request.may_see(one.caller)]
    return found


def _matches(one: CallView, query: CallQuery) -> bool:
    # `live` and `waiting` are filters of the API, not states of a call.
    also = {"live": one.state != "finished", "waiting": one.waiting is not None}
    state_fits = query.state in ("", one.state) or also.get(query.state, False)
    return (
        state_fits
        and query.tool in ("", one.tool)
        and query.server in ("", one.server)
        and (not query.outcome or one.outcome in query.outcome.split(","))
        and query.parent in ("", one.parent)
        and query.caller in ("", one.caller)
        and not (query.is_root and one.parent)
        and (query.before is None or one.opened < query.before)
        and (query.since is None or one.opened >= query.since)
    )


def _contains_text(live: LiveCall, text: str) -> bool:
    if not text:
        return True
    call = live.call
    message = (call.latest.message if call.latest else None) or ""
    arguments = json.encode(json.decode(call.opened.arguments or b"{}")).decode()
    wanted = text.lower()
    return any(wanted in one.lower() for one in (call.id, call.opened.tool, message, arguments))


def _comparable(name: str, ids: Iterable[str]) -> list[str]:
    """The ids cut to the length of the name: a short name would be near to no full id."""
    return sorted({one[-max(len(name), 8) :] for one in ids})


def _check_secrets_given(before: Raw, arguments: Raw) -> None:
    """Check that each secret is given again, because secrets are not kept.

    Raises ApiError naming each field.
    """
    missing = [one for one in redacted_pointers(before) if _is_missing(arguments, one)]
    if missing := sorted({*missing, *redacted_pointers(arguments)}):
        errors = [
            {"field": one, "message": "was a secret, which is not kept: give it again"} for one in missing
        ]
        text = f"arguments: {', '.join(missing)} must be given again: secrets are not kept"
        raise ApiError(422, text, code="redacted", fields=errors)


def _is_missing(arguments: Raw, pointer: str) -> bool:
    """Whether the field is missing although its parent object is there."""
    at = json.decode(arguments or b"{}")
    *above, last = [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")[1:]]
    for step in above:
        if isinstance(at, list) and is_position(step) and int(step) < len(at):
            at = at[int(step)]
        elif isinstance(at, dict) and step in at:
            at = at[step]
        else:
            return False
    return isinstance(at, dict) and last not in at
