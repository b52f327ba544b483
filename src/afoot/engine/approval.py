"""A call's own approval: asked until it is settled, and what it allows from then on (A2, A5)."""

import logging
from typing import TYPE_CHECKING

from afoot.core.call import Call
from afoot.core.facts import Answered
from afoot.engine import policy, questions, review
from afoot.engine.live import Live
from afoot.errors import AfootError

if TYPE_CHECKING:
    from afoot.engine.engine import Engine

log = logging.getLogger("afoot.engine")


async def approve(engine: "Engine", live: Live) -> None:
    """Ask until somebody says yes or no, if it must be asked at all; raises ToolError.refused for a no."""
    if live.call.started is not None or not _must_ask(engine, live):  # what has begun had its yes
        return
    while (answered := _settled(live.call)) is None:
        await _ask(engine, live)
    said = review.decided(answered.answer)
    if said.decision in ("run", "always") and answered.answer.by == policy.OPERATOR:
        _remember(engine, live, answered.at)
    if said.decision == "always":
        _allow(engine, live, said, answered)
    elif said.decision != "run":
        raise review.refusal(live.tool, said)


def _must_ask(engine: "Engine", live: Live) -> bool:
    """Whether it needs a yes: what allows some arguments does not allow what a hook made of them (A6)."""
    call, opened = live.call, live.call.opened
    if opened.approval != "allowlist" or call.amended is None:
        return opened.approval == "ask"
    return not engine.policy.allows(live.tool, live.arguments, opened.caller, engine.clock.now())


async def _ask(engine: "Engine", live: Live) -> None:
    call, tool, now = live.call, live.tool, engine.clock.now()
    still = next((one for one in call.open.values() if review.is_own(one)), None)
    if still is not None:  # it waited through a restart
        await questions.wait(engine, live, still)
        return
    if any(review.is_own(one) for one in call.questions.values()):
        to = engine.policy.passes_on(tool, now)
    else:
        to = engine.policy.asks(tool, live.can_ask, now)
    asked = engine.policy.question(tool, (call.opened.caller, call.arguments), to)
    await questions.ask(engine, live, asked)


def _settled(call: Call) -> Answered | None:
    """The answer that counts; a caller's cancel is none, the operator's is a no."""
    for answered in reversed(call.answers.values()):
        said = answered.answer
        if review.is_own(call.questions[answered.question]):
            return answered if said.action != "cancel" or said.by == policy.OPERATOR else None
    return None


def _remember(engine: "Engine", live: Live, at: float) -> None:
    """Keep what was said yes to, for the next reviewer; a call does not fail because that cannot be kept."""
    try:
        engine.policy.past.remember(live.tool, live.call.arguments, at)
    except AfootError as error:
        log.error("call %s: what was approved could not be stored: %s", live.call.id, error)


def _allow(engine: "Engine", live: Live, said: review.Decision, answered: Answered) -> None:
    """Add to the allowlist what this answer allows: the tool, or every tool its server has now.

    Of a browser's tools it means those of the same page or plugin: each is a stranger to the others (A1).
    """
    tool, call = live.tool, live.call
    tools = [tool]
    if said.scope == "server":
        whose = tool.server, tool.source
        tools = [one for one in engine.catalog if (one.server, one.source) == whose]
    made = call.opened.caller, live.arguments, answered.at
    try:
        engine.policy.allow(policy.entry(said, tools or [tool], answered.answer, made, call.arguments))
    except AfootError as error:  # it was said, and holds; but only while this gateway runs
        log.error("call %s: what was allowed could not be stored: %s", call.id, error)
