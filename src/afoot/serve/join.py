"""The same request again: it follows the call that the first one opened, and starts no second (X3, D2)."""

from collections.abc import Mapping
from contextlib import suppress
from math import inf, nextafter
from typing import TYPE_CHECKING

from afoot.core.facts import Fact, Opened
from afoot.core.ports import Query, Tool
from afoot.core.redact import redacted
from afoot.engine.engine import Engine
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.engine.submission import kept
from afoot.errors import StoreError, UnknownName
from afoot.serve import tasks
from afoot.serve.callers import MOST
from afoot.serve.desk import is_errand
from afoot.serve.site import Site
from afoot.wire.bookmark import digest
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.messages import Wanted

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation

PAGE, PAGES = 1000, 10  # of a caller's calls of a tool, looked through once for keys of before a restart


async def opened(talk: "Conversation", headers: Mapping[str, str] | None = None) -> None:
    """Open the call that is wanted, or follow the one that has its key; raises Fault."""
    site, want, caller = talk.site, talk.want, talk.caller
    if is_errand(site, want.name):
        talk.open()
        return
    await _look(site, caller, want.name)
    live = await _known(site, caller, want.key)
    if live is None:  # nothing is awaited from here on, so that two at once are not two calls
        talk.open(headers)
        site.keys.note(caller, want.key, talk.live.call.id)
        return
    found = site.engine.catalog.known.get(want.name)
    if found is None or not _is_same(site.engine, live, want, found[1]):
        raise Fault(
            INVALID_PARAMS,
            "params._meta.dev.afoot/idempotency: this key was used for another tool or other arguments",
            status=200,
        )
    talk.as_task = tasks.chosen(site, want, live.tool, modern=talk.manner.modern)
    talk.live, talk.round, talk.joins = live, live.round, True
    live.attached = max(0, live.attached) + 1
    live.can_ask = live.can_ask or want.capabilities.can("form")


def alike(site: Site, want: Wanted, tool: Tool, caller: str) -> Live | None:
    """A call that runs for nobody any more, of the same caller, tool and arguments."""
    for live in site.engine.calls():
        call = live.call
        is_lost = live.attached <= 0 and not live.can_ask and call.opened.parent is None
        if is_lost and call.end is None and call.cancel is None and call.opened.caller == caller:
            if _is_same(site.engine, live, want, tool):
                return live
    return None


def _is_same(engine: Engine, live: Live, want: Wanted, tool: Tool) -> bool:
    """Whether this is what was asked for then; of secrets that were not kept, all look the same."""
    call = live.call
    if call.opened.tool != tool.name:
        return False
    if call.amended is None and not redacted(live.arguments):
        return digest("", bytes(live.arguments)) == digest("", bytes(want.arguments))
    return digest("", bytes(call.opened.arguments)) == digest("", bytes(kept(engine, tool, want.arguments)))


async def _known(site: Site, caller: str, key: str) -> Live | None:
    """The call that this key means now: another request may make it mean another while this one looks."""
    while (call := site.keys.calls.get((caller, key))) is not None:
        live = await _living(site, call)
        if live is not None or site.keys.calls.get((caller, key)) == call:
            return live
    return None


async def _living(site: Site, call: str) -> Live | None:
    """The call, unless it ended so long ago that its key means nothing any more."""
    try:
        live = await recall(site.engine, call)
    except UnknownName:
        return None
    end = live.call.end
    is_past = end is not None and site.engine.clock.now() > end.at + site.settings.task_ttl_s
    return None if is_past else live


async def _look(site: Site, caller: str, tool: str) -> None:
    """Find keys of before, once for a caller and a tool: a gateway before this one may know them."""
    if (caller, tool) in site.keys.looked:
        return
    for live in site.engine.calls():  # run again after a crash: the list of the history has only what ended
        if live.call.opened.caller == caller:
            _note(site, live.call.opened, live.call.id)
    since, before = site.engine.clock.now() - site.settings.task_ttl_s, None
    with suppress(StoreError):  # then it is looked again
        for _ in range(PAGES):
            past = Query(caller=caller, tool=tool, before=before, limit=PAGE)
            rows = await site.engine.journal.find(past)  # the newest first, which a key means
            for row in rows:
                if (row.finished or since) >= since and (entries := await site.engine.journal.facts(row.id)):
                    _note(site, entries[0].fact, row.id)
            if len(rows) < PAGE:
                break
            before = nextafter(rows[-1].opened, inf)
        if len(site.keys.looked) >= MOST:
            site.keys.looked.clear()
        site.keys.looked.add((caller, tool))  # only now: who comes meanwhile looks for itself


def _note(site: Site, fact: Fact, call: str) -> None:
    if isinstance(fact, Opened) and fact.key and (fact.caller, fact.key) not in site.keys.calls:
        site.keys.note(fact.caller, fact.key, call)
