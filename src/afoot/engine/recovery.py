"""`load_call` finds a live or a stored call; `recover` continues the calls of a dead gateway.

A call of a gateway that died is queued again, run again, lost or uncertain (U4).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Raw
from msgspec.structs import replace

from afoot.config.tables import LOCAL_SERVER
from afoot.core.call import Call, fold, note_sample, spent_until_last_sign
from afoot.core.facts import Answer, Answered, Entry, Failure, Finished, Interrupted
from afoot.core.names import own_name, titled
from afoot.core.ports import Journal, Provider, Tool
from afoot.core.redaction import redacted_pointers
from afoot.core.rules import outcome_of_dead
from afoot.engine.approval.question import KIND, answered_instead, decision_of, refusal_error
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine
from afoot.engine.failures import failure_from_tool_error
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import BACKLOG, LiveCall
from afoot.errors import AfootError, StoreError, ToolError, UnknownName

LASTING_CALLERS = (
    "operator",
    "session:",
    "token:",
    "oauth:",
)  # how the names of callers begin that outlive a connection
# Raised for a stored call that is damaged, or of a newer version; it may not stop all others.
UNREADABLE = (AfootError, ValueError, KeyError)

NEW_S = 10.0
ID_RANDOM_CHARS = 32  # of the id of a call; those before are the time of its opening

log = logging.getLogger("afoot.engine")


async def load_call(engine: Engine, call_id: str) -> LiveCall:
    """A call that lives, or that the journal remembers; raises UnknownName."""
    with suppress(UnknownName):
        return engine[call_id]
    if engine.others is not None and _is_new(call_id, engine.clock.now()):
        with suppress(StoreError):
            await engine.others.caught_up()  # it may live at another gateway
        with suppress(UnknownName):
            return engine[call_id]
    # While the journal is away, memory has the rest. It is looked at first: facts that are written meanwhile
    # leave memory, and the journal may have been read before.
    kept = engine.recorder.kept(call_id, 0)
    entries = await engine.journal.facts(call_id)
    entries += [entry for entry in kept if entry.seq > len(entries)]
    if not entries or entries[0].seq > 1:
        raise UnknownName("call", call_id)
    live = call_from_entries(entries)
    # Facts alone do not tell how far it came: its readings are in the history only as samples.
    if samples := await engine.journal.samples(call_id):
        note_sample(live.call, samples[-1])
        live.sampled_number = live.call.readings
    return live


def _is_new(call_id: str, now: float) -> bool:
    """Whether a call was opened a moment ago: an older one that lives anywhere is known here."""
    try:
        return now - int(call_id[:-ID_RANDOM_CHARS], 16) / 1000 < NEW_S
    except ValueError:
        return False


async def load_call_by_key(engine: Engine, caller: str, key: str) -> LiveCall | None:
    """The newest call that this caller opened with this idempotency key; raises StoreError.

    A call stands in the engine until its end is written, or kept by the recorder while the journal is away;
    so these three places, in this order, miss none.
    """
    for live in reversed(engine.calls()):
        if live.call.opened.key == key and live.call.opened.caller == caller:
            return live
    call_id = engine.recorder.keyed(caller, key) or await engine.journal.keyed(caller, key)
    if call_id is None:
        return None
    try:
        return await load_call(engine, call_id)
    except UnknownName:  # it was purged meanwhile
        return None


def call_from_entries(entries: list[Entry]) -> LiveCall:
    """The call that these entries tell of; nothing runs it."""
    call = fold(entries[0].call, (entry.fact for entry in entries))
    tool = Tool(call.opened.tool, call.opened.server, Raw(b"{}"), inner=call.opened.inner)
    live = LiveCall(call, tool, call.arguments, more=call.opened.more, is_recovered=True)
    end = next((at for at, entry in enumerate(entries, 1) if type(entry.fact) is Finished), len(entries))
    live.backlog.extend(entries[: end + BACKLOG - 1])  # what came long after its end may not push that out
    live.recorded = call.seq
    return live


async def recover(engine: Engine, caller: str = "") -> None:
    """Go on with the calls of a gateway that died, or end them; `caller`: only with those of this one."""
    found = list[LiveCall]()
    for call_id in await engine.journal.unfinished():
        try:
            live = await load_call(engine, call_id)
        except UNREADABLE as error:
            log.error("call %s of a gateway that died cannot be read: %s", call_id, error)
            continue
        if caller in ("", live.call.opened.caller):
            found.append(live)
    await recover_loaded(engine, found)


async def recover_loaded(engine: Engine, calls: Sequence[LiveCall]) -> None:
    """Go on with these calls of a gateway that died, or end them."""
    recovery = _Recovery(engine)
    results = Counter[str]()
    for live in calls:
        await recovery.recover(live)
        results[_result_in_words(live.call)] += 1
    if results:
        what = ", ".join(f"{count} {word}" for word, count in results.most_common())
        log.warning("calls of the gateway before that had not ended: %s (afoot calls lists them)", what)


class _Recovery:
    """Brings calls of a dead gateway back to life in an engine, or to their end."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def recover(self, live: LiveCall) -> None:
        """Write that a call was interrupted, and wait, run it again, or end it."""
        engine, call = self._engine, live.call
        engine.adopt(live)
        live.orphaned = len(call.questions)
        engine.commit(live, Interrupted(engine.clock.now(), spent_until_last_sign(call)))
        if call.cancel is not None or lacks_secrets(call) or await _is_below(call, engine.journal):
            self._give_up(live)
        elif call.started is None and _is_asked(call) and not _is_back(call, engine.catalog):
            live.task = asyncio.create_task(self._wait_for_tool(live))
        elif _equip(live, engine.catalog) and _may_go_on(live, engine.max_attempts):
            self._go_on(live)
        else:
            self._give_up(live)

    def _go_on(self, live: LiveCall) -> None:
        """Wait on for an answer, or begin: for the first time, or once more."""
        engine = self._engine
        for one in list(live.call.open.values()):
            if one.kind == "below" or one.below:  # asked by calls below, which are over
                answer = Answer("cancel", by="engine")
                engine.commit(live, Answered(engine.clock.now(), one.id, answer))
        if live.call.open and live.call.started is not None:
            engine.deadlines.arm(live)
        else:
            live.task = asyncio.create_task(engine.admit_and_run(live))

    def _give_up(self, live: LiveCall) -> None:
        outcome = outcome_of_dead(live.call, began=live.call.started is not None)
        self._engine.end(live, self._engine.make_end(live, outcome, _failure(live, outcome)))

    async def _wait_for_tool(self, live: LiveCall) -> None:
        """Wait for an answer and for the tool of a call, which is not back yet, as that of a page."""
        engine, wakeup = self._engine, Wakeup()
        stop_listening = engine.catalog.listen(wakeup.wake)
        is_ours = live.call.opened.server == LOCAL_SERVER  # nobody but this gateway could bring it back
        try:
            engine.deadlines.arm(live)
            with engine.follow(live, wakeup.wake, None):
                while not _is_back(live.call, engine.catalog):
                    if is_ours and not live.call.open:
                        self._end_without_tool(live)
                        return
                    await wakeup.wait()
        except asyncio.CancelledError:
            engine.end(live, engine.cancelled_end(live))
            return
        finally:
            stop_listening()
        if _equip(live, engine.catalog):
            await engine.admit_and_run(live)
        else:
            self._give_up(live)

    def _end_without_tool(self, live: LiveCall) -> None:
        """End a call that was answered, and whose tool is gone: also where it was approved."""
        engine = self._engine
        call = live.call
        answers = [one for one in call.answers.values() if call.questions[one.question].kind == KIND]
        decision = decision_of(answers[-1].answer)
        decision = replace(decision, instead=decision.instead or answered_instead(call))
        error = refusal_error(live.tool, decision)
        if decision.decision in ("run", "always"):
            text = f"{titled(live.tool.name)} is not served here any more"
            error = ToolError.unavailable(text, code="tool_gone")
        outcome = "refused" if error.category == "refused" else "failed"
        failure = failure_from_tool_error(error, live, engine.redactor)
        engine.end(live, engine.make_end(live, outcome, failure))


