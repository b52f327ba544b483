"""`kill -9` of a gateway, and what the next one on the same store makes of it."""

import subprocess
import time
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from afoot.core.facts import Answered, Finished, Started
from tests.e2e import history
from tests.e2e.gateway import Gateway, revive, until
from tests.e2e.raw_client import Http, Message, call

ADA = {"name": {"action": "accept", "content": {"name": "Ada"}}}
AGE = {"age": {"action": "accept", "content": {"age": 36}}}
LOAD = 6


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that a test may kill and start again."""
    gateway = Gateway(tmp_path / "mortal", {"drain_s": 0.2})
    gateway.start()
    yield gateway
    if gateway.process.poll() is None:
        gateway.kill()


def test_every_result_that_a_client_got_is_in_the_store(mortal: Gateway) -> None:
    """H1: nothing acknowledged is lost when the process is killed under load."""
    got: dict[str, int] = {}

    def load(worker: int) -> None:
        with Http(mortal.url) as http:
            for number in range(100_000):
                try:
                    result = http.ask(call("add", {"a": worker, "b": number}))["result"]
                except (OSError, HTTPException):
                    return
                got[result["_meta"]["dev.afoot/call"]] = result["structuredContent"]["sum"]

    threads = [Thread(target=load, args=(worker,)) for worker in range(LOAD)]
    for thread in threads:
        thread.start()
    until(lambda: len(got) > 300, "some load")
    mortal.kill()
    for thread in threads:
        thread.join()
    kept = {row.id: row for row in history.rows(mortal.store, "add")}
    recent = list(got)[-500:]  # a list of the store holds so many and more
    assert [kept[one].outcome for one in recent if one in kept] == ["ok"] * len(recent)
    for one in recent[-20:]:
        (end,) = history.of_type(Finished, history.facts(mortal.store, one))
        assert end.result is not None and bytes(end.result.structured) == b'{"sum":%d}' % got[one]


def test_calls_that_died_are_told_apart(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """U4, H4: read-only ones are lost and may be repeated; of others it is uncertain what they did."""
    look, change = fresh(), fresh()
    with Http(mortal.url) as first, Http(mortal.url) as second:
        first.put(call("look_around", {"tag": look}))
        second.put(call("linger", {"tag": change}))
        mortal.until_marked(look, "started")
        mortal.until_marked(change, "started")
        until(lambda: len(history.entries(mortal.store)) >= 4, "both to be on record")  # opened, started
        revive(mortal)
    for tool, outcome, retryable in (("look_around", "lost", True), ("linger", "uncertain", False)):
        (row,) = history.rows(mortal.store, tool)
        assert (row.state, row.outcome) == ("finished", outcome)
        (end,) = history.of_type(Finished, history.facts(mortal.store, row.id))
        assert end.failure is not None and end.failure.retryable is retryable
        assert "died" in end.failure.message
    assert mortal.marks(look) == mortal.marks(change) == ["started"]


def asks(
    http: Http, tool: str, tag: str, state: str | None = None, answers: Message | None = None
) -> Message:
    """One request of a call that asks."""
    more: dict[str, Any] = {} if state is None else {"requestState": state, "inputResponses": answers or {}}
    result: Message = http.ask(call(tool, {"tag": tag}, **more))["result"]
    return result


def test_a_safe_call_that_waited_is_run_again_with_its_answers(
    mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """Q1 h, H4: its state finds it in the next gateway; what was answered is not asked again."""
    tag = fresh()
    with Http(mortal.url) as http:
        state = asks(http, "ask_safely", tag)["requestState"]
        second = asks(http, "ask_safely", tag, state, ADA)
        assert set(second["inputRequests"]) == {"age"}
    revive(mortal)
    with Http(mortal.url) as http:
        again = asks(http, "ask_safely", tag, second["requestState"])
        assert set(again["inputRequests"]) == {"age"}  # still open, and nothing has run yet
        assert mortal.marks(tag).count("ran") == 1
        done = asks(http, "ask_safely", tag, again["requestState"], AGE)
    assert done["structuredContent"] == {"name": {"name": "Ada"}, "age": {"age": 36}}
    assert mortal.marks(tag) == ["ran", "name {'name': 'Ada'}"] * 2
    found = history.facts(mortal.store, done["_meta"]["dev.afoot/call"])
    assert [fact.attempt for fact in history.of_type(Started, found)] == [1, 2]
    assert len(history.of_type(Answered, found)) == 4  # two by the caller, two from the record


def test_an_unsafe_call_that_waited_is_uncertain(mortal: Gateway, fresh: Callable[[], str]) -> None:
    """Q1 h, U4: it is not run twice; the retry is told so."""
    tag = fresh()
    with Http(mortal.url) as http:
        state = asks(http, "ask_name", tag)["requestState"]
    revive(mortal)
    with Http(mortal.url) as http:
        told = asks(http, "ask_name", tag, state, ADA)
    assert told["isError"] and told["_meta"]["dev.afoot/error"]["code"] == "uncertain"
    assert mortal.marks(tag) == ["ran"]


def test_a_call_that_was_run_again_is_still_cancelled_by_leaving(
    mortal: Gateway, fresh: Callable[[], str]
) -> None:
    """Q1 d, X1: after a restart the retry is the request of the newest round."""
    tag = fresh()
    with Http(mortal.url) as http:
        state = asks(http, "ask_safely_then_linger", tag)["requestState"]
    revive(mortal)
    with Http(mortal.url) as http:
        http.put(call("ask_safely_then_linger", {"tag": tag}, requestState=state, inputResponses=ADA))
        mortal.until_marked(tag, "answered")
    mortal.until_marked(tag, "cancelled: the client closed the stream")


def test_a_result_can_be_fetched_after_a_restart(mortal: Gateway) -> None:
    """H1, Q1: the state of a result too large for its stream outlives the gateway."""
    wanted = {"size": 950_000, "reports": True}
    with Http(mortal.url) as http:
        state = http.ask(call("big", wanted, progressToken=1))["result"]["requestState"]
    revive(mortal)
    with Http(mortal.url) as http:
        result = http.ask(call("big", wanted, requestState=state))["result"]
    assert len(result["content"][0]["text"]) == 950_000


def test_a_session_of_a_dead_gateway_goes_on_at_the_next_one(mortal: Gateway) -> None:
    """D2, S3: its id says who it is; one that nobody made is unknown, which is 404."""
    with Http(mortal.url) as http:
        http.shake_hands()
        session = http.session
    assert session is not None
    revive(mortal)
    for name, status in ((session, 200), (session[:-1] + ("A" if session[-1] != "A" else "B"), 404)):
        with Http(mortal.url) as http:
            http.session = name
            assert http.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == status


def test_a_second_gateway_on_the_same_store_is_refused(mortal: Gateway) -> None:
    """H1: one gateway a store; the second exits with 2 and says why, and the first goes on."""
    began = time.monotonic()
    second = subprocess.run(
        mortal.command("--http", "127.0.0.1:0", "--json"),
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
        env={**mortal.environment, "AFOOT_HOME": str(mortal.folder / "second")},
    )
    assert (second.returncode, second.stdout) == (2, ""), second.stderr
    assert str(mortal.store) in second.stderr and "Traceback" not in second.stderr
    assert time.monotonic() - began < 5
    with Http(mortal.url) as http:
        assert http.ask(call("add", {"a": 1, "b": 1}))["result"]["structuredContent"] == {"sum": 2}
