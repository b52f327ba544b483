"""Tasks of 2025-11-25: asked for by the caller, listed, and waited for by a request of their own (H3)."""

from contextlib import suppress
from functools import partial
from math import inf, isfinite, nextafter
from typing import Protocol

from msgspec import Raw

from afoot.core.ports import Query, Row
from afoot.engine.bell import Bell
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import UnknownName
from afoot.serve.conversation import Conversation
from afoot.serve.guard import PIPE
from afoot.serve.manner import Manner, Outlet
from afoot.serve.nested import Nested, TaskAsker
from afoot.serve.site import Site
from afoot.serve.tasks import find, forsake, is_kept, standing
from afoot.serve.tasks_news import Carried, Watching
from afoot.wire import messages, tasks
from afoot.wire.jsonrpc import Envelope, Id
from afoot.wire.messages import Capabilities, Wanted
from afoot.wire.tasks import Standing

MOST = 100  # tasks in a page of a list
LOOKED = 200  # calls of a caller that are looked through for one
CROWD = 1000  # the same where so many are of one moment that the list would not go on


class Client(Manner, Protocol):
    """Who asks: a session of this era."""

    caller: str
    capabilities: Capabilities
    level: str | None


class Telling:
    """What one session is told of its tasks on the stream that it holds open, and asked by them."""

    def __init__(self, site: Site, client: Client, nested: Nested, bell: Bell) -> None:
        self._site = site
        self._client = client
        self._nested = nested
        self._askers: dict[str, TaskAsker] = {}  # by task
        self._tokens: dict[str, tuple[Id, int]] = {}  # by task: its request's, and how much was told by it
        self.watching = Watching(site, bell, self._told)

    async def begin(self, talk: Conversation) -> None:
        """Answer a call with the task that it is, once that is on record; raises Fault for what is none."""
        want = talk.want
        if talk.waits:  # our own tools wait for a call, and are none
            raise tasks.refused(want.name, "forbidden")
        talk.live.attached -= 1  # its request is over, and it runs on
        await self._site.recorded()
        await talk.outlet.finish((), tasks.created_older(want.id, standing(self._site, talk.live)))
        self.watching.tidy()
        if isinstance(want.token, int | str):
            self._tokens[talk.live.call.id] = want.token, 0
        self.watching.follow(talk.live)

    def tokens(self) -> set[Id]:
        """Those by which tasks that live are told of; the others may be used again."""
        self._tokens = {task: told for task, told in self._tokens.items() if task in self._site.engine}
        return {token for token, _ in self._tokens.values()}

    def _told(self, live: Live) -> list[bytes]:
        """A task that changed; and what it asks, if nobody follows it (Q1)."""
        call, outlet = live.call, self.watching.outlet
        status = tasks.told_older(standing(self._site, live), self._client.capabilities)
        frames = [*self._advanced(live), status]
        if call.open and outlet is not None and not live.attached:
            asker = self._askers.get(call.id)
            if asker is None or asker.outlet is not outlet:
                asker = TaskAsker(live, outlet, partial(self.watching.again, live))
                living = [one for one in self._askers.values() if not one.live.call.is_finished]
                self._askers = {one.live.call.id: one for one in (*living, asker)}
            asked = self._nested.put(asker, list(call.open.values()), self._client.capabilities)
            frames += [tasks.related(frame, call.id) for frame in (*asker.extra, *asked)]
            asker.extra.clear()
        return frames

    def _advanced(self, live: Live) -> list[bytes]:
        """Its progress, by the token of the request that made it: that holds as long as the task lives."""
        call = live.call
        token, before = self._tokens.get(call.id, (None, 0))
        count = call.readings + call.contents
        if token is None or call.latest is None or count == before:
            return []
        self._tokens[call.id] = token, count
        return [tasks.related(messages.progress(token, live.series, call.latest), call.id)]


def offered(site: Site) -> list[Raw]:
    """Every tool, and whether it may be a task."""
    return [tasks.declared(bytes(tool.definition), tool.task) for tool in site.engine.catalog]


