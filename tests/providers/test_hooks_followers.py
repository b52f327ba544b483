"""Hooks that look on: what they are told of calls that run, in order, and how little they can hurt."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.config.settings import Hook
from afoot.core.facts import Answer, Answered, Asked, Entry, Logged, Opened, Question, Started
from afoot.core.ports import Batch, Report, Run
from afoot.engine.engine import Engine, Submission
from afoot.engine.recovery import recover
from afoot.errors import RunnerDied, ToolError
from afoot.providers import hook_runner
from afoot.providers import hooks as hooks_follow
from afoot.providers.hooks import HookNotifier, HookSet
from afoot.store.memory import MemoryJournal
from afoot.testing import run
from tests.engine.fake_engine import Bench, Body, engine_of, facts, form, offering, over

Told = list[dict[str, Any]]
ALL = ("before_call", "after_call", "on_progress", "on_question", "on_end")


@asynccontextmanager
async def watched(
    body: Body, hook: Callable[..., Any], on: Sequence[str] = ALL, **options: Any
) -> AsyncIterator[tuple[Engine, HookSet]]:
    """An engine whose tool these hooks look at."""
    patch = found(hook)
    tools = options.pop("tools", "*")
    hooks = HookSet([Hook(name, python="hook", tools=tools) for name in on])
    try:
        async with engine_of(body, **options) as engine:
            engine.hooks = hooks if hooks.has("before_call") else None
            engine.questions.hooks = hooks if hooks.has("before_question") else None
            async with HookNotifier(hooks, engine):
                yield engine, hooks
    finally:
        patch.undo()


def found(hook: Callable[..., Any]) -> pytest.MonkeyPatch:
    """Whatever is named, this function is found."""
    patch = pytest.MonkeyPatch()
    find: Callable[[str], Callable[..., Any]] = lambda named: hook  # noqa: E731
    patch.setattr(hook_runner, "_find_function", find)
    return patch


def listener(told: Told) -> Callable[[dict[str, Any]], Any]:
    """A hook that remembers what it is told."""

    async def hook(event: dict[str, Any]) -> None:
        told.append(event)

    return hook


def named(told: Told) -> list[str]:
    """Which hooks were told, in order."""
    return [event["hook"] for event in told]


def test_every_hook_is_told_its_part_of_a_call() -> None:
    """K1: before, progress, question, after and end, each with what it needs."""
    told = Told()

    async def body(run: Run) -> str:
        run.report(1, 2, "half")
        await asyncio.sleep(2)
        await run.ask(form("name"))
        return "done"

    async def main() -> None:
        async with watched(body, listener(told)) as (engine, _):
            live = engine.submit(Submission("tool", Raw(b'{"a":1}')))
            await asyncio.sleep(3)
            engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b"{}")))
            await over(engine, live)

    run(main())
    assert named(told) == ["before_call", "on_progress", "on_question", "after_call", "on_end"]
    assert {event["call"]["tool"] for event in told} == {"tool"} and told[0]["arguments"] == {"a": 1}
    assert (told[1]["progress"], told[1]["total"], told[1]["message"]) == (1, 2, "half")
    assert told[2]["question"]["message"] == "sure?"
    assert (told[3]["outcome"], told[3]["duration_s"]) == ("ok", 3.0)
    assert told[4]["result"]["content"] == [{"type": "text", "text": "done"}]


def test_progress_is_told_once_a_second_and_its_last_always() -> None:
    """K1, P4: a call that reports a hundred times a second does not start a hundred processes."""
    told = Told()

    async def body(run: Run) -> str:
        for n in range(350):
            run.report(n, None, None)
            await asyncio.sleep(0.01)
        return "done"

    async def main() -> None:
        async with watched(body, listener(told), ["on_progress"]) as (engine, _):
            await over(engine, engine.submit(Submission("tool")))

    run(main())
    assert (told[0]["progress"], told[-1]["progress"], len(told)) == (0, 349, 5)


def test_content_is_progress_too() -> None:
    """K1: a report with data has numbers like any other."""
    told = Told()

    async def body(run: Run) -> str:
        run.content(Report(3.0, 4.0, "three", data=Raw(b'{"x":1}')))
        return "done"

    async def main() -> None:
        async with watched(body, listener(told), ["on_progress"]) as (engine, _):
            await over(engine, engine.submit(Submission("tool")))

    run(main())
    assert [(event["progress"], event["total"]) for event in told] == [(3.0, 4.0)]


def test_only_a_call_that_ran_has_an_after() -> None:
    """K1: an end is told of every call, the refused and the cancelled too."""
    told = Told()

    async def body(run: Run) -> str:
        await asyncio.sleep(100)
        return "done"

    async def hook(event: dict[str, Any]) -> object:
        told.append(event)
        if event["arguments"].get("refuse"):
            return {"refuse": "no"}
        return None

    async def main() -> None:
        async with watched(body, hook) as (engine, _):
            refused = await over(engine, engine.submit(Submission("tool", Raw(b'{"refuse":1}'))))
            assert refused.call.end and refused.call.end.outcome == "refused"
            ran = engine.submit(Submission("tool"))
            await asyncio.sleep(1)
            engine.cancel(ran, "caller", "enough")
            await over(engine, ran)

    run(main())
    assert named(told) == ["before_call", "on_end", "before_call", "after_call", "on_end"]
    assert [event["outcome"] for event in told if "outcome" in event] == ["refused", "cancelled", "cancelled"]
    assert told[1]["failure"]["message"] == "tool was not run: a hook refused it: no"


def test_a_failing_hook_is_told_in_the_log_of_its_call() -> None:
    """K1: one that failed before the start is told once the call runs, which takes no harm."""

    async def body(run: Run) -> str:
        await asyncio.sleep(1)
        run.report(1, None, None)
        await asyncio.sleep(1)
        return "done"

    async def hook(event: dict[str, Any]) -> None:
        raise ToolError.internal("broken")

    async def main() -> None:
        async with watched(body, hook) as (engine, hooks):
            live = await over(engine, engine.submit(Submission("tool")))
            await asyncio.sleep(1)
            lines = [(fact.text, fact.level, fact.logger) for fact in facts(live, Logged)]
            assert [line[0] for line in lines] == [
                "before_call hook hook failed: ToolError: broken",
                "on_progress hook hook failed: ToolError: broken",
            ]
            assert lines[0][1:] == ("warning", "hooks")
            assert live.call.end and live.call.end.outcome == "ok"
            assert hooks.counted == {"failed": 4}

    run(main())


def test_a_slow_hook_delays_nobody_and_loses_the_oldest_which_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K1, P3: it has a bounded line of its own; four of its runs at once, one at a time of each call."""
    monkeypatch.setattr(hooks_follow, "MAX_QUEUED", 10)
    monkeypatch.setattr(hooks_follow, "DRAIN_S", 1000.0)
    told, at_once = list[str](), [0, 0]

    async def body(run: Run) -> str:
        return "done"

    async def hook(event: dict[str, Any]) -> None:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(4)
        told.append(event["call"]["id"])
        at_once[0] -= 1

    async def main() -> list[str]:
        async with watched(body, hook, ["on_end"]) as (engine, hooks):
            lives = [engine.submit(Submission("tool")) for _ in range(30)]
            began = asyncio.get_running_loop().time()
            for live in lives:
                await over(engine, live)
            assert asyncio.get_running_loop().time() == began
        assert hooks.counted == {"run": 14, "dropped": 16}
        return [live.call.id for live in lives]

    ids = run(main())
    assert sorted(told) == sorted(ids[:4] + ids[20:]) and at_once[1] == 4


