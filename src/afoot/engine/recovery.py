"""Calls that the journal remembers: finished ones to look at, and those of a gateway that died."""

import logging

from msgspec import Raw

from afoot.core.call import Call, fold
from afoot.core.facts import Entry, Failure
from afoot.core.ports import Tool
from afoot.engine.deadlines import arm
from afoot.engine.engine import Engine
from afoot.engine.live import Live
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
    return remembered(entries)


async def recover(engine: Engine) -> None:
    """Settle the calls of a gateway that died: those that wait and are safe wait on, the others end (U4)."""
    for call_id in await engine.journal.unfinished():
        live = await recall(engine, call_id)
        engine.adopt(live)
        call = live.call
        if call.is_safe and call.cancel is None and call.questions and _equip(engine, live):
            arm(live, engine.clock, engine.tick) if call.open else engine.admit(live)
        else:
            outcome = _fate(live.call)
            engine.end(live, engine.ending(live, outcome, _explain(live.call, outcome)))


def remembered(entries: list[Entry]) -> Live:
    """The call that these entries tell of."""
    call = fold(entries[0].call, (entry.fact for entry in entries))
    live = Live(call, Tool(call.opened.tool, call.opened.server, Raw(b"{}")))
    live.backlog.extend(entries)
    live.recorded = call.seq
    return live


def _fate(call: Call) -> str:
    return "lost" if call.started is None or call.opened.read_only else "uncertain"


def _explain(call: Call, outcome: str) -> Failure:
    what = "before it could end" if outcome == "lost" else "while it ran; its effects may have happened"
    text = f"{outcome}: the gateway died {what}"
    return Failure(text, "unavailable", outcome, retryable=outcome == "lost" or call.is_safe)


def _equip(engine: Engine, live: Live) -> bool:
    """Give a remembered call its work again, if its tool is still the same."""
    try:
        provider, tool = engine.catalog.get(live.call.opened.tool)
        live.work, live.tool = provider.prepare(tool.name, live.call.opened.arguments), tool
    except Exception as error:  # an author's own check of arguments may raise anything
        log.warning("call %s cannot be run again: %s", live.call.id, error)
        return False
    return tool.digest == live.call.opened.digest
