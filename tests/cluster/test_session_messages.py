"""Sessions of the handshake era whose requests go to several gateways: what one is told reaches the other."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from itertools import count
from pathlib import Path

import pytest

from afoot.serve.mcp.era_2025 import RETRY_MS
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import gateway
from tests.e2e.clients.test_tasks import TASK_TOOLS
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, Message, events, last, request

_numbers = count(1)


@pytest.fixture(scope="module")
def two(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Two gateways of one cluster."""
    folder = tmp_path_factory.mktemp("gateways")
    one, other = gateway(folder, redis, 1, TASK_TOOLS), gateway(folder, redis, 2, TASK_TOOLS)
    yield one, other
    one.stop()
    other.stop()


@pytest.fixture
def tag() -> str:
    """A tag that no other test uses."""
    return f"session{next(_numbers)}"


@contextmanager
def session_at(first: Gateway, second: Gateway) -> Iterator[tuple[Http, Http]]:
    """One session, and a connection for it to each gateway."""
    with Http(first.url) as here, Http(second.url) as there:
        here.shake_hands()
        there.session = here.session
        yield here, there


def tool_call(tool: str, id: int = 7, **arguments: object) -> Message:
    """A call with a progress token."""
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": f"t{id}"}}
    return request("tools/call", params, id)


def asked(stream: HTTPResponse) -> Message:
    """The next question on a stream."""
    return next(
        one for one in events(stream) if isinstance(one, dict) and one.get("method") == "elicitation/create"
    )


def answer(question: Message, **content: object) -> Message:
    """The answer to a question, a message of its own."""
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}


def test_an_answer_reaches_the_gateway_that_asked(two: tuple[Gateway, Gateway], tag: str) -> None:
    """D1, Q1: both gateways have questions open in one session; each gets its own answer."""
    with session_at(*two) as (here, there), Http(two[0].url) as one, Http(two[1].url) as other:
        one.session = other.session = here.session
        one.put(tool_call("ask_name", 7, tag=f"{tag}-a"))
        other.put(tool_call("ask_name", 8, tag=f"{tag}-b"))
        first, second = one.take(), other.take()
        mine, others = asked(first), asked(second)
        assert mine["id"] != others["id"]
        assert there.post(answer(mine, name="Ann")).read() == b""
        assert here.post(answer(others, name="Bob")).read() == b""
        assert last(first)["result"]["structuredContent"]["content"] == {"name": "Ann"}
        assert last(second)["result"]["structuredContent"]["content"] == {"name": "Bob"}


def test_a_cancel_reaches_the_gateway_that_serves_the_request(two: tuple[Gateway, Gateway], tag: str) -> None:
    """D1, X1: with its reason; the id of another session's request cancels nothing."""
    with session_at(*two) as (here, there), session_at(*two) as (_, stranger):
        here.put(tool_call("linger", tag=tag))
        two[0].until_marked(tag, "started")
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        stranger.post({**cancel, "params": {"requestId": 7, "reason": "not mine"}}).read()
        there.post({**cancel, "params": {"requestId": 7, "reason": "enough"}}).read()
        two[0].until_marked(tag, "cancelled: ")
        assert two[0].marks(tag)[-1] == "cancelled: enough"


def test_the_task_of_another_gateway_asks_on_the_stream_of_its_session(two: tuple[Gateway, Gateway]) -> None:
    """D1, H3: whether the stream was opened before the task or after it."""
    task = request("tools/call", {"name": "march_and_ask", "arguments": {}, "task": {}}, 7)
    for is_late in (False, True):
        with session_at(*two) as (here, there), Http(two[1].url) as listening:
            listening.session = here.session
            if is_late:
                here.ask(task)
            stream = listening.listen()
            if not is_late:
                here.ask(task)
            there.post(answer(asked(stream), side="left")).read()
            listed = here.ask(request("tasks/list", {}, 8))["result"]["tasks"]
            result = there.ask(request("tasks/result", {"taskId": listed[0]["taskId"]}, 9))["result"]
            assert result["structuredContent"] == {"action": "accept", "content": {"side": "left"}}


def test_a_broken_stream_goes_on_at_another_gateway(two: tuple[Gateway, Gateway], tag: str) -> None:
    """D2, H2: behind the event that came last, while the first gateway lives and runs the call."""
    with session_at(*two) as (here, there):
        here.put(tool_call("march", steps=25, tag=tag))
        stream, place, seen = here.take(), "", 0
        while seen < 3:
            line = stream.readline().decode()
            place = line[4:].strip() if line.startswith("id: ") else place
            seen += "notifications/progress" in line
        here.close()
        time.sleep(RETRY_MS / 1000)  # as the stream has told its client
        resumed = there.resume(place)
        assert resumed.status == 200
        frames = [one for one in events(resumed) if isinstance(one, dict)]
    numbers = [one["params"]["progress"] for one in frames if one.get("method") == "notifications/progress"]
    assert frames[-1]["id"] == 7 and frames[-1]["result"]["content"][0]["text"] == "marched 25"
    assert numbers and numbers == sorted(set(numbers)) and numbers[0] >= seen
    assert two[0].marks(tag) == ["started", "done"] and not two[1].marks(tag)


def test_a_session_that_was_ended_is_ended_everywhere(
    two: tuple[Gateway, Gateway], redis: RedisServer, tmp_path: Path
) -> None:
    """D2, S3: also at a gateway that held it, and at one that is started later."""
    with session_at(*two) as (here, there):
        assert there.post(request("ping", {}, 2)).read()
        session = here.session
        there.end_session()
        until(lambda: _status(two[0], session) == 404, "the other to know")
        assert _status(two[1], session) == 404
        third = gateway(tmp_path, redis, 3)
        try:
            assert _status(third, session) == 404
        finally:
            third.stop()


def _status(at: Gateway, session: str | None) -> int:
    """The status of a ping in a session."""
    with Http(at.url) as http:
        http.session = session
        return http.post(request("ping", {}, 3)).status
