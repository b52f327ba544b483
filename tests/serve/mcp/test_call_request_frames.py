"""One request that follows one call: progress, data, partial results, logs and stages as they are sent."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.core.facts import Reported
from afoot.core.ports import Report, Run
from afoot.errors import ToolError
from tests.engine.fake_engine import form, partial_report
from tests.serve.fake_gateway import YES, Tape, begin, call_request, faked, replies, site_of, source, wanted


@faked
@pytest.mark.parametrize("token", ["t", "", 0, 7])
async def test_a_token_is_used_as_it_is_and_echoed(token: str | int) -> None:
    """T1, T3, P6: on every notification of the call, before the result, and in its `_meta`."""

    async def tool(run: Run) -> str:
        run.report(1, 2, "half")
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token=token))
    assert [(params["progressToken"], params["message"]) for params in tape.progress] == [(token, "half")]
    assert tape.progress[0]["_meta"]["dev.afoot/call"] == tape.result["_meta"]["dev.afoot/call"]
    assert tape.result["_meta"]["progressToken"] == token


@faked
@pytest.mark.parametrize(
    ("level", "heard"), [(None, []), ("warning", ["bad"]), ("debug", ["fine", "good", "bad"]), ("loud", [])]
)
async def test_logs_go_only_to_who_asked_and_from_its_level_on(level: str | None, heard: list[str]) -> None:
    """C8: `ctx.log`; a level that nobody knows means none."""

    async def tool(run: Run) -> str:
        run.log("fine", "debug", "")
        run.log("good", "info", "")
        run.log("bad", "error", "mine")
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(level=level))
    said = [sent["params"] for _, sent in tape.of("notifications/message")]
    assert [params["data"] for params in said] == heard
    assert [params["logger"] for params in said][-1:] == ["mine"][: len(said)]


@faked
@pytest.mark.parametrize("partial", [False, True])
async def test_data_goes_beside_the_message_and_partial_results_to_who_wants_them(partial: bool) -> None:
    """P7, P11, P12: in `_meta`, never in the result's content."""

    async def tool(run: Run) -> str:
        run.content(Report(1, 2, "half", data=Raw(b'{"phase":"one"}')))
        run.content(partial_report("so far"))
        run.content(Report(checkpoint=Raw(b"1")))
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token="t", partial=partial))
    metas = [params["_meta"] for params in tape.progress]
    assert (
        metas[0]["dev.afoot/progress"] == {"data": {"phase": "one"}} and "dev.afoot/partial" not in metas[0]
    )
    assert [meta["dev.afoot/partial"] for meta in metas[1:]] == [
        [{"type": "text", "text": "so far"}]
    ] * partial
    assert [item["text"] for item in tape.result["content"]] == ["done"]


@faked
async def test_a_reader_too_slow_for_content_gets_a_marked_gap() -> None:
    """P5, P7: once, with the number of facts it missed; the newest thousand come in order."""

    async def tool(run: Run) -> str:
        for n in range(3):
            run.content(Report(data=Raw(json.encode(n))))
            await asyncio.sleep(1)
        for n in range(2000):
            run.content(Report(data=Raw(json.encode(n))))
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token="t"), Tape(slow_s=10))
    metas = [params["_meta"]["dev.afoot/progress"] for params in tape.progress]
    missed = [meta["missed"] for meta in metas if "missed" in meta]
    assert len(missed) == 1 and sum(missed) + len(metas) >= 2003
    numbers = [meta["data"] for meta in metas[1:]]
    assert numbers == sorted(numbers) and numbers[-1] == 1999


async def two_thousand(run: Run) -> str:
    """A tool that sends two thousand reports with data in a second."""
    for n in range(2000):
        run.content(Report(n + 1, 2000, data=Raw(json.encode(n))))
        await asyncio.sleep(0.0005)
    return "done"


