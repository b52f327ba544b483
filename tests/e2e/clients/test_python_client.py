"""The official Python client on every transport and in both eras: progress, errors, cancels, questions."""

import asyncio
from collections.abc import Callable
from typing import Final

import mcp_types as types
import pytest
from mcp import MCPError

from tests.e2e.gateway import until
from tests.e2e.official_client import ERAS, Peer, Peers, Seen, accept, failure, text

WAYS: Final = [(transport, era) for transport in ("http", "stdio", "connect") for era in ERAS]


@pytest.fixture(params=WAYS, ids=" ".join)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """One of the six."""
    transport, era = request.param
    return clients(transport, era)


def test_progress_arrives_in_order(peer: Peer) -> None:
    """P6, T1: every report, its numbers and its message, in the order they were made."""
    seen: Seen = []
    assert text(peer.call("count_up", seen, n=5)) == "counted to 5"
    until(lambda: len(seen) >= 5, "five reports")
    assert seen == [(n, 5, f"step {n}") for n in range(1, 6)]


def test_a_result_is_structured_as_well(peer: Peer) -> None:
    """E4: what a tool returns reaches the client as structured content."""
    result = peer.call("add", a=2, b=3)
    assert (result.structured_content, result.is_error) == ({"sum": 5}, False)


def test_tools_are_listed_with_their_schemas(peer: Peer) -> None:
    """P2: name, description and input schema, without the context."""
    tools = {tool.name: tool for tool in peer.run(peer.client.list_tools).tools}
    assert tools["count_up"].description == "Reports 1 to n, with a message each."
    assert set(tools["count_up"].input_schema["properties"]) == {"n", "step_s"}


def test_bad_arguments_name_the_field_and_run_nothing(peer: Peer) -> None:
    """E4: a validation error, as a result, naming the field; the tool is not run."""
    result = peer.call("linger", tag=["not", "text"])
    assert failure(result)["category"] == "validation"
    assert "tag" in text(result)


def test_an_unknown_tool_is_an_error_with_the_nearest_names(peer: Peer) -> None:
    """E5: -32602, and what might have been meant."""
    with pytest.raises(MCPError, match="count_up") as caught:
        peer.call("count_upp", n=1)
    assert caught.value.error.code == types.INVALID_PARAMS


def test_a_failure_says_what_and_how_far(peer: Peer) -> None:
    """E1, E2: the tool's own words, and category, retry and last report for programs."""
    result = peer.call("fail", how="explained")
    told = failure(result)
    assert "too many requests" in text(result) and "5/10: half way" in text(result)
    assert (told["category"], told["retryable"], told["retry_after_s"]) == ("rate_limit", True, 7.0)
    assert (told["last"]["progress"], told["last"]["total"]) == (5, 10)


def test_a_crash_is_told_without_its_trace(peer: Peer) -> None:
    """E3: a clean message; no trace on the wire."""
    result = peer.call("fail", how="crash")
    assert failure(result)["category"] == "internal"
    assert "KeyError" in text(result) and "Traceback" not in str(result)


@pytest.mark.parametrize("tool", ["linger", "linger_in_a_thread"])
def test_a_cancel_reaches_the_tool(peer: Peer, tool: str, fresh: Callable[[], str]) -> None:
    """X1: giving up the call at the client stops the function, with a reason."""
    tag = fresh()

    async def give_up() -> None:
        task = asyncio.create_task(peer.client.call_tool(tool, {"tag": tag}))
        await asyncio.to_thread(peer.gateway.until_marked, tag, "started")
        task.cancel()
        await asyncio.wait([task])

    peer.run(give_up)
    peer.gateway.until_marked(tag, "cancelled: ")
    assert "None" not in peer.gateway.marks(tag)[-1]