def _result_in_words(call: Call) -> str:
    if call.end is not None:
        return call.end.outcome
    return "waiting for an answer" if call.open else "run again" if call.attempt else "queued again"


def may_be_handed_over(live: LiveCall, max_attempts: int) -> bool:
    """Whether another gateway can go on with a call of this one: it waits, or may be begun again."""
    call = live.call
    if call.end is not None or call.cancel is not None or call.opened.parent is not None:
        return False
    return not lacks_secrets(call) and _may_go_on(live, max_attempts)


def _may_go_on(live: LiveCall, max_attempts: int) -> bool:
    """Whether somebody still wants a call, and it has not begun or may be begun again (U4, X1)."""
    call = live.call
    if call.started is None:
        return _is_asked(call) or _is_lasting(live)
    return is_wanted(live) and _is_safe(live) and call.attempt < max_attempts


def is_wanted(live: LiveCall) -> bool:
    """Whether somebody can find a call again that has begun, although its gateway died (X1)."""
    return bool(live.call.questions) or _is_lasting(live)


def _is_safe(live: LiveCall) -> bool:
    """Whether the call may be repeated, also by the present definition: its promise may be gone since."""
    tool, is_known = live.tool, live.provider is not None
    return live.call.is_safe and (not is_known or (tool.trusted and (tool.idempotent or tool.read_only)))


