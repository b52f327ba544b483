"""A gateway behind a gateway behind a gateway: progress, budget, cancels and questions go all the way."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ClientRequestContext

from tests.e2e.gateway import until
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, accept, peers, text
from tests.e2e.raw_client import Http, Message, call, frames
from tests.e2e.servers.gateway_chain import Chain, chained

pytestmark = pytest.mark.timeout(60)
HOPS: Final = ("2026-07-28", "2025-11-25")
HASTY_S: Final = 1.5  # the idle limit of a tool that asks
PATIENT_S: Final = 3.5  # notices come after two seconds
CLIENT_S: Final = 1.8  # what a hurried client waits for an answer, whatever comes meanwhile
TOLD_S: Final = 0.8  # what the outermost gateway is told of it: a slow machine has the rest
BUDGET: Final = {"dev.afoot/budget": {"left_s": 40, "idle_s": 20}}


@pytest.fixture(scope="module", params=HOPS)
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Three gateways that speak this era to each other; notices come soon, and two tools have little time."""
    idle = {"ask_name": {"idle_s": HASTY_S}, "weave": {"idle_s": PATIENT_S}}
    every = {"notice_s": 0.4, "tools": idle}
    with chained(
        tmp_path_factory.mktemp("chain"),
        {"era": request.param},
        {"outer": {**every, "caller_limits": {"hurried": TOLD_S}}, "middle": every, "inner": every},
    ) as found:
        yield found


@pytest.fixture(scope="module")
def clients(chain: Chain) -> Iterator[Peers]:
    """Official clients, by era."""
    with peers({"http": chain.outer}) as found:
        first = found("http", ERAS[0])
        until(lambda: "knit" in {tool.name for tool in first.run(first.client.list_tools).tools}, "tools", 20)
        yield found


@pytest.fixture
def modern(clients: Peers) -> Peer:
    """A client of the newest era."""
    peer = clients("http", ERAS[0])
    peer.wait_s = 25.0
    return peer


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """A client of either era."""
    peer = clients("http", request.param)
    peer.wait_s = 25.0
    return peer


def test_a_tool_that_runs_only_as_a_task_is_called_by_every_client(peer: Peer) -> None:
    """U9: the gateway before it drives the task; its progress and its question are those of a plain call."""
    seen: Seen = []
    peer.reply = lambda message: accept(value=True)
    peer.wait_s = 25.0
    assert text(peer.call("ferment", seen, days=3)) == "sour"
    assert peer.asked == ["taste it?"]
    numbers = [(progress, total) for progress, total, _ in seen if total == 3]
    assert numbers == sorted(numbers) and (2, 3) in numbers


def test_progress_comes_through_unchanged(peer: Peer) -> None:
    """U6, P6, P8: every report of the innermost tool, in order."""
    seen: Seen = []
    assert text(peer.call("knit", seen, rows=6, step_s=0.1)) == "knitted 6"
    until(lambda: len(seen) >= 6, "six rows")
    assert seen == [(n, 6, f"row {n}") for n in range(1, 7)]


def test_the_budget_shrinks_on_each_hop(peer: Peer, chain: Chain) -> None:
    """C3: what the caller has left, less a margin on each way, and less what the way took."""
    meta: Any = BUDGET
    peer.run(lambda: peer.client.call_tool("knit", {"rows": 1, "step_s": 0.0}, meta=meta))
    outer, middle, inner = chain.limits("knit")
    assert 40 == outer.ceiling_s >= middle.ceiling_s + 1 and middle.ceiling_s >= inner.ceiling_s + 1
    assert inner.ceiling_s > 30
    idle = [limits.idle_s or 0 for limits in (outer, middle, inner)]
    assert idle[0] == 20 and idle == sorted(idle, reverse=True)


def test_a_cancel_reaches_the_innermost_tool(peer: Peer, chain: Chain, fresh: Callable[[], str]) -> None:
    """X1: whoever speaks which era to whom, and every history tells it."""
    tag, before = fresh(), chain.ended("ask_then_linger")

    async def give_up() -> None:
        task = asyncio.create_task(peer.client.call_tool("ask_then_linger", {"tag": tag}))
        await asyncio.to_thread(chain.inner.until_marked, tag, "answered")
        task.cancel()
        await asyncio.wait([task])

    peer.reply = lambda message: accept(name="Ada")
    peer.run(give_up)
    chain.inner.until_marked(tag, "cancelled: ")
    until(lambda: chain.ended("ask_then_linger") == [number + 1 for number in before], "the end everywhere")
    assert chain.outcomes("ask_then_linger") == ["cancelled"] * 3


