"""The same request again: it follows the call that the first one opened, and starts no second (X3, D2)."""

import asyncio
from collections.abc import Mapping
from math import inf, nextafter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from afoot.core.facts import Opened
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
from afoot.serve.forecast import is_detached
from afoot.serve.site import Site
from afoot.wire.bookmark import digest
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.messages import ErrorMeta, Wanted

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation

PAGE, PAGES = 1000, 10  # of a caller's calls of a tool, looked through once for keys of before a restart
FURTHER = 100  # pages looked through for a key that is known to have been used
RETRY_S = 5.0  # after which a caller may come again when the history cannot be read


async def opened(talk: "Conversation", headers: Mapping[str, str] | None = None) -> None:
    """Open the call that is wanted, or follow the one that has its key; raises Fault."""
    site, want, caller = talk.site, talk.want, talk.caller
    if is_errand(site, want.name):
        talk.open()
        return
    live = await _meant(site, want, caller)
    if live is None:  # nothing is awaited from here on, so that two at once are not two calls
        talk.open(headers)
        site.keys.note(caller, want.key, talk.live.call.id, site.engine)
        return
    site.keys.note(caller, want.key, live.call.id, site.engine)
    tool = site.tool(want.name) or (live.tool if _was(live.call.opened, want.name) else None)
    if tool is None or not _is_same(site.engine, live, want, tool):
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
    """A call that runs for nobody any more, of the same caller, tool and arguments.

    Only one that detaches: who joins and leaves would end any other, for whoever has it as a task or handle.
    """
    now = site.engine.clock.now()
    for live in site.engine.calls():
        call = live.call
        is_parked = bool(call.open) and live.can_ask  # its caller asks its user
        is_free = live.tool.on_disconnect == "detach" and not is_parked and call.opened.parent is None
        is_lost = is_free and is_detached(live, now)
        if is_lost and call.end is None and call.cancel is None and call.opened.caller == caller:
            if _is_same(site.engine, live, want, tool):
                return live
    return None


def _was(opened: Opened, name: str) -> bool:
    """Whether a tool that may be gone since had this name: its own, or one with its server."""
    own = name.removeprefix(f"{opened.server}/")
    return opened.tool in (name, own) or opened.tool.endswith(f"__{own}")


def _is_same(engine: Engine, live: Live, want: Wanted, tool: Tool) -> bool:
    """Whether this is what was asked for then; of secrets that were not kept, all look the same."""
    call = live.call
    if call.opened.tool != tool.name:
        return False
    if call.amended is None and not redacted(live.arguments):
        return digest("", bytes(live.arguments)) == digest("", bytes(want.arguments))
    return digest("", bytes(call.opened.arguments)) == digest("", bytes(kept(engine, tool, want.arguments)))


async def _meant(site: Site, want: Wanted, caller: str) -> Live | None:
    """The call that its key means; raises Fault where nobody can tell, and a second might do harm (U4)."""
    name, is_sure = "", True
    while name != (name := _listed(site, want.name)):  # its tool may have come while it was looked for
        is_sure = await _look(site, caller, name, want.key)
        try:
            if (live := await _known(site, caller, want.key)) is not None:
                return live
        except StoreError:
            is_sure = False
    tool = site.tool(want.name)
    is_safe = tool is None or (tool.trusted and (tool.idempotent or tool.read_only))
    if not is_sure and not is_safe:
        text = "the history cannot be read, so nobody knows whether this key has a call; nothing was opened"
        told = ErrorMeta("unavailable", "history_unreadable", True, RETRY_S)
        raise Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": told}, status=503)
    return None


def _listed(site: Site, name: str) -> str:
    """The name of a tool in the history, where it is known by now."""
    tool = site.tool(name)
    return name if tool is None else tool.name


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


async def _look(site: Site, caller: str, tool: str, key: str) -> bool:
    """Have in mind what a key means: a gateway before this one may know it. False if that cannot be read.

    The history is looked through once for a caller and a tool, and once for all who come meanwhile; then
    only for a key that was in mind before, until that is found.
    """
    keys = site.keys
    while not keys.is_sure(caller, tool, key):
        going = keys.looking.get((caller, tool))
        if going is not None:
            await asyncio.wait([going])
            if not going.cancelled() and not going.result():
                return False
            continue
        is_one = (caller, tool) in keys.looked
        is_read = await _looked(site, caller, tool, key if is_one else "")
        if is_one or not is_read:
            return is_read
    return True


async def _looked(site: Site, caller: str, tool: str, key: str) -> bool:
    """Look, and let others know how it went; if it is broken off, one of them looks."""
    going = site.keys.looking[caller, tool] = asyncio.get_running_loop().create_future()
    try:
        going.set_result(await _found(site, caller, tool, key))
        return going.result()
    finally:
        del site.keys.looking[caller, tool]
        going.cancel()


async def _found(site: Site, caller: str, tool: str, one: str) -> bool:
    """Take the keys of the history into mind, or one alone; False if it cannot be read."""
    keys = site.keys
    found = {key: call for (who, key), call in keys.calls.items() if who == caller}
    for live in site.engine.calls():  # run again after a crash: the list of the history has only what ended
        if live.call.opened.key and live.call.opened.caller == caller:
            found.setdefault(live.call.opened.key, live.call.id)
    try:
        await _search(site, Query(caller=caller, tool=tool, limit=PAGE), found, one)
        if len(keys.looked) >= MOST:
            keys.looked.clear()
        keys.looked.add((caller, tool))
    except StoreError:
        return False
    finally:  # also what was forgotten meanwhile; all of it is older than what is in mind
        past = {(caller, key): found[key] for key in reversed(found) if key == one or not one}
        keys.calls = {known: past[known] for known in past if known not in keys.calls} | keys.calls
    return True


async def _search(site: Site, past: Query, found: dict[str, str], one: str) -> None:
    """Add the keys of calls that are over, the newest first, which a key means; raises StoreError.

    Where only one is looked for, until that is found.
    """
    journal, since = site.engine.journal, site.engine.clock.now() - site.settings.task_ttl_s
    in_mind = set(found.values())
    for _ in range(FURTHER if one else PAGES):
        rows = await journal.find(past)
        for row in rows:
            if row.id in in_mind or (row.finished or since) < since:
                continue
            fact = entries[0].fact if (entries := await journal.facts(row.id)) else None
            if isinstance(fact, Opened) and fact.key:
                found.setdefault(fact.key, row.id)
                if fact.key == one:
                    return
        if len(rows) < PAGE:
            return
        past = replace(past, before=nextafter(rows[-1].opened, inf))
