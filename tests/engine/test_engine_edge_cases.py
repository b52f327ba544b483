"""What goes wrong seldom: a gateway that dies before a yes, forms that no checker reads, weights past all."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.core.call import Call
from afoot.core.facts import Answer, Entry, Fact, Finished, Limits, Logged
from afoot.core.ports import Batch, CallQuery, Run, RunnerStart, Tool
from afoot.engine.approval.allowlist import allowlist_entry
from afoot.engine.approval.policy import ApprovalPolicy
from afoot.engine.approval.question import Decision
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.questions import check_answer
from afoot.engine.recovery import load_call, recover
from afoot.errors import RunnerDied, ToolError
from afoot.store.memory import MemoryJournal
from afoot.store.sqlite import SqliteJournal
from afoot.wire import results
from afoot.wire.jsonrpc import Fault
from tests.engine.approval.reviewers import asked, says
from tests.engine.fake_engine import Bench, engine_of, form, offering, over, took, works

ASKED = Raw(b'{"path": "/tmp/a"}')
OTHER = Raw(b'{"path": "/"}')


class Hook:
    """One who always wants other arguments, or nothing."""

    def __init__(self, wants: Raw | None) -> None:
        self.wants = wants

    async def before(self, call: Call, tool: Tool) -> Raw | None:
        return self.wants


def dangerous() -> Bench:
    """A tool that is asked for before it runs."""
    bench = Bench()
    bench.add(works, destructive=True)
    return bench


async def died(hook: Hook, policy: ApprovalPolicy) -> tuple[MemoryJournal, str]:
    """The journal of a gateway that was killed while a call waited for its yes."""
    journal = MemoryJournal()
    async with offering(dangerous()) as engine:
        engine.policy, engine.hooks = policy, hook
        policy.seen = engine.clock.now()
        live = engine.submit(Submission("tool", ASKED, "session:1", can_ask=True))
        await asked(live)
        await engine.recorder.recorded()
        journal.write(Batch(entries=await engine.journal.facts(live.call.id)))
    return journal, live.call.id


async def next_one(journal: MemoryJournal, hook: Hook | None, call_id: str) -> tuple[Bench, Call]:
    """The next gateway, with other hooks: what ran there once the operator said yes."""
    bench, catalog = dangerous(), Catalog()
    catalog.put(bench)
    async with Engine(journal, catalog) as engine:
        engine.hooks = hook
        await recover(engine)
        await asyncio.sleep(1)
        live = engine[call_id]
        assert live.call.started is None and live.call.open, "nobody has said yes"
        engine.answer(await asked(live), says("run", "operator"))
        await over(engine, live)
    return bench, live.call


async def test_a_hook_changes_nothing_once_it_was_asked_for() -> None:
    """A6, K1, H4: the yes is for the arguments that were shown; a new gateway's hooks come too late."""
    journal, call_id = await died(Hook(None), ApprovalPolicy())
    bench, call = await next_one(journal, Hook(OTHER), call_id)
    assert call.arguments == ASKED and bench.prepared == [bytes(ASKED)]
    assert call.end is not None and call.end.outcome == "ok"


async def test_what_was_changed_by_a_hook_waits_for_its_yes_though_the_hook_is_gone() -> None:
    """A6, H4: the allowlist had only the caller's own arguments, so after a restart it is asked for too."""
    policy, [tool] = ApprovalPolicy(), dangerous().tools()
    said = Decision("always", scope="arguments", lasts="ever")
    policy.allow(allowlist_entry(said, [tool], Answer(by="operator"), "", ASKED, 1.0))
    journal, call_id = await died(Hook(OTHER), policy)
    bench, call = await next_one(journal, None, call_id)
    assert call.opened.approval == "allowlist" and call.approved == "user"
    assert bench.prepared == [bytes(OTHER)]


async def test_two_who_wait_for_the_last_call_are_both_told() -> None:
    """X1: whoever else waits for a quiet gateway, its draining ends with the last call."""
    async with engine_of(lambda run: asyncio.sleep(5)) as engine:
        engine.submit(Submission("tool"))
        began = engine.clock.now()
        waits = [asyncio.create_task(engine.idle(within_s)) for within_s in (60, 2, 60)]
        await asyncio.gather(*waits)
        assert engine.clock.now() - began == pytest.approx(5)
        await engine.idle(60)
        assert engine.clock.now() - began == pytest.approx(5)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"properties": {"n": {"pattern": "("}}},
        [],
    ],
)
async def test_a_form_that_no_checker_reads_can_be_answered(schema: Any) -> None:
    """Q2: a server's own mistake; the answer is passed on, and nothing is fetched."""

    async def body(run: Run) -> str:
        return bytes((await run.ask(form("k", schema))).content).decode()

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        engine.answer(await asked(live), Answer("accept", Raw(b'{"n": "x"}')))
        assert (await over(engine, live)).call.end is not None
        assert live.call.end and live.call.end.outcome == "ok"