def test_large_events_that_wait_for_a_slow_hook_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1, H8: a thousand calls with large arguments and results would fill the memory."""
    monkeypatch.setattr(hooks_follow, "MAX_QUEUED_BYTES", 5_000)
    monkeypatch.setattr(hooks_follow, "DRAIN_S", 1000.0)
    told = list[str]()

    async def body(run: Run) -> str:
        return "x" * 500

    async def hook(event: dict[str, Any]) -> None:
        await asyncio.sleep(4)
        told.append(event["call"]["id"])

    async def main() -> list[str]:
        async with watched(body, hook, ["on_end"]) as (engine, hooks):
            large = Raw(json.encode({"text": "y" * 1_000}))
            lives = [engine.submit(Submission("tool", large)) for _ in range(20)]
            for live in lives:
                await over(engine, live)
        assert hooks.counted == {"run": 7, "dropped": 13}
        return [live.call.id for live in lives]

    ids = run(main())
    assert sorted(told) == sorted(ids[:4] + ids[17:])


def test_a_tool_that_asks_without_end_starts_only_so_many_hooks() -> None:
    """K1, H8: each question may start a program, and a server may ask 10,000 at once."""
    asked = list[str]()

    async def body(run: Run) -> str:
        questions = (run.ask(form(f"name{number}", {"type": "object"})) for number in range(50))
        given = await asyncio.gather(*questions, return_exceptions=True)
        return str(sum(isinstance(one, Answer) for one in given))

    async def hook(event: dict[str, Any]) -> dict[str, Any]:
        asked.append(event["question"]["key"])
        await asyncio.sleep(1)
        return {"action": "decline"}

    async def main() -> None:
        async with watched(body, hook, ["before_question"]) as (engine, _):
            engine.questions.max_questions = 10
            live = await over(engine, engine.submit(Submission("tool")))
            assert live.call.end and live.call.end.outcome == "ok" and len(live.call.questions) == 10

    run(main())
    assert len(asked) == 10


def test_what_a_hook_is_told_of_one_call_comes_in_order() -> None:
    """K1: a slow hook gets the next event of a call when it is done with the last."""
    told = list[tuple[str, float]]()

    async def body(run: Run) -> str:
        for n in range(4):
            run.report(n, None, None)
            await asyncio.sleep(1)
        return "done"

    async def hook(event: dict[str, Any]) -> None:
        await asyncio.sleep(3 - event["progress"])
        told.append((event["call"]["id"], event["progress"]))

    async def main() -> None:
        async with watched(body, hook, ["on_progress"]) as (engine, _):
            for live in [engine.submit(Submission("tool")) for _ in range(3)]:
                await over(engine, live)

    run(main())
    assert all([n for of, n in told if of == call] == [0, 1, 2, 3] for call, _ in told)


def test_closing_waits_a_moment_for_hooks_and_then_ends_them() -> None:
    """K1: what happened last is still told; what hangs is not waited for."""
    told, ended = list[str](), list[str]()

    async def body(run: Run) -> str:
        return "done"

    async def hook(event: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(1 if not told else 1000)
            told.append(event["outcome"])
        except asyncio.CancelledError:
            ended.append(event["hook"])
            raise

    async def main() -> None:
        hooks = HookSet([Hook("on_end", python="hook", timeout_s=1000)])
        async with engine_of(body) as engine, HookNotifier(hooks, engine):
            for _ in range(2):
                await over(engine, engine.submit(Submission("tool")))
                await asyncio.sleep(2)
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() == began + hooks_follow.DRAIN_S
        assert hooks.counted == {"run": 1, "dropped": 1}

    patch = found(hook)
    run(main())
    patch.undo()
    assert (told, ended) == (["ok"], ["on_end"])


def test_hooks_for_other_tools_are_told_nothing() -> None:
    """K1: a pattern says whose."""
    told = Told()

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        return "done"

    async def main() -> None:
        async with watched(body, listener(told), tools="bench/other*") as (engine, _):
            await over(engine, engine.submit(Submission("tool")))

    run(main())
    assert told == []


def test_nothing_is_left_of_a_call_that_is_over() -> None:
    """T4: its pace, its notes and its follower go with it."""

    async def body(run: Run) -> str:
        run.report(1, 2, None)
        run.report(2, 2, None)
        return "done"

    async def main() -> None:
        async with watched(body, listener([])) as (engine, _):
            [echoes] = engine.watchers
            live = await over(engine, engine.submit(Submission("tool")))
            await asyncio.sleep(1)
            assert not live.followers and not live.watchers
            assert not vars(echoes)["_paces"] and not vars(echoes)["_notes"]
        assert not engine.watchers

    run(main())


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ({"action": "accept", "content": {"name": "Ada"}}, "accept Ada"),
        ({"action": "decline"}, "decline"),
        (None, "accept Bob"),
        ({"action": "accept", "content": {"name": 1}}, "accept Bob"),
        ({"content": {"name": "Ada"}}, "accept Bob"),
        ({"refuse": "no"}, "accept Bob"),
    ],
)
def test_a_hook_may_answer_a_question_before_a_person_is_asked(said: object, result: str) -> None:
    """K1, Q3: what it leaves, or answers wrongly, is asked of a person; the history says who answered."""
    schema = Raw(b'{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}')
    told = Told()

    async def body(run: Run) -> str:
        answer = await run.ask(Question("", "who", "form", "Who?", schema))
        name = json.decode(answer.content)["name"] if answer.content else ""
        return f"{answer.action} {name}".strip()

    async def hook(event: dict[str, Any]) -> object:
        told.append(event)
        return said if event["hook"] == "before_question" else None

    async def main() -> None:
        async with watched(body, hook, ["before_question", "on_question"]) as (engine, hooks):
            live = engine.submit(Submission("tool"))
            await asyncio.sleep(1)
            if "Bob" in result:
                engine.answer(f"{live.call.id}.1", Answer("accept", Raw(b'{"name":"Bob"}'), "operator"))
            await over(engine, live)
            assert live.call.end is not None and live.call.end.result is not None
            assert json.decode(live.call.end.result.content)[0]["text"] == result
            [answered] = facts(live, Answered)
            assert answered.answer.by == ("operator" if "Bob" in result else "hook")
            assert answered.answer.who == ("" if "Bob" in result else "before_question hook hook")
            assert len(facts(live, Asked)) == 1
            assert named(told) == ["before_question"] + ["on_question"] * ("Bob" in result)
            assert told[0]["question"]["message"] == "Who?"

    run(main())


def test_no_hook_approves_a_call() -> None:
    """K1, A1: approval is a person's; a hook before the call may refuse it."""
    told = Told()

    async def body(run: Run) -> str:
        return "ran"

    async def main() -> None:
        async with watched(body, listener(told), ["before_question"], approval="ask") as (engine, _):
            live = engine.submit(Submission("tool", can_ask=True))
            await asyncio.sleep(1)
            assert live.call.open and not told
            engine.answer(f"{live.call.id}.1", Answer("decline", by="operator"))
            await over(engine, live)

    run(main())


