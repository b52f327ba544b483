"""What afoot does not know passes whole, in both directions and between every pair of eras."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.gateway_with_servers import Front, python
from tests.e2e.raw_client import Message, Pipe, call, modern, request

OWN: Message = {"x.example/at": {"of": "server"}}
MINE: Message = {"x.example/at": {"of": "client"}, "y": [1]}
YES: Message = {"action": "accept", "content": {"sure": True}, "mood": 4, "_meta": MINE}

PAIRS = pytest.mark.parametrize("server", ["2025", "2026"])
pytestmark = pytest.mark.timeout(60)


def call_of_2026(pipe: Pipe) -> tuple[list[Message], Message, Message]:
    """Call `whole` as a client of 2026-07-28: the notifications, the question, and the result."""
    pipe.ask(modern("tools/list", id=8))
    meta: dict[str, Any] = {**MINE, "progressToken": 7, "io.modelcontextprotocol/logLevel": "info"}
    first = call("whole", id=1, **meta)
    first["params"]["later"] = "on"
    asked = pipe.ask(first)["result"]
    [(key, question)] = asked["inputRequests"].items()
    again = call("whole", id=2, requestState=asked["requestState"], inputResponses={key: YES}, **meta)
    pipe.put(again)
    told = []
    while (found := pipe.take()).get("id") != 2:
        told.append(found)
    return told, question["params"], found["result"]


def call_of_2025(pipe: Pipe) -> tuple[list[Message], Message, Message]:
    """Call `whole` as a client of the handshake era: the notifications, the question, and the result."""
    pipe.shake_hands()
    pipe.ask(request("tools/list", id=8))
    meta = {**MINE, "progressToken": 7}
    pipe.put(request("tools/call", {"name": "whole", "arguments": {}, "later": "on", "_meta": meta}))
    told: list[Message] = []
    question: Message = {}
    while (found := pipe.take()).get("id") != 1:
        if found.get("method") == "elicitation/create":
            question = found["params"]
            pipe.put({"jsonrpc": "2.0", "id": found["id"], "result": YES})
        else:
            told.append(found)
    return told, question, found["result"]


def params_of(told: list[Message], method: str, **fields: Any) -> Message:
    """The params of the notification of this method with these fields."""
    found = [one["params"] for one in told if one.get("method") == method]
    [said] = [one for one in found if fields.items() <= one.items()]
    return dict(said)


@PAIRS
@pytest.mark.parametrize("client", [call_of_2025, call_of_2026])
def test_meta_unknown_fields_and_unknown_content_pass_in_both_directions(
    tmp_path: Path, server: str, client: Any
) -> None:
    """U8: only keys that afoot owns are replaced."""
    front = Front(tmp_path, {"raw": python("tests.providers.upstream.raw_server", server)}, own=())
    with Pipe(front) as pipe:
        told, question, result = client(pipe)
    got = result["structuredContent"]
    assert MINE.items() <= got["request"]["_meta"].items()
    assert got["request"]["later"] == "on"
    assert got["request"]["_meta"]["progressToken"] != 7
    assert (got["answer"]["_meta"], got["answer"]["mood"]) == (MINE, 4)
    assert (question["_meta"], question["later"]) == (OWN, True)
    progress = params_of(told, "notifications/progress", progress=1)
    assert OWN.items() <= progress["_meta"].items()
    assert (progress["later"], progress["progressToken"]) == ([1], 7)
    said = params_of(told, "notifications/message")
    assert (said["data"], said["_meta"], said["later"]) == ({"a": 1}, OWN, 2)
    assert [item["_meta"] for item in result["content"]] == [OWN, OWN]
    assert result["content"][1]["depth"] == 3
    assert result["later"] == {"b": None}
    assert OWN.items() <= result["_meta"].items()
    assert result["_meta"]["dev.afoot/call"] != "not yours"
    assert result["_meta"]["progressToken"] == 7
    assert (result["_meta"]["dev.afoot/server"], result["_meta"]["dev.afoot/tool"]) == ("raw", "whole")