@faked
async def test_reports_with_data_are_all_sent_in_few_writes() -> None:
    """P14: in order, and at most `progress_hz` times a second."""
    async with site_of(two_thousand, settings={"data_hz": 0}) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    data = [params["_meta"]["dev.afoot/progress"]["data"] for params in tape.progress]
    assert data == list(range(2000))
    assert 15 <= len({at for at, _ in tape.frames}) <= 22


@faked
async def test_past_a_bound_the_caller_gets_a_marked_gap() -> None:
    """P14: the newest always comes, what is left out is counted, and the history has all."""
    async with site_of(two_thousand, settings={"data_hz": 100}) as gateway:
        engine = gateway.engine
        tape = await call_request(gateway, wanted(token="t"))
        metas = [params["_meta"]["dev.afoot/progress"] for params in tape.progress]
        call = tape.progress[0]["_meta"]["dev.afoot/call"]
        facts = [entry.fact for entry in await engine.journal.facts(call)]
    assert 100 <= len(metas) <= 122
    assert len(metas) + sum(meta.get("missed", 0) for meta in metas) == 2000
    assert [meta["data"] for meta in metas] == sorted(meta["data"] for meta in metas)
    assert tape.numbers[-1] == (2000, 2000)
    assert sum(type(fact) is Reported for fact in facts) == 2000


@faked
async def test_partial_results_are_never_left_out() -> None:
    """P11, P14: who asked for them gets all of them."""

    async def tool(run: Run) -> str:
        for n in range(300):
            run.content(Report(partial=Raw(json.encode([{"type": "text", "text": str(n)}]))))
        return "done"

    async with site_of(tool, settings={"data_hz": 10}) as gateway:
        tape = await call_request(gateway, wanted(token="t", partial=True))
    assert [params["_meta"]["dev.afoot/partial"][0]["text"] for params in tape.progress] == [
        str(n) for n in range(300)
    ]


@faked
async def test_a_slow_reader_gets_the_newest_value_and_slows_nobody() -> None:
    """P5, P4: the tool runs at full speed; the last value and the result come when there is room."""

    async def tool(run: Run) -> str:
        for n in range(1000):
            run.report(n + 1, 1000, None)
            await asyncio.sleep(0.01)
        return "done"

    async with site_of(tool) as gateway:
        task = begin(gateway, wanted(token="t"), Tape(slow_s=60))
        await asyncio.sleep(11)
        assert gateway.engine.calls() == [], "the tool has long finished"
        tape = await task
    assert tape.numbers == [(1, 1000), (1000, 1000)] and tape.result["content"][0]["text"] == "done"


@faked
async def test_a_reader_is_sent_at_most_so_many_values_a_second_first_and_last_always() -> None:
    """P4: the newest wins; nothing follows the end."""

    async def tool(run: Run) -> str:
        for n in range(101):
            run.report(n, 100, None)
            await asyncio.sleep(0.01 if n < 100 else 0)
        return "done"

    async with site_of(tool) as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.numbers[0] == (0, 100) and tape.numbers[-1] == (100, 100)
    assert 20 <= len(tape.numbers) <= 22


STAGES = [(0, 100), (25, 100), (50, 100), (100, 100)]


@faked
@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("well", STAGES),
        ("badly", STAGES[:3]),
        ("reporting", [*STAGES[:3], (87.5, 100), (100, 100)]),
        ("with data", [*STAGES[:3], (87.5, 100), (100, 100)]),
        ("reporting all, badly", [*STAGES[:3], (99, 100)]),
    ],
)
async def test_the_stages_of_a_call(how: str, shown: list[Any]) -> None:
    """T5: by the engine; the tool's own numbers fill the third one, and a failed call never shows 100."""

    async def tool(run: Run) -> str:
        await asyncio.sleep(1)
        if how == "badly":
            raise ToolError.internal("no")
        if how == "reporting":
            run.report(60, 80, None)
        if how == "reporting all, badly":
            run.report(80, 80, None)
            raise ToolError.internal("no")
        if how == "with data":
            run.content(Report(60, 80, data=Raw(b"1")))
        return "done"

    async with site_of(tool, lifecycle="stages") as gateway:
        tape = await call_request(gateway, wanted(token="t"))
        without = await call_request(gateway, wanted())
    assert tape.numbers == shown and without.frames == []
    spoke = [source(sent) for _, sent in tape.frames]
    assert spoke == ["tool" if number in (87.5, 99) else "engine" for number, _ in shown]
    own = [
        one["_meta"]["dev.afoot/progress"]["total"] for one in tape.progress if one["progress"] in (87.5, 99)
    ]
    assert own == [80] * spoke.count("tool")


