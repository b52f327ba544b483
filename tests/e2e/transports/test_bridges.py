"""Several bridges and their one gateway: started by them, killed under them, ended after them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import serving, until
from tests.e2e.history import rows
from tests.e2e.raw_client import MODERN, Message, Pipe, call, modern
from tests.e2e.transports.bridge_processes import ERAS, Hall, called, hall, is_alive, said

LISTEN: Message = {"notifications": {"toolsListChanged": True}}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Hall]:
    """Where no gateway runs yet."""
    with hall(tmp_path) as found:
        yield found


def test_hosts_at_once_share_one_gateway_and_its_history(place: Hall, fresh: Callable[[], str]) -> None:
    """S3, H1: three hosts, one gateway, every call in one history under the caller that made it."""
    bridges = [place.bridge(era) for era in (MODERN, "handshake", MODERN)]
    for number, bridge in enumerate(bridges):
        era = "handshake" if number == 1 else MODERN
        assert said(bridge.ask(called(era, "nap", {"tag": fresh()}))) == "slept"
    callers = {row.caller for row in rows(place.gateway.store, "nap")}
    assert len(callers) == 3 and all(caller.startswith("connect:") for caller in callers)
    assert place.started() == 1


def test_bridges_that_race_start_one_gateway(place: Hall) -> None:
    """H1: five at once, none of which finds a gateway."""
    bridges = [place.bridge() for _ in range(5)]
    for bridge in bridges:
        bridge.put(call("nap"))
    assert [said(bridge.take()) for bridge in bridges] == ["slept"] * 5
    assert place.started() == 1


@pytest.mark.parametrize("era", ERAS)
def test_a_gateway_that_dies_is_answered_for_and_replaced(
    place: Hall, era: str, fresh: Callable[[], str]
) -> None:
    """H4, S3: what was open is lost and says so; the next call just works, unseen by the client."""
    bridge, tag = place.bridge(era), fresh()
    bridge.put(called(era, "linger", {"tag": tag}, "open", progressToken=1))
    history = bridge.take()["params"]["_meta"]["dev.afoot/call"]
    first = place.kill()
    answer = until_answered(bridge, "open")
    told = answer["result"]["_meta"]
    assert answer["result"]["isError"] and "lost" in said(answer) and history in said(answer)
    assert (told["dev.afoot/error"]["category"], told["dev.afoot/error"]["code"]) == ("unavailable", "lost")
    assert told["dev.afoot/call"] == history
    assert said(bridge.ask(called(era, "nap", {}, "next"))) == "slept"
    assert place.pid != first
    assert len({row.caller for row in rows(place.gateway.store)}) == 1


def test_three_hosts_outlive_their_gateway(place: Hall, fresh: Callable[[], str]) -> None:
    """H4, H1: killed and restarted under them: one new gateway for all, one history."""
    eras = (MODERN, "handshake", "handshake")
    bridges = [place.bridge(era) for era in eras]
    for bridge, era in zip(bridges, eras, strict=True):
        tag = fresh()
        bridge.put(called(era, "linger", {"tag": tag}, "open"))
        place.gateway.until_marked(tag, "started")
    place.kill()
    for bridge in bridges:
        assert "lost" in said(until_answered(bridge, "open"))
    for bridge, era in zip(bridges, eras, strict=True):
        bridge.put(called(era, "nap", {}, "next"))
    for bridge in bridges:
        assert said(until_answered(bridge, "next")) == "slept"
    assert place.started() == 2
    assert len({row.caller for row in rows(place.gateway.store)}) == 3


def test_a_gateway_that_a_person_restarts_is_found_without_a_request(
    tmp_path: Path, fresh: Callable[[], str]
) -> None:
    """H4: a session is opened again, its client told that the tools may be others, and asked nothing."""
    with serving(tmp_path) as gateway, Pipe(gateway, bridged=True) as old, Pipe(gateway, bridged=True) as new:
        old.shake_hands()
        new.put(modern("subscriptions/listen", LISTEN, "l"))
        assert new.take()["method"] == "notifications/subscriptions/acknowledged"
        gateway.kill()
        gateway.start()
        assert old.take()["method"] == "notifications/tools/list_changed"
        changed = new.take()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
        assert said(old.ask(called("handshake", "nap", {}))) == "slept"
        gateway.stop()
        gateway.start()
        assert old.take()["method"] == "notifications/tools/list_changed"
        assert said(new.ask(call("nap"))) == "slept"


def test_a_question_is_answered_by_a_gateway_that_came_later(place: Hall, fresh: Callable[[], str]) -> None:
    """Q1 h: the round's state outlives the gateway, as the bridge stays the same caller."""
    bridge, tag = place.bridge(), fresh()
    asked = bridge.ask(call("ask_safely", {"tag": tag}))["result"]
    assert asked["resultType"] == "input_required"
    place.kill()
    answers = {"name": accepted("Ada")}
    again = call("ask_safely", {"tag": tag}, 2, requestState=asked["requestState"], inputResponses=answers)
    result = bridge.ask(again)["result"]
    assert list(result["inputRequests"]) == ["age"]


def test_an_answer_never_meets_the_question_of_another_gateway(place: Hall, fresh: Callable[[], str]) -> None:
    """H4, A6: what the dead gateway asked is withdrawn; the new one's question waits for its own answer."""
    bridge = place.bridge("handshake")
    bridge.put(called("handshake", "ask_name", {"tag": fresh()}, "old"))
    old = bridge.take()
    assert old["method"] == "elicitation/create"
    place.kill()
    withdrawn, lost = bridge.take(), bridge.take()
    assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", old["id"])
    assert lost["id"] == "old"
    bridge.put(called("handshake", "ask_name", {"tag": fresh()}, "new"))
    while (new := bridge.take()).get("method") != "elicitation/create":
        pass
    for asked, name in ((old, "Eve"), (new, "Ada")):
        bridge.put({"jsonrpc": "2.0", "id": asked["id"], "result": accepted(name)})
    answer = until_answered(bridge, "new")
    assert answer["result"]["structuredContent"]["content"] == {"name": "Ada"}


def test_a_gateway_nobody_needs_any_more_ends_itself(tmp_path: Path) -> None:
    """S3: a while after its last caller and call, and not before."""
    with hall(tmp_path, {"linger_s": 1.0}) as place:
        bridge = place.bridge()
        assert said(bridge.ask(call("nap"))) == "slept"
        pid = place.pid
        bridge.put(call("nap", {"sleep_s": 2.5}))
        assert said(bridge.take()) == "slept"
        assert is_alive(pid)  # silent for longer than it lingers, but its caller was there
        assert bridge.close() == 0
        until(lambda: not is_alive(pid), "the end of the gateway")
        assert not place.address


def accepted(name: str) -> Message:
    """A form that was filled in."""
    return {"action": "accept", "content": {"name": name}}


def until_answered(pipe: Pipe, id: str) -> Message:
    """The answer to a request; what comes in between is dropped."""
    while (message := pipe.take()).get("id") != id:
        pass
    return message
