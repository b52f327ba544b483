"""What a caller is sent of the calls below its own: one rising number, and those that changed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.wire.results import CallBudget
from tests.engine.child_calls.nested_tools import calling, counting
from tests.engine.fake_engine import Bench, Body
from tests.serve.fake_gateway import Message, call_request, faked, site_of, source, wanted


@asynccontextmanager
async def gateway(body: Body, **below: Body) -> AsyncIterator[GatewayState]:
    """A site with this tool, and others that it calls."""
    bench = Bench()
    bench.name = "below"
    for name, one in below.items():
        bench.add(one, name)
    async with site_of(body) as made:
        made.engine.catalog.put(bench)
        yield made


def children(params: Message) -> list[dict[str, Any]]:
    """The calls below that one frame tells of."""
    found: list[dict[str, Any]] = params.get("_meta", {}).get("dev.afoot/progress", {}).get("children", [])
    return found


@faked
async def test_the_frames_of_a_call_tell_of_the_calls_below_that_changed() -> None:
    """P8: id, tool, state, numbers and message; each change once, beside the number that only rises."""
    async with gateway(calling("child", "child"), child=counting(2)) as made:
        tape = await call_request(made, wanted(token="t"))
    assert [number for number, _ in tape.numbers] == [0.5, 0.500001, 1.0, 1.5, 1.500001, 2.0]
    assert [total for _, total in tape.numbers] == [1, 1, 2, 2, 2, 2]
    told = [[(one["state"], one.get("progress")) for one in children(params)] for params in tape.progress]
    assert told == [
        [("running", 1)], [("finished", 2)], [("running", None)], [("running", 1)], [("finished", 2)], [],
    ]  # fmt: skip
    [first] = children(tape.progress[0])
    assert set(first) == {"id", "tool", "state", "progress", "total", "message"}
    assert (first["tool"], first["total"], first["message"]) == ("child", 2, "step 1")
    assert children(tape.progress[1])[0]["outcome"] == "ok"
    assert len({one["id"] for params in tape.progress for one in children(params)}) == 2


@faked
async def test_calls_further_down_say_below_which_they_are() -> None:
    """P8: the whole tree can be drawn from the frames of its root."""
    async with gateway(calling("middle"), middle=calling("leaf"), leaf=counting(2)) as made:
        tape = await call_request(made, wanted(token="t"))
    found = {one["tool"]: one for one in children(tape.progress[0])}
    assert found["leaf"]["parent"] == found["middle"]["id"] and "parent" not in found["middle"]


@faked
async def test_at_most_fifty_go_with_one_frame() -> None:
    """P8: the rest goes with the next; nobody is left out."""
    body = calling(*["child"] * 120, at_once=True)
    async with gateway(body, child=counting(40)) as made:
        tape = await call_request(made, wanted(token="t"))
    told = [children(params) for params in tape.progress]
    assert max(map(len, told)) == 50
    assert len({one["id"] for some in told for one in some}) == 120


@faked
@pytest.mark.parametrize("ends", ["well", "early", "late"])
async def test_the_last_frames_leave_no_child_running(ends: str) -> None:
    """P8: of eighty children, whether they ended, were abandoned, or had no time left."""

    async def body(run: Run) -> str:
        children = asyncio.gather(*(run.call("child", Raw(b"{}"), 1.0) for _ in range(80)))
        if ends == "early":
            await asyncio.sleep(2.5)
            children.cancel()
            return "done"
        await children
        return "done"

    steps = 40 if ends == "late" else 4
    async with gateway(body, child=counting(steps)) as made:
        budget = CallBudget(left_s=5.5) if ends == "late" else CallBudget()
        tape = await call_request(made, wanted(token="t", budget=budget))
    states = {one["id"]: one["state"] for params in tape.progress for one in children(params)}
    assert len(states) == 80 and set(states.values()) <= {"finished", "cancelling"}
    assert max(len(children(params)) for params in tape.progress) <= 50
    if ends == "well":
        assert tape.numbers[-1] == (80, 80) and set(states.values()) == {"finished"}


@faked
async def test_a_notice_tells_of_them_too() -> None:
    """P8, T5: a call with numbers of its own shows those, and its children with whatever frame comes next."""

    async def body(run: Run) -> str:
        run.report(1, 10, None)
        await run.call("child", Raw(b"{}"), 1.0)
        return "done"

    async with gateway(body, child=counting(2, 10.0)) as made:
        tape = await call_request(made, wanted(token="t"))
    told = [params for params in tape.progress if children(params)]
    assert [source({"params": params}) for params in told] == ["tool", "engine", "engine"]
    assert children(told[1])[0]["message"] == "step 1" and children(told[2])[0]["outcome"] == "ok"


@faked
async def test_a_caller_without_a_token_is_sent_nothing_of_them() -> None:
    """P6: and a call that calls nobody carries nothing more than before."""
    async with gateway(calling("child"), child=counting(2)) as made:
        assert (await call_request(made, wanted())).progress == []
    async with gateway(counting(2)) as made:
        tape = await call_request(made, wanted(token="t"))
    assert all("dev.afoot/progress" not in params.get("_meta", {}) for params in tape.progress)
