"""Where a caller asks for a call that was handed over: to wait for it, to see its own, to stop one (H5).

None of it is a call of its own: who waits follows the call itself, as a retry does.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Raw, Struct, json

from afoot.core.call import Call
from afoot.core.facts import NOTHING
from afoot.core.ports import Query, Row
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import ToolError, UnknownName
from afoot.serve import patience
from afoot.serve.guard import LOCAL, PIPE
from afoot.serve.site import Site
from afoot.wire import handle
from afoot.wire.jsonrpc import place
from afoot.wire.messages import ResultMeta, Seconds
from afoot.wire.telling import ErrorMeta

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation

RECENT_S = 3600.0  # how long a call that has ended is listed
MOST = 20  # of those

T = TypeVar("T")


class _Wait(Struct, forbid_unknown_fields=True):
    call: str
    seconds: Seconds | None = None


class _Calls(Struct, forbid_unknown_fields=True):
    pass


class _Cancel(Struct, forbid_unknown_fields=True):
    call: str
    reason: str = ""


def is_errand(site: Site, name: str) -> bool:
    """Whether this is one of our three tools, and nobody offers one of that name."""
    return name in _ERRANDS and name not in site.engine.catalog.known


async def attend(talk: "Conversation") -> bool:
    """Do what the caller asks; True if its request is to follow the call now, else it has been answered."""
    errand = _ERRANDS.get(talk.want.name)
    if errand is None:
        return True  # it is known already which call
    try:
        text = await errand(talk)
    except ToolError as error:
        meta = ErrorMeta(error.category, error.code or error.category)
        await _answer(talk, error.message, error=meta)
        return False
    if talk.stopped:  # meanwhile, and nothing follows a cancel
        await talk.outlet.finish((), None)
    elif text is not None:
        await _answer(talk, *text)
    return text is None and not talk.stopped


async def _answer(
    talk: "Conversation", text: str, structured: Raw = NOTHING, error: ErrorMeta | None = None
) -> None:
    info = talk.site.info if talk.manner.modern else NOTHING
    meta = ResultMeta(token=talk.want.token, error=error, server=info)
    await talk.outlet.finish((), handle.said(talk.want, text, meta, structured))


async def _wait(talk: "Conversation") -> tuple[str, Raw] | None:
    """Follow the call from here on, for so long at most."""
    asked = _read(talk, _Wait)
    talk.live = await _find(talk, asked.call)
    talk.live.can_ask = talk.live.can_ask or talk.want.capabilities.can("form")
    if asked.seconds is not None:
        talk.due, talk.is_brief = talk.begun + asked.seconds, True
        if not asked.seconds:
            talk.bell.set()
    return None


async def _calls(talk: "Conversation") -> tuple[str, Raw]:
    """The caller's calls that live, and those that were long enough to be handed over and ended lately."""
    _read(talk, _Calls)
    if talk.caller == LOCAL:  # whoever asks may be somebody else (S3)
        return (
            "Calls are not listed here, as callers cannot be told apart. Use the id that you were given.",
            NOTHING,
        )
    site = talk.site
    now = site.engine.clock.now()
    lines = [
        (live.call.id, f"{_name(live.call)}{handle.standing(live.call, now, live.heard)}")
        for live in site.engine.calls()
        if live.call.opened.caller == talk.caller and not live.call.is_finished
    ]
    rows = await site.engine.journal.find(Query(state="finished", caller=talk.caller, limit=200))
    least_s = patience.SHARE * patience.limit(site.settings, talk.want.budget, talk.want.client)
    long = [row for row in rows if _is_told(row, now, 0.0 if least_s == float("inf") else least_s)]
    if talk.caller == PIPE:  # another process was another caller, and left its calls under the same name
        long = [row for row in long if row.opened >= site.began]
    lines += [(row.id, f"{row.id}: {row.tool}, ended: {row.outcome}") for row in long[:MOST]]
    text = (
        "\n".join(line for _, line in lines) or "None of your calls still runs, and no long one ended lately."
    )
    return text, Raw(json.encode({"calls": [call for call, _ in lines]}))


async def _cancel(talk: "Conversation") -> tuple[str, Raw]:
    """Ask the call to stop."""
    asked = _read(talk, _Cancel)
    live = await _find(talk, asked.call)
    call = live.call
    if call.end is not None:
        return f"Call {call.id} is over already: {call.end.outcome}.", NOTHING
    talk.site.engine.cancel(live, "caller", asked.reason or "the caller cancelled it")
    await talk.site.recorded()
    return (
        f"Call {call.id} of tool {call.opened.tool} was told to stop; {handle.WAIT} tells how it ended.",
        NOTHING,
    )


_ERRANDS: dict[str, Callable[["Conversation"], Awaitable[tuple[str, Raw] | None]]] = {
    handle.WAIT: _wait,
    handle.CALLS: _calls,
    handle.CANCEL: _cancel,
}


def _read(talk: "Conversation", kind: type[T]) -> T:
    try:
        return json.decode(talk.want.arguments, type=kind)
    except msgspec.ValidationError as error:
        raise ToolError.validation(place(error, "arguments")) from None
    except RecursionError:
        raise ToolError.validation("arguments: nested too deep") from None


async def _find(talk: "Conversation", call_id: str) -> Live:
    """A call of this caller's own; that there are others is not said."""
    try:
        live = await recall(talk.site.engine, call_id)
    except UnknownName:
        live = None
    if live is None or live.call.opened.caller != talk.caller:
        raise ToolError.not_found(f"no call {call_id!r} of yours is known; the id is the one in {handle.KEY}")
    return live


def _name(call: Call) -> str:
    return f"{call.id}: {call.opened.tool}"


def _is_told(row: Row, now: float, least_s: float) -> bool:
    ended = row.finished
    return ended is not None and now - ended <= RECENT_S and ended - row.opened >= least_s
