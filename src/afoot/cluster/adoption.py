"""`adopt` goes on with a call of a dead gateway whose function still runs on a worker (D2).

The attempt stays the same, and the function is not disturbed: what it said meanwhile is kept in Redis until
the facts have it, and so is what it was given, since the facts hold no secrets.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import DecodeError, json
from msgspec.structs import replace

from afoot.cluster.functions import SERVER, WorkerFunctions, worker_of
from afoot.core.call import State
from afoot.core.facts import Answer, Logged, Result
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import asked_at_place
from afoot.engine.recovery import is_wanted, lacks_secrets, load_call_by_key, same_tool
from afoot.providers.isolation.frames import AskQuestion, InvokeTool, RunCall
from afoot.store.redis.journal import RedisJournal

LEFT: Final = "its caller was connected to a gateway that died"

_log = logging.getLogger("afoot.cluster")


class Adopted:
    """A call that was taken over: replies to what its function had asked the owner before."""

    def __init__(self, engine: Engine, live: LiveCall) -> None:
        self._engine = engine
        self._live = live

    def claim(self, asked: Sequence[AskQuestion]) -> None:
        """Close the questions of the call that its function does not wait for any more."""
        call = self._live.call
        names = {asked_at_place(call, one.question.key, one.place) for one in asked}
        self._engine.questions.close_unclaimed(self._live, {name for name in names if name})

    async def ask(self, asked: AskQuestion) -> Answer:
        """The answer to a question that the owner before may have asked already."""
        return await self._engine.questions.ask_again(self._live, asked.question, asked.place)

    async def invoke(self, invoked: InvokeTool, key: str) -> Result:
        """The result of a call below this one, which the owner before may have made already."""
        engine, call = self._engine, self._live.call
        child = await load_call_by_key(engine, call.opened.caller, key)
        if child is not None and child.call.opened.parent == call.id:
            return await engine.result_below(child)
        return await engine.call_below(self._live, invoked.tool, invoked.arguments, invoked.weight, key)


async def adopt(engine: Engine, journal: RedisJournal, functions: WorkerFunctions, live: LiveCall) -> bool:
    """Go on with a call whose function runs on, or waits in the queue; False if there is none.

    Raises StoreError.
    """
    call = live.call
    if call.opened.server != SERVER or call.state not in (State.RUNNING, State.CANCELLING):
        return False
    state = await journal.command("HMGET", f"{journal.prefix}call:{call.id}", "want", "run", "done", "heard")
    want, run, done, heard = state
    attempt = str(call.attempt).encode()
    worker = worker_of(run, call.attempt)
    if want == attempt and worker and done != attempt and functions.is_dead(worker):
        return False
    given = await journal.command("HGETALL", f"{journal.prefix}task:{call.id}")
    task = dict(given if isinstance(given, dict) else zip(given[::2], given[1::2], strict=True))
    message = _message(live, task if want == attempt else {})
    if message is None:
        return False
    place, _, taken = (heard or b"").decode().partition("-")
    resumption = Adopted(engine, live)
    taken_parts = int(taken) if place == str(call.attempt) else 0
    work = await functions.resume(message, worker, taken_parts, resumption)
    engine.adopt(live)
    live.provider, live.work, live.is_recovered = functions, work, True
    live.arguments, live.origin = message.arguments, message.origin
    _equip(live, engine.catalog)
    _restore_answers(live, task)
    engine.redactor.lend(live.secrets())
    text = "the gateway that had this call died; another one goes on with it"
    engine.commit(live, Logged(engine.clock.now(), text, "warning", "afoot"))
    if call.opened.parent is not None:
        live.inner = call.opened.key.startswith(f"{call.opened.parent}.")
        engine.child_calls.attach(live)
    engine.resume(live)
    if call.state is State.RUNNING:
        _cancel_unwanted(engine, live)
    return True


def _message(live: LiveCall, task: Mapping[bytes, bytes]) -> RunCall | None:
    """Return the order for the worker, as it was sent or as it is to be sent; None if it is not known."""
    call = live.call
    if b"run" in task:
        try:
            return json.decode(task[b"run"], type=RunCall)
        except DecodeError as error:
            _log.error("call %s: what its function was given cannot be read: %s", call.id, error)
            return None
    if lacks_secrets(call) or call.state is State.CANCELLING:
        return None
    name = call.opened.inner or call.opened.tool
    return RunCall(
        name, call.arguments, call.id, call.attempt, call.opened.caller, resumed_from=call.checkpoint
    )


def _equip(live: LiveCall, catalog: Catalog) -> None:
    """Give a call its tool as it is offered here, or at least as its facts tell of it."""
    found = same_tool(live.call, catalog)
    if found is not None:
        live.tool = found[1]
        return
    known, opened = live.call.definition, live.call.opened
    safety: dict[str, Any] = {"read_only": known.read_only, "idempotent": known.idempotent}
    live.tool = replace(
        live.tool, digest=known.digest, limits=opened.limits, trusted=known.trusted, starts=True, **safety
    )


def _restore_answers(live: LiveCall, task: Mapping[bytes, bytes]) -> None:
    """Know again the answers that the function got as they were given: what it says may have them (S4)."""
    for field, value in task.items():
        attempt, _, rest = field.decode().partition(" ")
        place, _, key = rest.partition(" ")
        if attempt != str(live.call.attempt) or not place.isdecimal():
            continue
        name = asked_at_place(live.call, key, int(place))
        try:
            answer = json.decode(value, type=Answer)
        except DecodeError:
            continue
        if name in live.call.answers and name is not None:
            live.keep_answer(name, answer)


def _cancel_unwanted(engine: Engine, live: LiveCall) -> None:
    """Stop a function whose call nobody can find again, or whose parent is over (X1)."""
    opened, loop = live.call.opened, asyncio.get_running_loop()  # its work is to begin before it is cancelled
    above = opened.parent
    if live.inner and above is not None:
        parent = engine.own_call(above)
        attempt = opened.key.removeprefix(f"{above}.").partition(".")[0]
        is_waited_for = parent is not None and parent.task is not None and str(parent.call.attempt) == attempt
        if not is_waited_for and not _lives_elsewhere(engine, above):
            loop.call_soon(engine.cancel, live, "parent", "the call above it is over")
    elif not is_wanted(live):
        loop.call_soon(engine.cancel, live, "disconnect", LEFT)


def _lives_elsewhere(engine: Engine, call: str) -> bool:
    return call in engine and engine[call].mirror is not None and engine[call].call.end is None
