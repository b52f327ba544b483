"""A history of large results: what is read of it for one answer is bounded, whatever it is about."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.attack.process_memory import MB, peak_mb, reset_peak, resident_mb, settled_mb
from tests.e2e.gateway import Gateway, serving, until
from tests.serve.api_client import Api

TOOLS = Path(__file__).with_name("large_tools.py")
RESULTS = 10
RESULT_MB = 12


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with tools of large results."""
    with serving(tmp_path, {"max_unread_bytes": 18 * MB}, [TOOLS]) as started:
        yield started


def measured_base(gateway: Gateway) -> int:
    """The memory before the attack, in MB; from here on its peak is counted."""
    base = settled_mb(gateway, resident_mb(gateway) // 2, 2.0)
    reset_peak(gateway)
    return base


def test_the_story_of_a_tree_takes_few_of_its_results_into_memory(gateway: Gateway) -> None:
    """H8, V1: before, each small value of a story kept the whole result of its call."""
    api = Api(gateway)
    call = api.start("large_tree", calls=RESULTS, mb=RESULT_MB)
    assert until(lambda: api.call(call)["outcome"], "its end", 60) == "ok"
    base = measured_base(gateway)
    calls = api.get(f"/api/calls/{call}/story").body["calls"]
    assert len(calls) == RESULTS + 1
    assert peak_mb(gateway) <= base + 5 * RESULT_MB


def test_earlier_answers_take_few_of_the_results_into_memory(gateway: Gateway) -> None:
    """H8, A3: one call after another is read, and only its answers are kept."""
    api = Api(gateway)
    for _ in range(RESULTS):
        call = api.start("large_if_allowed", mb=RESULT_MB)
        question = api.asked(call)
        yes = {"content": {"decision": "run"}}
        assert api.post(f"/api/questions/{question['id']}/answer", yes).status == 200
        until(lambda call=call: api.get("/api/calls?limit=1").body["calls"][0]["outcome"], "its end", 60)
    base = measured_base(gateway)
    answers = api.get("/api/answers").body["answers"]
    assert len(answers) == RESULTS
    assert peak_mb(gateway) <= base + 5 * RESULT_MB


def test_a_watcher_who_comes_back_takes_few_of_the_results_into_memory(gateway: Gateway) -> None:
    """H8, H2: the facts since its last event are read a few at a time, if they are large."""
    api = Api(gateway)
    with api.stream("/api/events") as stream:
        place = next(stream).id
    call = api.start("large_tree", calls=RESULTS, mb=RESULT_MB)
    until(lambda: api.get("/api/calls?state=live").body["calls"] == [], "its end", 60)
    base = measured_base(gateway)
    ends = 0
    with api.stream("/api/events", last_event_id=place) as stream:
        for event in stream:
            ends += event.data.count('"type":"finished"')
            if ends == RESULTS + 1:
                break
    assert call in event.data
    assert peak_mb(gateway) <= base + 5 * RESULT_MB


@pytest.mark.parametrize("what", ["", "/events"])
def test_results_that_nobody_reads_over_the_api_are_bounded(gateway: Gateway, what: str) -> None:
    """H8: as over MCP; who leaves too much unread gets no more, and everybody else does."""
    api = Api(gateway)
    call = api.start("large", mb=RESULT_MB)
    until(lambda: api.get("/api/calls?state=live").body["calls"] == [], "its end", 60)
    base = measured_base(gateway)
    with ExitStack() as stack:
        for _ in range(RESULTS):
            stack.enter_context(silent(gateway, api.token, f"/api/calls/{call}{what}"))
            assert api.get("/api/calls").status == 200
        # One result with what it was made of, and those that were refused, one at a time.
        assert settled_mb(gateway, base + 6 * RESULT_MB) <= base + 6 * RESULT_MB
    assert until(lambda: len(api.call(call)["result"]["content"][0]["text"]), "it is read") == RESULT_MB * MB


def silent(gateway: Gateway, token: str, path: str) -> socket.socket:
    """Somebody who asks, and reads nothing."""
    parts = urlsplit(gateway.url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((parts.hostname, parts.port))
    head = f"GET {path} HTTP/1.1\r\nhost: {parts.netloc}\r\nauthorization: Bearer {token}\r\n\r\n"
    client.sendall(head.encode())
    return client