def _is_asked(call: Call) -> bool:
    return any(one.kind == "approval" for one in call.questions.values())


def _is_lasting(live: LiveCall) -> bool:
    """Whether its caller can find it again: any other left when its connection broke, which ends a call."""
    opened = live.call.opened
    is_told = opened.task or bool(opened.key) or live.call.handed_over is not None
    return is_told or opened.caller.startswith(LASTING_CALLERS) or live.tool.on_disconnect == "detach"


async def _is_below(call: Call, journal: Journal) -> bool:
    """Whether another call of this gateway made it: its parent has died too, or makes the call again."""
    parent = call.opened.parent
    try:
        return parent is not None and bool(await journal.facts(parent))
    except StoreError:  # it is damaged, so it was ours
        return True


def lacks_secrets(call: Call) -> bool:
    """Whether its tool had secrets, in arguments or in `_meta`, that are not kept (S4)."""
    return bool(redacted_pointers(call.arguments) or redacted_pointers(call.opened.more))


def _failure(live: LiveCall, outcome: str) -> Failure:
    call = live.call
    what = "before it could end" if outcome == "lost" else "while it ran; its effects may have happened"
    text = f"{outcome}: the gateway died {what}"
    if call.is_safe and lacks_secrets(call):
        text += "; it was not run again, because secrets in its arguments are not kept"
    return Failure(text, "unavailable", outcome, retryable=call.started is None or _is_safe(live))


def _equip(live: LiveCall, catalog: Catalog) -> bool:
    """Give a loaded call its work again, if its tool is still the same."""
    found = same_tool(live.call, catalog)
    if found is None:
        log.warning("call %s: its tool %s is gone, or another now", live.call.id, live.tool.name)
        return False
    provider, tool = live.provider, live.tool = found
    try:
        live.work = provider.prepare(own_name(tool), live.call.arguments)
    except Exception as error:  # an author's own check of arguments may raise anything
        log.warning("call %s cannot be run again: %s", live.call.id, error)
        return False
    return True


def same_tool(call: Call, catalog: Catalog) -> tuple[Provider, Tool] | None:
    """The tool of a call, if it is the same, under any name: names change as servers come and go (U3)."""
    meant = call.opened.server, call.definition.digest
    same = [one for one in catalog.known.values() if (one[1].server, one[1].digest) == meant]
    return next((one for one in same if one[1].name == call.opened.tool), same[0] if same else None)


def _is_back(call: Call, catalog: Catalog) -> bool:
    """Whether the tool of a call is there, or what has become of it."""
    named = catalog.known.get(call.opened.tool)
    is_its_own = named is not None and named[1].server == call.opened.server
    return is_its_own or same_tool(call, catalog) is not None
