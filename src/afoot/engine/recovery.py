"""Calls that the journal remembers: finished ones to look at, and those of a gateway that died."""

import asyncio
import logging
from collections import Counter

from msgspec import Raw

from afoot.core.call import Call, fold, rest
from afoot.core.facts import Answer, Answered, Entry, Failure, Finished, Opened, Sample
from afoot.core.ports import Provider, Tool
from afoot.core.redact import redacted
from afoot.core.rules import fate
from afoot.engine.admission import admit
from afoot.engine.bell import Bell
from afoot.engine.deadlines import arm
from afoot.engine.endings import told
from afoot.engine.engine import Engine
from afoot.engine.live import BACKLOG, Live
from afoot.engine.review import decided, refusal
from afoot.errors import AfootError, StoreError, ToolError, UnknownName
from afoot.tables import OWN

log = logging.getLogger("afoot.engine")

FINDABLE = ("operator", "session:", "token:", "oauth:")  # callers that outlive a connection


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


async def recover(engine: Engine, caller: str = "") -> None:
    """Settle the calls of a gateway that died: they are queued again, run again, lost or uncertain (U4).

    `caller`: only those of this one.
    """
    fates = Counter[str]()
    for call_id in await engine.journal.unfinished():
        try:
            live = await recall(engine, call_id)
        except (AfootError, ValueError, KeyError) as error:  # it is damaged, and may not stop all others
            log.error("call %s of a gateway that died cannot be read: %s", call_id, error)
            continue
        if caller in ("", live.call.opened.caller):
            engine.adopt(live)
            await _settle(engine, live)
            fates[_fated(live.call)] += 1
    if fates:
        what = ", ".join(f"{count} {word}" for word, count in fates.most_common())
        log.warning("calls of the gateway before that had not ended: %s (afoot calls lists them)", what)


async def _settle(engine: Engine, live: Live) -> None:
    call = live.call
    live.orphaned = len(call.questions)
    rest(call, engine.clock.now())
    if call.cancel is not None or redacted(call.arguments) or await _is_below(engine, call):
        _give_up(engine, live)
    elif call.started is None and _is_asked(call) and not _is_back(engine, call.opened):
        live.task = asyncio.create_task(_reunite(engine, live))
    elif _equip(engine, live) and _may_go_on(engine, live):
        _go_on(engine, live)
    else:
        _give_up(engine, live)


def _fated(call: Call) -> str:
    """What becomes of it, in words."""
    if call.end is not None:
        return call.end.outcome
    return "waiting for an answer" if call.open else "run again" if call.attempt else "queued again"


def remembered(entries: list[Entry]) -> Live:
    """The call that these entries tell of."""
    call = fold(entries[0].call, (entry.fact for entry in entries))
    tool = Tool(call.opened.tool, call.opened.server, Raw(b"{}"))
    live = Live(call, tool, call.arguments, can_ask=None)
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


def _may_go_on(engine: Engine, live: Live) -> bool:
    """Whether a call is for somebody still, and has not begun or may be begun again (U4, X1)."""
    call = live.call
    if call.started is None:
        return _is_asked(call) or _is_lasting(live)
    is_wanted = bool(call.questions) or _is_lasting(live)
    return is_wanted and _is_safe(live) and call.attempt < engine.max_attempts


def _is_safe(live: Live) -> bool:
    """Whether it may be repeated, also by what is declared now: somebody may have taken that back since."""
    tool, is_known = live.tool, live.provider is not None
    return live.call.is_safe and (not is_known or (tool.trusted and (tool.idempotent or tool.read_only)))


def _is_asked(call: Call) -> bool:
    return any(one.kind == "approval" for one in call.questions.values())


def _is_lasting(live: Live) -> bool:
    """Whether its caller can find it again: any other left when its connection broke, which ends a call."""
    opened = live.call.opened
    is_found = opened.task or bool(opened.key) or opened.caller.startswith(FINDABLE)
    return is_found or live.tool.on_disconnect == "detach"


