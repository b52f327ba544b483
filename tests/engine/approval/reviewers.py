"""An engine whose tool asks before it runs, and reviewers who decide."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Raw, json

from afoot.core.facts import Answer
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from tests.engine.fake_engine import engine_of, over, works

ASKS = Submission("tool", Raw(b'{"path": "/"}'), "session:1", can_ask=True)


@asynccontextmanager
async def asking(policy: ApprovalPolicy | None = None, **options: Any) -> AsyncIterator[Engine]:
    """An engine whose tool is destructive, with an operator who is there."""
    async with engine_of(works, destructive=True, **options) as engine:
        engine.policy = policy or ApprovalPolicy()
        engine.policy.seen = engine.clock.now()
        yield engine


def says(decision: str, by: str = "session:1", **more: Any) -> Answer:
    """A decision; `for_` is its `for`."""
    content = {"decision": decision, **{key.rstrip("_"): value for key, value in more.items()}}
    return Answer("accept", Raw(json.encode(content)), by)


async def asked(live: LiveCall) -> str:
    """The id of the question that is open now."""
    while not live.call.open:
        assert live.call.end is None, live.call.end
        await asyncio.sleep(0.01)
    return next(reversed(live.call.open))


async def settled(engine: Engine, live: LiveCall, answer: Answer) -> LiveCall:
    """The call after this answer, at its end."""
    engine.answer(await asked(live), answer)
    return await over(engine, live)


def told(live: LiveCall) -> tuple[str, str]:
    """The outcome, and what was said of it."""
    end = live.call.end
    assert end is not None
    return end.outcome, end.failure.message if end.failure else ""