def test_a_question_stops_all_clocks_above(chain: Chain, peer: Peer, fresh: Callable[[], str]) -> None:
    """C3, C6, Q3: the answer takes far longer than the idle limit of the gateways on the way."""
    tag, before = fresh(), chain.ended("ask_name")
    asked: list[str] = []

    async def slow(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        await asyncio.sleep(2 * HASTY_S)
        return accept(name="Ada")

    async def ask() -> types.CallToolResult:
        mode = "legacy" if peer.era == "legacy" else "2026-07-28"
        async with (
            asyncio.timeout(25),
            Client(chain.outer.url, mode=mode, elicitation_callback=slow) as client,
        ):
            return await client.call_tool("ask_name", {"tag": tag})

    result = asyncio.run(ask())
    assert result.structured_content == {"action": "accept", "content": {"name": "Ada"}}, result
    assert asked == ["What is your name?"] and chain.inner.marks(tag).count("ran") == 1
    assert chain.ended("ask_name") == [number + 1 for number in before]
    assert chain.outcomes("ask_name") == ["ok"] * 3


def test_the_operator_is_asked_where_the_caller_cannot_be(
    chain: Chain, modern: Peer, fresh: Callable[[], str]
) -> None:
    """Q3, C3: the answer is typed in a terminal at the outermost gateway, and late at that."""
    tag = fresh()

    async def ask() -> types.CallToolResult:
        async with asyncio.timeout(25), Client(chain.outer.url, mode="2026-07-28") as client:
            asking = asyncio.create_task(client.call_tool("ask_name", {"tag": tag}))
            await asyncio.to_thread(chain.inner.until_marked, tag, "ran")
            await asyncio.sleep(2 * HASTY_S)
            call = await asyncio.to_thread(chain.outer.running, "ask_name")
            line = [sys.executable, "-m", "afoot", "answer", call, "name=Ada"]
            await asyncio.to_thread(subprocess.run, line, check=True, env=chain.outer.environment)
            return await asking

    assert asyncio.run(ask()).structured_content == {"action": "accept", "content": {"name": "Ada"}}
    assert chain.inner.marks(tag).count("ran") == 1


def test_notices_of_the_innermost_engine_count_as_alive(modern: Peer, chain: Chain) -> None:
    """T5, C8: a call that waits for its turn there outlives the idle limit above, and has not advanced."""
    seen: Seen = []

    async def noted(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def both() -> tuple[types.CallToolResult, types.CallToolResult]:
        first = asyncio.create_task(modern.client.call_tool("weave", {"rows": 10}))
        await asyncio.to_thread(chain.inner.running, "weave")
        second = modern.client.call_tool("weave", {"rows": 1}, progress_callback=noted)
        return await asyncio.gather(first, second)

    assert [text(result) for result in modern.run(both)] == ["wove 10", "wove 1"]
    until(lambda: seen[-1][2] == "row 1", "the only report")
    notices = seen[:-1]
    assert notices and all(total is None and progress < 1 for progress, total, _ in notices)


def test_data_and_parts_of_a_result_come_through(chain: Chain, modern: Peer) -> None:
    """P7, P11: what stands beside the numbers, as the tool gave it."""
    with Http(chain.outer.url) as http:
        found = frames(http.post(call("bake", progressToken="t", **{"dev.afoot/partial": True})))
    beside: list[Message] = [frame["params"]["_meta"] for frame in found if "params" in frame]
    data = [
        one["dev.afoot/progress"]["data"] for one in beside if "data" in one.get("dev.afoot/progress", {})
    ]
    parts = [part["text"] for one in beside for part in one.get("dev.afoot/partial", [])]
    assert data == [{"phase": "dough"}, {"phase": "oven"}] and parts == ["a crumb", "a slice"]
    assert found[-1]["result"]["content"][0]["text"] == "a loaf"


def test_a_tool_outlasts_the_clients_own_limit(chain: Chain, peer: Peer) -> None:
    """H5: through three gateways, by rounds that nobody sees or by a handle, each far within the limit."""
    waits = 0

    async def never(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        raise AssertionError("nobody is asked")

    async def patient() -> types.CallToolResult:
        nonlocal waits
        hurried = types.Implementation(name="hurried", version="1")
        mode = "legacy" if peer.era == "legacy" else "2026-07-28"
        async with (
            asyncio.timeout(25),
            Client(
                chain.outer.url, mode=mode, client_info=hurried, elicitation_callback=never,
                read_timeout_seconds=CLIENT_S,
            ) as client,
        ):  # fmt: skip
            await client.list_tools()
            result = await client.call_tool("knit", {"rows": 6, "step_s": 0.5})
            while "afoot_call" in (result.structured_content or {}):
                waits += 1
                handle = (result.structured_content or {})["afoot_call"]
                result = await client.call_tool("afoot_wait", {"call": handle})
            return result

    assert text(asyncio.run(patient())) == "knitted 6"
    assert bool(waits) is (peer.era == "legacy")
    assert chain.outcomes("knit") == ["ok"] * 3
