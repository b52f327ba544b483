"""What a server and a client have to say to each other outside calls: log levels, logs, and roots."""

import json
from pathlib import Path

import pytest

from tests.e2e.gateway_with_servers import Front, fronting, python
from tests.e2e.raw_client import Http, Message, Pipe, events, request

pytestmark = pytest.mark.timeout(60)
RAW = "tests.providers.upstream.raw_server"
ROOTS: list[Message] = [{"uri": "file:///work", "name": "work", "_meta": {"x": 1}}]


def kept(pipe: Pipe) -> Message:
    """What the server was told."""
    answer = pipe.ask(request("tools/call", {"name": "kept", "arguments": {}}, 5))
    found: Message = json.loads(answer["result"]["content"][0]["text"])
    return found


def answer_roots(pipe: Pipe, roots: list[Message]) -> None:
    """Answer the next request for roots; what comes before is dropped."""
    while (found := pipe.take()).get("method") != "roots/list":
        pass
    pipe.put({"jsonrpc": "2.0", "id": found["id"], "result": {"roots": roots}})


def test_a_log_level_goes_to_the_server_and_its_logs_come_back(tmp_path: Path) -> None:
    """U5: a client that asks for warnings gets those that belong to no call, and nothing below."""
    with Pipe(Front(tmp_path, {"raw": python(RAW, "2025", "logs")}, own=())) as pipe:
        pipe.shake_hands()
        pipe.ask(request("tools/list", id=8))
        pipe.put(request("logging/setLevel", {"level": "warning"}, 2))
        told: list[Message] = []
        answer: Message | None = None
        while not (told and answer):
            found = pipe.take()
            told += [found["params"]] if found.get("method") == "notifications/message" else []
            answer = found if found.get("id") == 2 else answer
        assert told == [{"level": "warning", "logger": "me", "data": {"now": "warning"}}]
        assert answer["result"] == {}
        assert kept(pipe) == {"level": "warning"}


def test_a_server_that_is_connected_later_is_told_the_level(tmp_path: Path) -> None:
    """U5: the level holds for every connection; here the server of the caller itself is not up yet."""
    server = {**python(RAW, "2025", "logs"), "per_caller": True}
    with Pipe(Front(tmp_path, {"raw": server}, own=())) as pipe:
        pipe.shake_hands()
        pipe.ask(request("tools/list", id=8))
        pipe.ask(request("logging/setLevel", {"level": "error"}, 2))
        assert kept(pipe) == {"level": "error"}


def test_clients_that_share_a_server_share_the_most_talkative_level(tmp_path: Path) -> None:
    """U5: each client gets what it asked for, on the stream of its session."""
    with fronting(tmp_path, {"raw": python(RAW, "2025", "logs")}, own=()) as front:
        with Http(front.url) as loud, Http(front.url) as louder:
            loud.shake_hands()
            louder.shake_hands()
            assert "result" in loud.ask(request("tools/list"))
            loud.ask(request("logging/setLevel", {"level": "error"}, 2))
            louder.ask(request("logging/setLevel", {"level": "debug"}, 2))
            loud.ask(request("logging/setLevel", {"level": "alert"}, 2))
            answer = louder.ask(request("tools/call", {"name": "kept", "arguments": {}}, 5))
            assert json.loads(answer["result"]["content"][0]["text"]) == {"level": "debug"}
            with Http(front.url) as stream:
                stream.session = louder.session
                told = (one for one in events(stream.listen()) if isinstance(one, dict))
                logs = (one["params"] for one in told if one["method"] == "notifications/message")
                assert [next(logs)["level"], next(logs)["level"]] == ["debug", "warning"]


def test_a_server_gets_the_roots_of_its_client_outside_calls(tmp_path: Path) -> None:
    """U5: as it starts, before the client is there; when the client comes; and when its roots change."""
    with Pipe(Front(tmp_path, {"raw": python(RAW, "2025", "roots")}, own=())) as pipe:
        pipe.shake_hands()
        pipe.put(request("logging/setLevel", {"level": "notice"}, 2))
        answer_roots(pipe, ROOTS)
        while pipe.take().get("method") != "notifications/message":  # the server has them
            pass
        assert kept(pipe)["roots"] == {"roots": ROOTS}
        pipe.put({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        answer_roots(pipe, [])
        while pipe.take().get("method") != "notifications/message":
            pass
        assert kept(pipe)["roots"] == {"roots": []}