def test_a_client_that_times_out_cancels_the_tool(
    peer: Peer, fresh: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    """X1, X3: the client's own timeout ends the work too; how the request ends surprises no client."""
    tag = fresh()
    with pytest.raises(MCPError, match="[Tt]imed out"):
        peer.run(lambda: peer.client.call_tool("linger", {"tag": tag}, read_timeout_seconds=0.3))
    peer.gateway.until_marked(tag, "cancelled: ")
    assert peer.call("add", a=1, b=1).structured_content == {"sum": 2}
    assert [record.message for record in caplog.records if record.name.startswith("mcp")] == []


@pytest.mark.parametrize("tool", ["ask_name", "ask_name_in_a_thread"])
def test_a_question_is_answered_and_the_tool_runs_once(
    peer: Peer, tool: str, fresh: Callable[[], str]
) -> None:
    """Q1, Q2: the form reaches the client's callback, its content the tool, which is not run again."""
    tag = fresh()
    peer.reply = lambda message: accept(name="Ada")
    result = peer.call(tool, tag=tag)
    assert result.structured_content == {"action": "accept", "content": {"name": "Ada"}}
    assert peer.asked == ["What is your name?"]
    assert peer.gateway.marks(tag).count("ran") == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_question_can_be_declined(peer: Peer, action: str, fresh: Callable[[], str]) -> None:
    """Q2: decline and cancel reach the tool as such."""
    peer.reply = lambda message: types.ElicitResult.model_validate({"action": action})
    result = peer.call("ask_name", tag=fresh())
    assert result.structured_content == {"action": action, "content": None}


@pytest.mark.parametrize("tool", ["ask_two_at_once", "ask_two_in_turn"])
def test_two_questions_are_answered(peer: Peer, tool: str, fresh: Callable[[], str]) -> None:
    """Q1 f: in one round or in two, in the tool's order, and the tool runs once."""
    tag = fresh()
    peer.reply = lambda message: accept(name="Ada") if "name" in message else accept(age=36)
    result = peer.call(tool, tag=tag)
    assert result.structured_content == {"name": {"name": "Ada"}, "age": {"age": 36}}
    assert sorted(peer.asked) == ["How old are you?", "What is your name?"]
    assert peer.gateway.marks(tag) == ["ran"]


def test_progress_rises_over_rounds(peer: Peer, fresh: Callable[[], str]) -> None:
    """P4: one rising series a call, whatever rounds it takes."""
    seen: Seen = []
    peer.reply = lambda message: accept(name="Ada") if "name" in message else accept(age=36)
    peer.call("ask_two_in_turn", seen, tag=fresh())
    until(lambda: any(message == "asked" for _, _, message in seen), "the last report")
    numbers = [progress for progress, _, _ in seen]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 3


def test_an_answer_that_does_not_fit_is_asked_for_again(peer: Peer, fresh: Callable[[], str]) -> None:
    """Q2, Q1 d: answers are checked against the schema."""
    answers = iter([accept(name=7), accept(name="Ada")])
    peer.reply = lambda message: next(answers)
    result = peer.call("ask_name", tag=fresh())
    assert result.structured_content == {"action": "accept", "content": {"name": "Ada"}}
    assert len(peer.asked) == 2


def test_the_caller_lends_its_model_and_its_folders(peer: Peer) -> None:
    """Q1: sampling and roots, where the client offers them."""
    assert text(peer.call("ask_model")) == "the model said Paris"
    assert peer.call("list_folders").structured_content == {"result": ["file:///srv-me"]}


# What the tool `paced` does (idle 0.6 s, ceiling 2 s), which clock ends it, and after how long.
TABLE: Final[dict[str, tuple[list[float], str | None, float]]] = {
    "silent": ([1.5], "idle", 0.6),
    "reporting": ([0.4] * 4, None, 1.6),
    "a gap": ([0.2, 0.2, 1.5], "idle", 1.0),
    "for ever": ([0.3] * 20, "ceiling", 2.0),
}


def test_the_timeout_table(peer: Peer) -> None:
    """C1, C2, C7: a silent tool, one that reports, one with a gap, one that never ends; all at once."""

    async def timed(pauses: list[float]) -> tuple[types.CallToolResult, float]:
        began = asyncio.get_running_loop().time()
        result = await peer.client.call_tool("paced", {"pauses": pauses})
        return result, asyncio.get_running_loop().time() - began

    async def everyone() -> list[tuple[types.CallToolResult, float]]:
        return await asyncio.gather(*[timed(pauses) for pauses, _, _ in TABLE.values()])

    for (row, (_, clock, after_s)), (result, took) in zip(TABLE.items(), peer.run(everyone), strict=True):
        assert after_s - 0.05 <= took < after_s + 0.8, row
        if clock is None:
            assert text(result) == "done"
        else:
            told = failure(result)
            assert (told["category"], told["clock"]) == ("timeout", clock), row
            assert f"{clock}_s" in text(result), row
