"""Calls as tasks: when a caller gets one, what it is told of it, and what it may do with it (H3).

A task is no thing of its own: getting it reads its call, updating it answers, cancelling it cancels.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from afoot.core.facts import Answer
from afoot.core.ports import Tool
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import AfootError, ToolError, UnknownName
from afoot.observe.eta import quantile
from afoot.observe.terminal import left
from afoot.serve.forecast import forecast
from afoot.serve.site import Site
from afoot.wire import mcp, messages, tasks
from afoot.wire.jsonrpc import Envelope, Fault
from afoot.wire.messages import Capabilities, Wanted
from afoot.wire.tasks import Asked, Standing

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation

LEAST_RUNS = 5  # of a tool, before how long it usually takes is known


def chosen(site: Site, want: Wanted, tool: Tool | None, *, modern: bool) -> bool:
    """Whether this call is to be a task; raises Fault where its tool and its caller do not agree on that."""
    support = "forbidden" if tool is None else tool.task
    if not modern:  # the caller says so, and is told by the list of tools whether it may
        if tool is not None and (
            support == "required" and not want.task or support == "forbidden" and want.task
        ):
            raise tasks.refused(tool.name, support)
        return want.task
    if not want.capabilities.tasks:
        if support == "required":
            raise tasks.undeclared()
        return False
    if support:
        return support != "forbidden"
    least_s, took = site.settings.task_after_s, site.engine.usual.of(tool.name if tool else want.name)
    return least_s > 0 and len(took) >= LEAST_RUNS and quantile(took, 0.5) >= least_s


def standing(site: Site, live: Live) -> Standing:
    """A call as it is now, with what is expected of it."""
    now = site.engine.clock.now()
    eta = forecast(site.engine, live, now)
    range_s = None if eta is None else (eta.low_s, eta.high_s)
    return Standing(live.call, now, live.heard, range_s, left(eta), site.settings.task_ttl_s)


def created(talk: "Conversation") -> bytes:
    """The task in place of the result, for a caller of 2026-07-28."""
    return tasks.created(talk.want.id, standing(talk.site, talk.live), talk.site.info)


async def find(site: Site, task: str, caller: str) -> Live:
    """A call of this caller's own; raises Fault, the same whether it is unknown or somebody else's."""
    try:
        live = await recall(site.engine, task)
    except UnknownName:
        raise tasks.unknown(task) from None
    if live.call.opened.caller != caller:
        raise tasks.unknown(task)
    if not is_kept(site, live):
        raise tasks.expired(task)
    return live


def is_kept(site: Site, live: Live) -> bool:
    """Whether a call may still be asked for: it runs, or ended not too long ago."""
    end = live.call.end
    return end is None or site.engine.clock.now() <= end.at + site.settings.task_ttl_s


async def answer(site: Site, message: Envelope, headers: Mapping[str, str] | None, caller: str) -> bytes:
    """The answer to a request about a task (2026-07-28); raises Fault."""
    asked, can = tasks.read(message, headers)
    request = message.id
    assert isinstance(request, int | str)
    live = await find(site, asked.task, caller)
    if message.method == "tasks/update":
        await _update(site, live, asked, (can, caller))
    elif message.method == "tasks/cancel":
        site.engine.cancel(live, "caller", "the caller cancelled its task")
        await site.recorded()
    else:
        forsake(site, live, can)
        return tasks.got(request, standing(site, live), can, site.info)
    return mcp.complete(request, site.info)


def forsake(site: Site, live: Live, can: Capabilities) -> None:
    """Decline what is asked of a model or for roots that this caller has not: nobody else has them."""
    for one in list(live.call.open.values()):
        if one.kind in ("sample", "roots") and not can.may_answer(one) and live.call.cancel is None:
            with suppress(AfootError):
                site.engine.answer(one.id, Answer("decline", by="engine"))


async def _update(site: Site, live: Live, asked: Asked, who: tuple[Capabilities, str]) -> None:
    """Take the answers to what is still asked; other keys count for nothing. Raises Fault for a misfit."""
    can, caller = who
    wrong: Fault | None = None
    for name, question in tasks.questions(live.call, can).items():
        given = (asked.answers or {}).get(name)
        if given is None:
            continue
        try:
            site.engine.answer(question.id, messages.answer(question, given, caller))
        except (ToolError, Fault) as error:
            site.count("answers refused")
            why = str(error).removeprefix(f"inputResponses.{question.key}: ")  # here it has another name
            wrong = wrong or tasks.misfit(name, why)
        except AfootError:
            site.count("answers too late")
    await site.recorded()
    if wrong is not None:
        raise wrong
