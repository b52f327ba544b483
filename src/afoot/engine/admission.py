"""What lies between a call's opening and its start: hooks, approval, a slot, and what it runs on."""

import asyncio
from typing import TYPE_CHECKING

from msgspec.structs import replace

from afoot.core.call import State
from afoot.core.facts import Admitted, Amended, Failure, Finished
from afoot.core.rules import fate
from afoot.engine.approval import approve
from afoot.engine.deadlines import arm
from afoot.engine.endings import failed, told
from afoot.engine.live import Live, supervise
from afoot.engine.submission import kept
from afoot.errors import RunnerDied, ToolError

if TYPE_CHECKING:
    from afoot.engine.engine import Engine


async def admit(engine: "Engine", live: Live) -> None:
    """Bring a call to its start, and run it; or end it where somebody or something says no."""
    try:
        arm(live, engine.clock, engine.tick)
        # What was asked for may not change any more (A6): the hooks have seen it, before a restart.
        if engine.hooks is not None and not (live.call.questions or live.call.attempt or live.call.amended):
            await _amend(engine, live)
        if live.call.opened.approval != "auto":
            await approve(engine, live)
        await _slot(engine, live)
        await _ready(engine, live)
        engine.start(live)
        # The history says that it waits: a gateway that dies now would have it run a second time.
        if engine.write_ahead or not live.call.is_safe:
            await engine.recorder.recorded()
    except asyncio.CancelledError:
        engine.end(live, engine.cancelled(live))
    except ToolError as error:
        outcome = "refused" if error.category == "refused" else "failed"
        engine.end(live, engine.ending(live, outcome, told(engine, live, error)))
    except Exception as error:  # a hook or an author's own check of arguments may raise anything
        engine.end(live, engine.ending(live, "failed", failed(engine, live, error)))
    else:
        if live.call.state is State.RUNNING:
            await supervise(engine, live)


async def revive(engine: "Engine", live: Live, died: RunnerDied) -> Finished | None:
    """What ran a tool died under it: None once it runs again, else its end (U4)."""
    call = live.call
    if call.cancel is not None or call.end is not None:
        return engine.cancelled(live)
    if call.attempt >= engine.max_attempts or (died.began and not call.is_safe):
        return _given_up(engine, live, died)
    live.heard = engine.clock.now() + call.opened.limits.start_s  # a start is no silence of the tool (C1)
    live.orphaned = len(call.questions)
    try:
        async with asyncio.timeout(call.opened.limits.start_s):
            await _started(live)
    except asyncio.CancelledError:
        return engine.cancelled(live)
    except TimeoutError:
        why = f"it did not start again in {call.opened.limits.start_s:g} s (raise start_limit_s)"
        return _given_up(engine, live, RunnerDied(f"{died}; {why}", began=died.began, code=died.code))
    except Exception as error:  # whatever a start raises, the call must have its end
        again = RunnerDied(f"{died}; and again: {error}", began=died.began, code=died.code)
        return _given_up(engine, live, again)
    engine.start(live, unsent=not died.began, why=str(died))
    return None


def _given_up(engine: "Engine", live: Live, died: RunnerDied) -> Finished:
    """Lost, if nothing can have happened; uncertain otherwise, saying so."""
    call = live.call
    has_begun = died.began or call.begun
    outcome = fate(call, began=has_begun)
    tries = f" (attempt {call.attempt})" if call.attempt > 1 else ""
    more = "; its effects may have happened" if outcome == "uncertain" else ""
    more += ", so it was not run again" if more and not call.is_safe else ""
    may_repeat = outcome == "lost" or call.is_safe
    text = f"{outcome}: {died}{tries}{more}"
    failure = Failure(text, "unavailable", died.code or outcome, retryable=may_repeat)
    end = engine.ending(live, outcome, failure)
    if has_begun or end.failure is None:
        return end
    return replace(end, failure=replace(end.failure, side_effects="none"))


async def _amend(engine: "Engine", live: Live) -> None:
    """Let the hooks see it; they may refuse it, or change its arguments."""
    assert engine.hooks is not None and live.provider is not None
    # A hook that has a say is shown what will run, secrets and all.
    real = replace(live.call, opened=replace(live.call.opened, arguments=live.arguments))
    changed = await engine.hooks.before(real, live.tool)
    if changed is not None:
        try:
            live.work = live.provider.prepare(live.tool.inner or live.tool.name, changed)
        except ToolError as error:  # the caller's own fitted (E4)
            raise ToolError.validation(f"a hook changed the arguments: {error.message}") from error
        live.arguments = changed
        engine.commit(live, Amended(engine.clock.now(), kept(engine, live.tool, changed), "hook"))


async def _slot(engine: "Engine", live: Live) -> None:
    """Wait for a slot of its tool and its server; raises ToolError.unavailable if the queue is full."""
    if engine.slots.take(live):
        return
    live.gate = asyncio.get_running_loop().create_future()
    if not engine.slots.wait(live):
        raise ToolError.unavailable(
            f"the queue of tool {live.tool.name} is full ({live.tool.queue} calls); try again later",
            code="queue_full",
        )
    arm(live, engine.clock, engine.tick)
    await live.gate


async def _ready(engine: "Engine", live: Live) -> None:
    """Start what the tool runs on, if it must be started; its own clock runs meanwhile (C1)."""
    if live.provider is None or not live.tool.starts:
        return
    start = live.provider.start(live.tool.inner or live.tool.name, live.call.opened.caller)
    if start is not None:
        engine.commit(live, Admitted(engine.clock.now(), start.what))
        arm(live, engine.clock, engine.tick)
        try:
            await start.done()
        except RunnerDied as died:
            raise ToolError.unavailable(f"{start.what}: {died}", code="start_failed") from died


async def _started(live: Live) -> None:
    if live.provider is not None:
        start = live.provider.start(live.tool.inner or live.tool.name, live.call.opened.caller)
        if start is not None:
            await start.done()


__all__ = ["admit", "revive"]
