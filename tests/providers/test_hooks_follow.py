"""Hooks that look on: what they are told of calls that run, in order, and how little they can hurt."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.config import Hook
from afoot.core.facts import Answer, Logged
from afoot.core.ports import Report, Run
from afoot.engine.engine import Engine, Submission
from afoot.errors import ToolError
from afoot.providers import hooks_follow, hooks_run
from afoot.providers.hooks import Hooks
from afoot.providers.hooks_follow import Echoes
from afoot.testing import run
from tests.engine.double import Body, engine_of, facts, form, over

Told = list[dict[str, Any]]
ALL = ("before_call", "after_call", "on_progress", "on_question", "on_end")


@asynccontextmanager
async def watched(
    body: Body, hook: Callable[..., Any], on: Sequence[str] = ALL, **options: Any
) -> AsyncIterator[tuple[Engine, Hooks]]:
    """An engine whose tool these hooks look at."""
    patch = found(hook)
    hooks = Hooks([Hook(name, python="hook", tools=options.get("tools", "*")) for name in on])
    try:
        async with engine_of(body) as engine:
            engine.hooks = hooks if hooks.has("before_call") else None
            async with Echoes(hooks, engine):
                yield engine, hooks
    finally:
        patch.undo()


def found(hook: Callable[..., Any]) -> pytest.MonkeyPatch:
    """Whatever is named, this function is found."""
    patch = pytest.MonkeyPatch()
    find: Callable[[str], Callable[..., Any]] = lambda named: hook  # noqa: E731
    patch.setattr(hooks_run, "_found", find)
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
    monkeypatch.setattr(hooks_follow, "KEPT", 10)
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
        hooks = Hooks([Hook("on_end", python="hook", timeout_s=1000)])
        async with engine_of(body) as engine, Echoes(hooks, engine):
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
