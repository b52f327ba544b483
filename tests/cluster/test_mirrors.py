"""Two gateways of one cluster in one process: each sees, answers and cancels the calls of the other."""

import asyncio
from collections.abc import Callable

import pytest

from afoot import Gateway
from afoot.config.settings import Settings
from afoot.core.facts import Finished, Reading, Reported
from afoot.errors import AlreadyAnswered, ToolError, UnknownName
from tests.cluster.cluster_tools import WAIT_S, ask, mirror, quick, seen_by, steps, until

SettingsOf = Callable[..., Settings]


async def test_progress_and_results_cross(settings: SettingsOf) -> None:
    """D1: a follower at another gateway gets the readings, the report with data, and the end."""
    async with Gateway(steps, settings=settings()) as one, Gateway(steps, settings=settings()) as two:
        call = one.submit("steps", {"n": 5})
        await seen_by(two, call, lambda now: now.contents)
        items = list[object]()

        async def follow() -> None:
            items.extend([item async for item in two.follow(call)])

        following = asyncio.create_task(follow())
        two.cancel(call, "enough")
        await asyncio.wait_for(following, WAIT_S)
        end = items[-1]
        assert isinstance(end, Finished) and end.outcome == "cancelled"
        assert end.failure is not None and end.failure.message == "cancelled: enough"
        assert any(isinstance(item, Reported) and bytes(item.data) == b'{"at":5}' for item in items)
        assert one.engine.calls() == [] or one.engine.own_calls()[0].call.end is not None


async def test_readings_cross(settings: SettingsOf) -> None:
    """D1, P5: the newest reading is seen at another gateway, soon after it was made."""
    async with Gateway(steps, settings=settings()) as one, Gateway(steps, settings=settings()) as two:
        await until(lambda: one.member and one.member.has_others, "the other gateway")
        call = one.submit("steps", {"n": 4})
        seen = await seen_by(two, call, lambda now: now.readings >= 3)
        assert isinstance(seen.latest, Reading) and seen.latest.total == 4
        one.cancel(call)


async def test_a_question_is_answered_at_another_gateway(settings: SettingsOf) -> None:
    """D1, Q4: the answer reaches the tool; it is checked where it is given."""
    async with Gateway(ask, settings=settings()) as one, Gateway(ask, settings=settings()) as two:
        call = one.submit("ask")
        seen = await seen_by(two, call, lambda now: now.open)
        question = next(iter(seen.open))
        with pytest.raises(ToolError, match="name"):
            two.answer(question, {"other": 1})
        two.answer(question, {"name": "Ann"})
        done = await asyncio.wait_for(one.result(call), WAIT_S)
        assert done.end and done.end.result and b"hello Ann" in bytes(done.end.result.content)
        answered = next(iter(done.answers.values()))
        assert answered.answer.by == "operator"


async def test_the_first_of_two_answers_counts(settings: SettingsOf) -> None:
    """D1, A5: whichever gateway they were given at."""
    async with Gateway(ask, settings=settings()) as one, Gateway(ask, settings=settings()) as two:
        call = one.submit("ask")
        seen = await seen_by(two, call, lambda now: now.open)
        question = next(iter(seen.open))
        two.answer(question, {"name": "Ann"})
        done = await asyncio.wait_for(one.result(call), WAIT_S)
        assert done.end and done.end.result and b"hello Ann" in bytes(done.end.result.content)
        with pytest.raises((AlreadyAnswered, UnknownName)):
            two.answer(question, {"name": "Bob"})


async def test_the_result_of_a_call_that_is_over_is_had_anywhere(settings: SettingsOf) -> None:
    """D1, H1: also of one that ended at once."""
    async with Gateway(quick, settings=settings()) as one, Gateway(quick, settings=settings()) as two:
        done = await one.call("quick")
        assert done.end is not None
        await one.engine.recorder.recorded()
        there = await asyncio.wait_for(two.result(done.id), WAIT_S)
        assert there.end == done.end


async def test_a_gateway_that_comes_later_sees_what_lives(settings: SettingsOf) -> None:
    """D1, H2: the past, then the present."""
    async with Gateway(ask, settings=settings()) as one:
        call = one.submit("ask")
        await until(lambda: one.engine[call].recorded >= 3, "the question to be recorded")
        async with Gateway(ask, settings=settings()) as two:
            seen = mirror(two, call)
            assert seen is not None and seen.call.open
            two.answer(next(iter(seen.call.open)), {"name": "Bob"})
            done = await asyncio.wait_for(one.result(call), WAIT_S)
            assert done.end and done.end.outcome == "ok"


async def test_a_gateway_ends_without_the_calls_of_others(settings: SettingsOf) -> None:
    """D1: what it only mirrors runs on."""
    async with Gateway(ask, settings=settings()) as one:
        async with Gateway(ask, settings=settings()) as two:
            call = one.submit("ask")
            await seen_by(two, call, lambda now: now.open)
        assert one.engine[call].call.cancel is None and one.engine[call].call.open


async def test_no_fact_is_lost_or_repeated_between_gateways(settings: SettingsOf) -> None:
    """D1, H2: a hundred calls at each of two gateways; both then know the same history."""
    async with Gateway(quick, settings=settings()) as one, Gateway(quick, settings=settings()) as two:
        calls = await asyncio.gather(*(gateway.call("quick") for gateway in (one, two) for _ in range(100)))
        await one.engine.recorder.recorded()
        await two.engine.recorder.recorded()
        found = await one.engine.journal.since(0)
        assert [pos for pos, _ in found] == list(range(1, len(found) + 1))
        by_call: dict[str, list[int]] = {}
        for _, entry in found:
            by_call.setdefault(entry.call, []).append(entry.seq)
        assert by_call.keys() == {call.id for call in calls}
        assert all(numbers == [1, 2, 3, 4] for numbers in by_call.values())
        await until(lambda: not (one.engine.calls() or two.engine.calls()), "mirrors to go with their calls")
