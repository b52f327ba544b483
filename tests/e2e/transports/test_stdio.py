"""stdio by hand: one pipe for everything, its era settled by the first request."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.gateway import Gateway
from tests.e2e.raw_client import LATEST, MODERN, Pipe, call, hello, modern, request
from tests.e2e.transports.bridge_processes import called

REPORTS = 30_000
ERAS = ("2026-07-28", "handshake")


@pytest.fixture
def pipes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[Pipe, Gateway]]]:
    """Starts a gateway on stdio in one of the eras."""
    started: list[Pipe] = []

    def start(era: str, **settings: object) -> tuple[Pipe, Gateway]:
        gateway = Gateway(tmp_path_factory.mktemp("pipe"), settings)
        started.append(Pipe(gateway))
        if era == "handshake":
            started[-1].shake_hands()
        return started[-1], gateway

    yield start
    for pipe in started:
        pipe.__exit__()


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_does_not_read_slows_no_tool(
    pipes: Callable[..., tuple[Pipe, Gateway]], era: str, fresh: Callable[[], str]
) -> None:
    """P3, P5: the reports are made though the pipe is full; the last and the result come when it is read."""
    pipe, gateway = pipes(era, progress_hz=0)
    tag, other = fresh(), fresh()
    pipe.put(called(era, "flood", {"n": REPORTS, "tag": tag, "size": 900}, progressToken="t"))
    pipe.put(called(era, "nap", {"tag": other}, 2))
    gateway.until_marked(tag, "")
    gateway.until_marked(other, "ended")
    assert float(gateway.marks(tag)[0]) < 5
    numbers: list[float] = []
    answers: dict[int, str] = {}
    while len(answers) < 2:
        message = pipe.take()
        if "id" in message:
            answers[message["id"]] = message["result"]["content"][0]["text"]
        else:
            assert 1 not in answers, "progress after the result"
            numbers.append(message["params"]["progress"])
    assert numbers == sorted(set(numbers)) and numbers[-1] == REPORTS and len(numbers) < REPORTS
    assert answers == {1: f"reported {REPORTS}", 2: "slept"}


@pytest.mark.parametrize("era", ERAS)
def test_nothing_follows_a_cancel(
    pipes: Callable[..., tuple[Pipe, Gateway]], era: str, fresh: Callable[[], str]
) -> None:
    """X1: the tool is cancelled with the client's reason; no answer, no progress for that id."""
    pipe, gateway = pipes(era)
    tag = fresh()
    pipe.put(called(era, "linger", {"tag": tag}, "gone", progressToken="t"))
    assert pipe.take()["params"]["progressToken"] == "t"
    params = {"requestId": "gone", "reason": "changed my mind"}
    pipe.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    gateway.until_marked(tag, "cancelled: changed my mind")
    pipe.put(called(era, "nap", {}, "next"))
    assert pipe.take()["id"] == "next"


@pytest.mark.parametrize("era", ERAS)
def test_a_cancel_right_behind_its_request_is_not_lost(
    pipes: Callable[..., tuple[Pipe, Gateway]], era: str, fresh: Callable[[], str]
) -> None:
    """X1: a client may give up before the gateway has read what it wanted."""
    pipe, gateway = pipes(era)
    tag = fresh()
    wanted = json.dumps(called(era, "nap", {"tag": tag, "sleep_s": 1.0}, "gone"))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}}
    pipe.put(f"{wanted}\n{json.dumps(cancel)}".encode())
    pipe.put(called(era, "nap", {"sleep_s": 1.3}, "next"))
    assert pipe.take()["id"] == "next"
    assert "ended" not in gateway.marks(tag)


@pytest.mark.parametrize("era", ERAS)
def test_a_token_in_use_is_served_without_progress(
    pipes: Callable[..., tuple[Pipe, Gateway]], era: str
) -> None:
    """T1: two calls with one token on a pipe could not be told apart."""
    pipe, _ = pipes(era)
    pipe.put(called(era, "count_up", {"n": 6}, 1, progressToken="same"))
    assert pipe.take()["params"]["progress"] == 1
    pipe.put(called(era, "count_up", {"n": 3}, 2, progressToken="same"))
    totals, answers = set(), set()
    while len(answers) < 2:
        message = pipe.take()
        if "id" in message:
            answers.add(message["id"])
        else:
            totals.add(message["params"]["total"])
    assert totals == {6}


def test_the_first_request_settles_the_era(pipes: Callable[..., tuple[Pipe, Gateway]]) -> None:
    """T1: what belongs to the other era is refused with a code that a client can act on."""
    new, _ = pipes("2026-07-28")
    assert new.ask(modern("server/discover"))["result"]["supportedVersions"] == [MODERN]
    refused = new.ask(request("initialize", hello({}), 2))["error"]
    assert (refused["code"], refused["data"]["requested"]) == (-32022, LATEST)
    old, _ = pipes("handshake")
    assert old.ask(modern("server/discover", id=3))["error"]["code"] == -32600
    assert old.ask(request("ping", id=4))["result"] == {}


def test_a_listener_on_a_pipe_is_told_and_can_leave(pipes: Callable[..., tuple[Pipe, Gateway]]) -> None:
    """X1: acknowledged at once, ended in silence by a cancel."""
    pipe, _ = pipes("2026-07-28")
    pipe.put(modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, "l"))
    assert pipe.take()["method"] == "notifications/subscriptions/acknowledged"
    pipe.put({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "l"}})
    pipe.put(call("nap", id="next"))
    assert pipe.take()["id"] == "next"
    assert pipe.close() == 0