@faked
async def test_the_numbers_of_a_tool_rise_through_its_stage() -> None:
    """T5: they are not stuck at 50; numbers without a total, and words, change nothing."""

    async def tool(run: Run) -> str:
        for number in range(1, 6):
            await asyncio.sleep(1)
            run.report(number, 5, f"step {number}")
        await asyncio.sleep(1)
        run.report(7, None, "more")
        return "done"

    async with site_of(tool, lifecycle="stages") as gateway:
        tape = await call_request(gateway, wanted(token="t"))
    assert tape.numbers == [
        *STAGES[:3], (60, 100), (70, 100), (80, 100), (90, 100), (99, 100), (99.000001, 100), (100, 100),
    ]  # fmt: skip
    assert [one["message"] for one in tape.progress[3:]] == [
        "step 1", "step 2", "step 3", "step 4", "step 5", "more", "completed",
    ]  # fmt: skip


@faked
async def test_stages_go_on_after_a_round() -> None:
    """T5, P4: the retry goes on in the stage where the call was."""

    async def tool(run: Run) -> str:
        run.report(60, 80, None)
        await run.ask(form("sure"))
        return "done"

    async with site_of(tool, lifecycle="stages") as gateway:
        first = await call_request(gateway, wanted(token="t"))
        second = await call_request(gateway, wanted(token="t", state=first.state, answers=replies(sure=YES)))
    assert first.numbers == [*STAGES[:3], (87.5, 100)] and second.numbers == [(100, 100)]


@faked
async def test_one_series_rises_over_rounds_whoever_follows() -> None:
    """P4: carried on by whoever was sent most; a second follower without a token takes nothing back."""

    async def tool(run: Run) -> str:
        run.report(10, 100, None)
        await run.ask(form("first"))
        run.report(50, 100, None)
        await asyncio.sleep(1)
        await run.ask(form("second"))
        run.report(20, 100, "again from the start")
        run.report(None, None, "words")
        return "done"

    async with site_of(tool, settings={"progress_hz": 0}) as gateway:
        first = await call_request(gateway, wanted(token="t"))
        told = begin(gateway, wanted(token="u", state=first.state, answers=replies(first=YES)))
        untold = begin(gateway, wanted(state=first.state))
        second, silent = await asyncio.gather(told, untold)
        third = await call_request(gateway, wanted(token=3, state=silent.state, answers=replies(second=YES)))
    assert (first.numbers, second.numbers) == ([(10, 100)], [(50, 100)])
    assert [number for number, _ in third.numbers] == [50.000001, 50.000002]
    assert third.progress[0]["_meta"]["dev.afoot/progress"] == {"progress": 20, "total": 100}
    assert {params["progressToken"] for params in third.progress} == {3}


@faked
async def test_the_newest_value_goes_out_before_a_round() -> None:
    """P4: though it came too soon after the one before; once, and not again with the retry."""

    async def tool(run: Run) -> str:
        for n in range(1, 4):
            run.report(n, 10, None)
            await asyncio.sleep(0.001)
        await run.ask(form("sure"))
        return "done"

    async with site_of(tool) as gateway:
        first = await call_request(gateway, wanted(token="t"))
        second = await call_request(gateway, wanted(token="t", state=first.state, answers=replies(sure=YES)))
    assert (first.numbers, second.numbers) == ([(1, 10), (3, 10)], [])
