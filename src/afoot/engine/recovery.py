"""Calls that the journal remembers: finished ones to look at, and those of a gateway that died."""

import logging

from msgspec import Raw

from afoot.core.call import Call, fold
from afoot.core.facts import Answer, Answered, Entry, Failure, Finished, Sample
from afoot.core.ports import Tool
from afoot.core.rules import fate
from afoot.engine.deadlines import arm
from afoot.engine.engine import Engine
from afoot.engine.live import BACKLOG, Live
from afoot.errors import UnknownName

log = logging.getLogger("afoot.engine")


async def recall(engine: Engine, call_id: str) -> Live:
    """A call that lives, or that the journal remembers; raises UnknownName."""
    if call_id in engine:
        return engine[call_id]
    entries = await engine.journal.facts(call_id)
    entries += engine.recorder.kept(call_id, len(entries))  # while the journal is away, memory has the rest
    if not entries or entries[0].seq > 1:
        raise UnknownName("call", call_id)
    live = remembered(entries)
    _come_so_far(live.call, await engine.journal.samples(call_id))
    return live


async def recover(engine: Engine) -> None:
    """Settle the calls of a gateway that died: those that wait and are safe wait on, the others end (U4)."""
    for call_id in await engine.journal.unfinished():
        live = await recall(engine, call_id)
        engine.adopt(live)
        call = live.call
        if (
            call.cancel is None
            and _waits(call)
            and not await _is_below(engine, call)
            and _equip(engine, live)
        ):
            _close_mirrors(engine, live)
            if call.open and call.started is not None:
                arm(live, engine.clock, engine.tick)
            else:
                engine.admit(live)
        else:
            outcome = fate(call, began=call.started is not None)
            engine.end(live, engine.ending(live, outcome, _explain(call, outcome)))


def remembered(entries: list[Entry]) -> Live:
    """The call that these entries tell of."""
    call = fold(entries[0].call, (entry.fact for entry in entries))
    live = Live(call, Tool(call.opened.tool, call.opened.server, Raw(b"{}")))
    end = next((at for at, entry in enumerate(entries, 1) if type(entry.fact) is Finished), len(entries))
    live.backlog.extend(entries[: end + BACKLOG - 1])  # what came long after its end may not push that out
    live.recorded = call.seq
    return live


def _come_so_far(call: Call, samples: list[Sample]) -> None:
    """Facts alone do not tell how far it came: its readings are in the history only as samples."""
    if samples:
        call.readings = samples[-1].number
        if call.latest is None or call.latest.at < samples[-1].reading.at:
            call.latest = samples[-1].reading


def _waits(call: Call) -> bool:
    """Whether a person was asked and it may go on: it has not begun, or is safe to repeat (Q1 h, H4)."""
    if call.started is None:
        return any(one.kind == "approval" for one in call.questions.values())
    return call.is_safe and bool(call.questions)


async def _is_below(engine: Engine, call: Call) -> bool:
    """Whether a call of ours made it: that one has died too, or calls it anew."""
    parent = call.opened.parent
    return parent is not None and bool(await engine.journal.facts(parent))


def _close_mirrors(engine: Engine, live: Live) -> None:
    """What calls below asked is not asked any more: they are over."""
    for one in list(live.call.open.values()):
        if one.kind == "below" or one.below:
            answer = Answer("cancel", by="engine")
            engine.commit(live, Answered(engine.clock.now(), one.id, answer))


def _explain(call: Call, outcome: str) -> Failure:
    what = "before it could end" if outcome == "lost" else "while it ran; its effects may have happened"
    text = f"{outcome}: the gateway died {what}"
    return Failure(text, "unavailable", outcome, retryable=outcome == "lost" or call.is_safe)


def _equip(engine: Engine, live: Live) -> bool:
    """Give a remembered call its work again, if its tool is still the same."""
    try:
        provider, tool = engine.catalog.get(live.call.opened.tool)
        live.provider, live.tool = provider, tool
        live.work = provider.prepare(tool.inner or tool.name, live.call.arguments)
    except Exception as error:  # an author's own check of arguments may raise anything
        log.warning("call %s cannot be run again: %s", live.call.id, error)
        return False
    return tool.digest == live.call.opened.digest