def _go_on(engine: Engine, live: Live) -> None:
    """Wait on for an answer, or begin: for the first time, or once more."""
    call = live.call
    _close_mirrors(engine, live)
    if call.open and call.started is not None:
        arm(live, engine.clock, engine.tick)
        return
    live.task = asyncio.create_task(admit(engine, live))


def _give_up(engine: Engine, live: Live) -> None:
    outcome = fate(live.call, began=live.call.started is not None)
    engine.end(live, engine.ending(live, outcome, _explain(live, outcome)))


async def _reunite(engine: Engine, live: Live) -> None:
    """A call that waits for a person, and whose tool is not back yet, as that of a page: wait for both."""
    bell = Bell()
    stop = engine.catalog.listen(bell.ring)
    is_ours = live.call.opened.server == OWN  # nobody but this gateway could bring it back
    try:
        arm(live, engine.clock, engine.tick)
        with engine.follow(live, bell.ring, None):
            while not _is_back(engine, live.call.opened):
                if is_ours and not live.call.open:
                    _miss(engine, live)
                    return
                await bell.wait()
    except asyncio.CancelledError:
        engine.end(live, engine.cancelled(live))
        return
    finally:
        stop()
    if _equip(engine, live):
        await admit(engine, live)
    else:
        _give_up(engine, live)


def _miss(engine: Engine, live: Live) -> None:
    """It was answered, and its tool is gone: that is the end of what was approved, too."""
    said = decided(next(reversed(live.call.answers.values())).answer)
    error = refusal(live.tool, said)
    if said.decision in ("run", "always"):
        error = ToolError.unavailable(f"tool {live.tool.name} is not served here any more", code="tool_gone")
    outcome = "refused" if error.category == "refused" else "failed"
    engine.end(live, engine.ending(live, outcome, told(engine, live, error)))


async def _is_below(engine: Engine, call: Call) -> bool:
    """Whether a call of ours made it: that one has died too, or calls it anew."""
    parent = call.opened.parent
    try:
        return parent is not None and bool(await engine.journal.facts(parent))
    except StoreError:  # it is damaged, so it was ours
        return True


def _close_mirrors(engine: Engine, live: Live) -> None:
    """What calls below asked is not asked any more: they are over."""
    for one in list(live.call.open.values()):
        if one.kind == "below" or one.below:
            answer = Answer("cancel", by="engine")
            engine.commit(live, Answered(engine.clock.now(), one.id, answer))


def _explain(live: Live, outcome: str) -> Failure:
    call = live.call
    what = "before it could end" if outcome == "lost" else "while it ran; its effects may have happened"
    text = f"{outcome}: the gateway died {what}"
    if call.is_safe and redacted(call.arguments):
        text += "; it was not run again, because secrets in its arguments are not kept"
    return Failure(text, "unavailable", outcome, retryable=call.started is None or _is_safe(live))


def _equip(engine: Engine, live: Live) -> bool:
    """Give a remembered call its work again, if its tool is still the same."""
    found = _found(engine, live.call.opened)
    if found is None:
        log.warning("call %s: its tool %s is gone, or another now", live.call.id, live.tool.name)
        return False
    provider, tool = live.provider, live.tool = found
    try:
        live.work = provider.prepare(tool.inner or tool.name, live.call.arguments)
    except Exception as error:  # an author's own check of arguments may raise anything
        log.warning("call %s cannot be run again: %s", live.call.id, error)
        return False
    return True


def _found(engine: Engine, opened: Opened) -> tuple[Provider, Tool] | None:
    """Its tool, if that is the same, under whatever name: these change as servers come and go (U3)."""
    meant = opened.server, opened.digest
    same = [one for one in engine.catalog.known.values() if (one[1].server, one[1].digest) == meant]
    return next((one for one in same if one[1].name == opened.tool), same[0] if same else None)


def _is_back(engine: Engine, opened: Opened) -> bool:
    """Whether its tool is there, or what has become of it."""
    named = engine.catalog.known.get(opened.tool)
    is_its_own = named is not None and named[1].server == opened.server
    return is_its_own or _found(engine, opened) is not None