def test_a_tool_that_is_begun_again_is_told_with_its_reason() -> None:
    """K1, U4: the attempt that begins, and what ended the one before."""
    told = Told()

    async def body(run: Run) -> str:
        if run.attempt == 1:
            raise RunnerDied("server tickets exited with 1")
        return "done"

    async def main() -> None:
        async with watched(body, listener(told), ["on_recovery", "on_end"], idempotent=True) as (engine, _):
            await over(engine, engine.submit(Submission("tool")))

    run(main())
    assert named(told) == ["on_recovery", "on_end"]
    assert {key: told[0][key] for key in ("what", "why", "attempt")} == {
        "what": "started again", "why": "server tickets exited with 1", "attempt": 2,
    }  # fmt: skip


def test_a_call_of_a_dead_gateway_is_told() -> None:
    """K1, H4: that it was found, and that it goes on."""
    told = Told()

    async def body(run: Run) -> str:
        return "done"

    async def main() -> None:
        bench, journal = Bench(), MemoryJournal()
        bench.add(body, idempotent=True)
        hooks = HookSet([Hook("on_recovery", python="hook")])
        now = time.time()
        opened = Opened(
            now, "tool", "bench", "operator", Raw(b"{}"), idempotent=True, digest="digest of tool", task=True
        )
        journal.write(Batch([Entry("c", 1, opened), Entry("c", 2, Started(now))]))
        async with offering(bench, journal=journal) as engine, HookNotifier(hooks, engine):
            await recover(engine)
            await over(engine, engine["c"])

    patch = found(listener(told))
    try:
        run(main())
    finally:
        patch.undo()
    assert [(event["what"], event["attempt"]) for event in told] == [("interrupted", 1), ("started again", 2)]
    assert {event["why"] for event in told} == {"the gateway died"}


def test_what_a_hook_says_of_a_call_whose_gateway_died_is_kept_until_it_runs_again() -> None:
    """K1, H4: it had started, but is queued now, and a queued call has no log."""

    async def body(run: Run) -> str:
        await run.ask(form("name"))
        await asyncio.sleep(1)
        return "done"

    async def main() -> None:
        bench, journal, hooks = Bench(), MemoryJournal(), HookSet([])
        bench.add(body, idempotent=True)
        now = time.time()
        opened = Opened(
            now, "tool", "bench", "operator", Raw(b"{}"), idempotent=True, digest="digest of tool"
        )
        told = opened, Started(now), Asked(now, replace(form("name"), id="c.1"))
        journal.write(Batch([Entry("c", seq, fact) for seq, fact in enumerate(told, 1)]))
        async with offering(bench, journal=journal) as engine, HookNotifier(hooks, engine):
            await recover(engine)
            live = engine["c"]
            hooks.log_to_call("c", "said by a hook")
            assert not facts(live, Logged)
            engine.answer("c.1", Answer("accept", Raw(b"{}")))
            await over(engine, live)
            assert [fact.text for fact in facts(live, Logged)] == ["said by a hook"]

    run(main())
