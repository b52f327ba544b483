"""Always: what is asked once, for whom, for what and for how long."""

import asyncio

import pytest
from msgspec import Raw

from afoot.core.call import Call
from afoot.core.ports import Tool
from afoot.engine.engine import Submission
from tests.engine.approval.reviewers import ASKS, asked, asking, says, settled
from tests.engine.fake_engine import Bench, offering, over, works


@pytest.mark.parametrize("scope", ["arguments", "tool", "server"])
async def test_always_is_asked_once(scope: str) -> None:
    """A2, A3: by scope; the next call says that the allowlist let it through."""
    async with asking() as engine:
        await settled(engine, engine.submit(ASKS), says("always", scope=scope))
        again = await over(engine, engine.submit(ASKS))
        other = engine.submit(Submission("tool", Raw(b'{"path": "/a"}'), "session:1", can_ask=True))
        stranger = engine.submit(Submission("tool", Raw(b'{"path": "/"}'), "session:2", can_ask=True))
        assert again.call.approved == "allowlist" and not again.call.questions
        assert await asked(stranger)
        if scope == "arguments":
            assert await asked(other)
        else:
            assert (await over(engine, other)).call.approved == "allowlist"


async def test_a_callers_for_ever_is_for_its_connection() -> None:
    """A5: only the operator's word outlives it."""
    async with asking() as engine:
        await settled(engine, engine.submit(ASKS), says("always", for_="ever"))
        [one] = engine.policy.entries
        assert (one.caller, one.by) == ("session:1", "session:1")
        engine.policy.revoke(one.id)
        await settled(engine, engine.submit(ASKS), says("always", "operator", for_="ever"))
        [one] = engine.policy.entries
        assert (one.caller, one.by) == ("", "operator")


async def test_an_allowed_tool_that_changes_is_asked_again() -> None:
    """A4: bound to the definition."""
    bench = Bench()
    bench.add(works, destructive=True)
    async with offering(bench) as engine:
        await settled(engine, engine.submit(ASKS), says("always", "operator", for_="ever"))
        assert (await over(engine, engine.submit(ASKS))).call.approved == "allowlist"
        bench.add(works, destructive=True, digest="another")
        engine.catalog.put(bench)
        live = engine.submit(ASKS)
        question = live.call.questions[await asked(live)]
        assert b"has changed since it was allowed" in bytes(question.body)


async def test_a_time_runs_out() -> None:
    """A2: an hour is an hour."""
    async with asking() as engine:
        await settled(engine, engine.submit(ASKS), says("always", "operator", for_=3600))
        await asyncio.sleep(3599)
        assert (await over(engine, engine.submit(ASKS))).call.approved == "allowlist"
        await asyncio.sleep(1)
        assert await asked(engine.submit(ASKS))


class Changing:
    """A hook that sends every call elsewhere."""

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        """Other arguments."""
        return Raw(b'{"path": "/etc"}')


async def test_what_allows_some_arguments_does_not_allow_what_a_hook_makes_of_them() -> None:
    """A6, K1: approved is what runs."""
    async with asking() as engine:
        await settled(engine, engine.submit(ASKS), says("always", scope="arguments"))
        engine.hooks = Changing()
        live = engine.submit(ASKS)
        question = live.call.questions[await asked(live)]
        assert "/etc" in question.message
        await settled(engine, live, says("run"))
        assert live.call.approved == "caller"
        await settled(engine, engine.submit(ASKS), says("always", scope="tool"))
        assert (await over(engine, engine.submit(ASKS))).call.approved == "allowlist"


async def test_always_from_an_anonymous_caller_holds_for_that_call_alone() -> None:
    """S6, A5: callers without a name are not told apart: one would decide for all."""
    anonymous = Submission("tool", Raw(b'{"path": "/"}'), "local", can_ask=True)
    async with asking() as engine:
        live = await settled(engine, engine.submit(anonymous), says("always", "local"))
        assert live.call.end and live.call.end.outcome == "ok" and live.call.approved == "caller"
        assert engine.policy.entries == [] and await asked(engine.submit(anonymous))
        await settled(engine, engine.submit(anonymous), says("always", "operator"))
        assert (await over(engine, engine.submit(anonymous))).call.approved == "allowlist"


@pytest.mark.parametrize(("by", "approved"), [("operator", "user"), ("session:1", "caller")])
async def test_only_the_operators_yes_is_a_users(by: str, approved: str) -> None:
    """S6, A3: a caller's yes may come from its program alone, and the history says whose it was."""
    async with asking() as engine:
        live = await settled(engine, engine.submit(ASKS), says("run", by))
        assert live.call.approved == approved
