"""Tasks of 2025-11-25: asked for by the caller, listed, and waited for by a request of their own (H3)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Raw

from afoot.core.ports import Query
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import UnknownName
from afoot.serve.conversation import Conversation
from afoot.serve.guard import PIPE
from afoot.serve.manner import Manner, Outlet
from afoot.serve.site import Site
from afoot.serve.tasks import find, forsake, standing
from afoot.wire import messages, tasks
from afoot.wire.jsonrpc import Envelope
from afoot.wire.messages import Capabilities, Wanted
from afoot.wire.tasks import Standing

MOST = 100  # tasks in a list


class Client(Manner, Protocol):
    """Who asks: a session of this era."""

    caller: str
    capabilities: Capabilities
    level: str | None


def offered(site: Site) -> list[Raw]:
    """Every tool, and whether it may be a task."""
    return [tasks.declared(bytes(tool.definition), tool.task) for tool in site.engine.catalog]


async def begin_older(site: Site, talk: Conversation) -> None:
    """Answer a call with the task that it is, once that is on record."""
    talk.live.attached -= 1  # its request is over, and it runs on
    await site.recorded()
    task = standing(site, talk.live)
    await talk.outlet.finish((), tasks.created_older(talk.want.id, task, talk.want.capabilities))


async def listed(site: Site, caller: str) -> list[Standing]:
    """The tasks of one caller, newest first: those that live, and those that ended not too long ago."""
    engine = site.engine
    found = {live.call.id: live for live in engine.calls() if _is_task(live, caller)}
    since = engine.clock.now() - site.settings.task_ttl_s
    if caller == PIPE:  # another process was another caller, and left its calls under the same name
        since = max(since, site.began)
    rows = await engine.journal.find(Query(state="finished", caller=caller, limit=MOST))
    for row in rows:
        if row.id not in found and (row.finished or 0.0) >= since:
            with suppress(UnknownName):
                if _is_task(live := await recall(engine, row.id), caller):
                    found[row.id] = live
    newest = sorted(found.values(), key=lambda live: -live.call.opened.at)
    return [standing(site, live) for live in newest[:MOST]]


async def answer_older(site: Site, client: Client, message: Envelope, outlet: Outlet) -> Conversation | None:
    """Answer a request about tasks; for a result it is waited, by the conversation. Raises Fault."""
    request, can = message.id, client.capabilities
    assert isinstance(request, int | str)
    if message.method == "tasks/list":
        every = await listed(site, client.caller)
        await outlet.finish((), tasks.listed_older(request, every, can))
        return None
    asked = tasks.read_older(message)
    live = await find(site, asked.task, client.caller)
    if message.method == "tasks/result":
        endless = messages.Budget(wait_s=0)  # whoever asks for a result waits for it
        want = Wanted(request, "", live.arguments, asked.meta.token, client.level, can, endless)
        talk = Conversation(site, want, client.caller, Related(outlet, live.call.id), client)
        talk.live, talk.waits = live, True
        live.can_ask = live.can_ask or can.can("form")
        return talk
    if message.method == "tasks/cancel":
        if live.call.is_finished:
            raise tasks.over(asked.task)
        site.engine.cancel(live, "caller", "the caller cancelled its task")
    else:
        forsake(site, live, can)
    await outlet.finish((), tasks.got_older(request, standing(site, live), can))
    return None


def _is_task(live: Live, caller: str) -> bool:
    return live.call.opened.task and live.call.opened.caller == caller


class Related:
    """An outlet whose results and questions say which task they belong to (2025-11-25)."""

    def __init__(self, outlet: Outlet, task: str) -> None:
        self._outlet = outlet
        self._task = task

    @property
    def gone(self) -> bool:
        return self._outlet.gone

    @property
    def streaming(self) -> bool:
        return self._outlet.streaming

    def watch(self, ring: Callable[[], object]) -> None:
        self._outlet.watch(ring)

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send these, each with its task."""
        await self._outlet.send([tasks.related(frame, self._task) for frame in frames])

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        """Send the last, with its task."""
        named = [tasks.related(frame, self._task) for frame in frames]
        await self._outlet.finish(named, None if last is None else tasks.related(last, self._task))

    async def keep_alive(self) -> None:
        await self._outlet.keep_alive()