async def listed(site: Site, caller: str, cursor: str | None) -> tuple[list[Standing], str | None]:
    """A page of a caller's tasks, newest first, and the next cursor: the place behind which it goes on.

    Raises Fault for a cursor that means none.
    """
    bound = (inf, "") if cursor is None else _read(cursor)
    before = None if cursor is None else nextafter(bound[0], inf)
    every = {live.call.id: live for live in site.engine.calls()}  # first: what ends meanwhile is found twice
    for limit in (LOOKED, CROWD):
        past = Query(state="finished", caller=caller, before=before, limit=limit)
        rows = await site.engine.journal.find(past)
        is_part = len(rows) == limit  # of what there is; what lives and is older comes with the rest of it
        end = (rows[-1].opened, rows[-1].id) if is_part else (-inf, "")
        if end < bound:
            break
    every |= await _recalled(site, [row for row in rows if row.id not in every])
    found = [live for live in every.values() if _is_task(site, live, caller) and end <= _place(live) < bound]
    page = sorted(found, key=_place, reverse=True)[:MOST]
    last = _place(page[-1]) if len(found) > MOST else end if is_part and end < bound else None
    return [standing(site, live) for live in page], None if last is None else _cursor(last)


async def answer_older(site: Site, client: Client, message: Envelope, outlet: Outlet) -> Conversation | None:
    """Answer a request about tasks; for a result it is waited, by the conversation. Raises Fault."""
    request, can = message.id, client.capabilities
    assert isinstance(request, int | str)
    if message.method == "tasks/list":
        every, more = await listed(site, client.caller, tasks.read_cursor(message))
        await outlet.finish((), tasks.listed_older(request, every, can, more))
        return None
    asked = tasks.read_older(message)
    live = await find(site, asked.task, client.caller)
    if message.method == "tasks/result":
        endless = messages.Budget(wait_s=0)  # whoever asks for a result waits for it
        want = Wanted(request, "", live.arguments, asked.meta.token, client.level, can, endless)
        related = Carried(outlet, partial(tasks.related, task=live.call.id))
        talk = Conversation(site, want, client.caller, related, client)
        talk.live, talk.waits = live, True
        live.can_ask = live.can_ask or can.can("form")
        return talk
    if message.method == "tasks/cancel":
        if tasks.is_over(live.call):
            raise tasks.over(asked.task)
        site.engine.cancel(live, "caller", "the caller cancelled its task")
        await site.recorded()
    else:
        forsake(site, live, can)
    await outlet.finish((), tasks.got_older(request, standing(site, live), can))
    return None


def _is_task(site: Site, live: Live, caller: str) -> bool:
    """Whether it is to be listed; of a pipe, only what its own process began: the one before was another."""
    opened = live.call.opened
    is_own = opened.caller == caller and (caller != PIPE or opened.at >= site.began)
    return opened.task and is_own and is_kept(site, live)


async def _recalled(site: Site, rows: list[Row]) -> dict[str, Live]:
    """The calls of these rows that ended not too long ago."""
    since = site.engine.clock.now() - site.settings.task_ttl_s
    found: dict[str, Live] = {}
    for row in rows:
        if (row.finished or 0.0) >= since:
            with suppress(UnknownName):
                found[row.id] = await recall(site.engine, row.id)
    return found


def _place(live: Live) -> tuple[float, str]:
    return live.call.opened.at, live.call.id


def _cursor(place: tuple[float, str]) -> str:
    """The place itself, for the call that was there may be gone when the next page is asked for."""
    return f"{place[0]!r}:{place[1]}"


def _read(cursor: str) -> tuple[float, str]:
    """The place that a cursor means; raises Fault."""
    at, _, call = cursor.partition(":")
    try:
        place = float(at), call
    except ValueError:
        raise tasks.no_page(cursor) from None
    if not call or not isfinite(place[0]) or _cursor(place) != cursor:
        raise tasks.no_page(cursor)
    return place