async def test_weights_past_all_numbers_leave_numbers() -> None:
    """P8, P4: what callers say of their calls makes no progress that cannot be written."""

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        await asyncio.sleep(1)
        return "done"

    bench = Bench()
    bench.add(lambda run: asyncio.sleep(3), "above")
    bench.add(body)
    async with offering(bench) as engine:
        above = engine.submit(Submission("above"))
        await asyncio.sleep(0.1)
        for _ in range(3):
            engine.submit(Submission("tool", parent=above.call.id, weight=1.7e308))
        await asyncio.sleep(2)
        latest = above.call.latest
        assert latest is not None and b"null" not in json.encode([latest.progress or 0, latest.total or 0])
        await over(engine, above)


async def test_an_end_is_told_though_much_was_said_after_it() -> None:
    """H2, C7: a call whose end has fallen out of what is kept in memory still has one for who follows."""
    journal = MemoryJournal()
    async with engine_of(works, journal=journal) as engine:
        done = await over(engine, engine.submit(Submission("tool")))
        facts: list[Fact] = [Logged(2.0, str(n)) for n in range(2000)]
        late = [Entry(done.call.id, done.call.seq + n, fact) for n, fact in enumerate(facts, 1)]
        journal.write(Batch(entries=late))
        live = await load_call(engine, done.call.id)
        with engine.follow(live, lambda: None, None) as follower:
            follower.seq = 0
            assert any(type(fact) is Finished for fact in follower.take().items)


async def test_what_a_tool_prints_for_ever_after_its_end_fills_no_history() -> None:
    """C7, H1: a tool that does not stop prints on; some of it is kept, and the end is not pushed out."""

    async def body(run: Run) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            for n in range(3000):
                run.log(f"line {n}", "info", "print")

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(Submission("tool", ceiling_s=1.0)))
        kinds = [type(entry.fact) for entry in await engine.journal.facts(live.call.id)]
        assert 100 <= kinds.count(Logged) <= 600 and Finished in {type(one.fact) for one in live.backlog}


async def test_a_number_past_what_a_file_keeps_hurts_no_history(tmp_path: Path) -> None:
    """P4, H1: a tool may count in whole numbers of any size; the list of calls has them as the wire has."""

    async def body(run: Run) -> str:
        run.report(1, 10**30, None)
        return "done"

    async with (
        SqliteJournal(tmp_path / "calls.db") as journal,
        engine_of(body, journal=journal) as engine,
    ):
        live = await over(engine, engine.submit(Submission("tool")))
        [row] = await journal.find(CallQuery())
        assert (row.id, row.total) == (live.call.id, 1e30) and engine.recorder.degraded is None


def test_an_answer_that_is_nested_too_deep_does_not_fit() -> None:
    """E4, Q2: how deep is too deep depends on who reads; nobody fails on it."""
    deep = Raw(b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(ToolError, match="nested too deep"):
        check_answer(form("k"), Answer("accept", deep))
    with pytest.raises(Fault):
        results.read_answer(form("k"), Raw(b'{"action":"accept","content":' + bytes(deep) + b"}"), "me")
    assert (
        results.read_early_answer(Raw(b'{"action":"accept","content":' + bytes(deep) + b"}"), "me").action
        == "accept"
    )


async def test_a_server_that_takes_its_time_to_come_back_is_no_silence_of_the_tool() -> None:
    """C1, U4: starting has a clock of its own, the second time too; the idle limit is for what runs."""

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        await asyncio.sleep(5)
        if run.attempt == 1:
            raise RunnerDied("server files was killed")
        return "done"

    async def slow_start() -> None:
        await asyncio.sleep(20)

    bench = Bench()
    bench.add(body, read_only=True, limits=Limits(idle_s=10, start_s=30))
    bench.starting = lambda tool, caller: RunnerStart("starting server files", slow_start)
    async with offering(bench) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
        assert live.call.end is not None and live.call.end.outcome == "ok"
        assert took(live) == 30 and live.call.attempt == 2
