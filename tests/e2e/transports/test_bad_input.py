"""Input that is wrong: the protocol's error, naming the field, and the connection lives on."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.e2e.raw_client import MODERN, PREFIX, Http, Message, Pipe, call, last, modern, request

LIMIT: Final = 300_000
DEEP: Final = 100_000


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that takes only small bodies."""
    with serving(tmp_path_factory.mktemp("strict"), {"max_body_bytes": LIMIT}) as started:
        yield started


def without(message: Message, key: str) -> Message:
    """The same, its `_meta` lacking a key."""
    meta = {name: value for name, value in message["params"]["_meta"].items() if name != PREFIX + key}
    return {**message, "params": {**message["params"], "_meta": meta}}


def deep(depth: int) -> bytes:
    """A call whose arguments are nested so deep."""
    text = json.dumps(call("add", {"a": 1, "b": "HERE"}))
    return text.replace('"HERE"', "[" * depth + "]" * depth).encode()


ADD: Final = call("add", {"a": 1, "b": 1})
# What is sent, and what must come back: the status, the code, and a word that names the place.
BODIES: Final[dict[str, tuple[Message | bytes, int, int, str]]] = {
    "nothing": (b"", 400, -32700, "JSON"),
    "no JSON": (b'{"jsonrpc": "2.0", ', 400, -32700, "JSON"),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"tools/\xff"}', 400, -32700, "JSON"),
    "half a surrogate": (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 400, -32700, "JSON"),
    "deep": (deep(DEEP), 400, -32700, "deep"),
    "a number": (b"7", 400, -32600, "message"),
    "a batch": (json.dumps([ADD, ADD]).encode(), 400, -32600, "batches"),
    "no version of JSON-RPC": ({**ADD, "jsonrpc": "1.0"}, 400, -32600, "jsonrpc"),
    "an id that is a fraction": ({**ADD, "id": 1.5}, 400, -32600, "id"),
    "an id that is null": ({**ADD, "id": None}, 400, -32600, "id"),
    "an id that is true": ({**ADD, "id": True}, 400, -32600, "id"),
    "a method that is a number": ({**ADD, "method": 5}, 400, -32600, "method"),
    "no method": ({"jsonrpc": "2.0", "id": 1}, 400, -32600, "method"),
    "params that are a list": ({**ADD, "params": [1]}, 400, -32602, "params"),
    "no name": (modern("tools/call", {"arguments": {}}), 400, -32602, "params.name"),
    "a name that is a number": (modern("tools/call", {"name": 5}), 400, -32602, "params.name"),
    "arguments that are text": (
        modern("tools/call", {"name": "add", "arguments": "a"}),
        400,
        -32602,
        "params.arguments",
    ),
    "a token that is a fraction": (call("add", progressToken=1.5), 400, -32602, "progressToken"),
    "a token that is true": (call("add", progressToken=True), 400, -32602, "progressToken"),
    "a token that is an object": (call("add", progressToken={}), 400, -32602, "progressToken"),
    "a state that is a number": (call("add", requestState=5), 400, -32602, "requestState"),
    "answers that are a list": (call("add", inputResponses=[1]), 400, -32602, "inputResponses"),
    "capabilities that are text": (call("add", capabilities="all"), 400, -32602, "clientCapabilities"),
    "no version of the protocol": (without(ADD, "protocolVersion"), 400, -32602, "protocolVersion"),
    "no capabilities": (without(ADD, "clientCapabilities"), 400, -32602, "clientCapabilities"),
    "no meta": (request("tools/call", {"name": "add"}), 400, -32602, "_meta"),
    "an unknown tool": (call("addd"), 400, -32602, "addd"),
    "an unknown method": (modern("tools/dance"), 404, -32601, "tools/dance"),
    "a method of the handshake era": (modern("ping"), 404, -32601, "ping"),
    "a cursor that is unknown": (modern("tools/list", {"cursor": "x"}), 400, -32602, "cursor"),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_wrong_body_is_told_and_the_connection_lives_on(gateway: Gateway, case: str) -> None:
    """E4, E5: the code, a message that names the place, and the next request is answered."""
    body, status, code, place = BODIES[case]
    with Http(gateway.url) as http:
        response = http.post(body, **({"mcp_method": "tools/call"} if isinstance(body, bytes) else {}))
        error = last(response)["error"]
        assert (response.status, error["code"]) == (status, code)
        assert place in error["message"]
        assert http.ask(ADD)["result"]["structuredContent"] == {"sum": 2}


@pytest.mark.parametrize("case", ["no name", "an unknown tool", "an unknown method", "a token that is true"])
def test_an_error_carries_the_id_of_its_request(gateway: Gateway, case: str) -> None:
    """E4: a client can tell which of its requests was wrong."""
    body = BODIES[case][0]
    assert isinstance(body, dict)
    with Http(gateway.url) as http:
        assert http.ask({**body, "id": "mine"})["id"] == "mine"


# Which headers are changed, and what must come back: the status, the code, and a word that names the place.
HEADERS: Final[dict[str, tuple[dict[str, str | None], int, int, str]]] = {
    "another host": ({"host": "evil.example.com"}, 421, -32600, "evil.example.com"),
    "our name, another port": ({"host": "127.0.0.1:1"}, 421, -32600, "host"),
    "another origin": ({"origin": "http://evil.example.com"}, 403, -32600, "origin"),
    "text as content": ({"content_type": "text/plain"}, 415, -32600, "content-type"),
    "nearly JSON": ({"content_type": "application/json-patch+json"}, 415, -32600, "content-type"),
    "no content type": ({"content_type": None}, 415, -32600, "content-type"),
    "takes no stream": ({"accept": "application/json"}, 406, -32600, "accept"),
    "takes no JSON": ({"accept": "text/event-stream"}, 406, -32600, "accept"),
    "no method": ({"mcp_method": None}, 400, -32020, "mcp-method"),
    "another method": ({"mcp_method": "tools/list"}, 400, -32020, "mcp-method"),
    "no name": ({"mcp_name": None}, 400, -32020, "mcp-name"),
    "another name": ({"mcp_name": "nap"}, 400, -32020, "mcp-name"),
    "an unknown version": ({"mcp_protocol_version": "1999-01-01"}, 400, -32020, "mcp-protocol-version"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_wrong_header_is_told_and_the_connection_lives_on(gateway: Gateway, case: str) -> None:
    """S1, E4: no request from elsewhere, and no header that contradicts the body."""
    changed, status, code, place = HEADERS[case]
    with Http(gateway.url) as http:
        response = http.post(ADD, **changed)
        error = last(response)["error"]
        assert (response.status, error["code"]) == (status, code)
        assert place in error["message"]
        assert http.ask(ADD)["result"]["structuredContent"] == {"sum": 2}


@pytest.mark.parametrize("path", ["/mcp", "/", "/nothing"])
@pytest.mark.parametrize("method", ["HEAD", "GET", "PUT", "DELETE", "OPTIONS"])
def test_every_method_is_answered(gateway: Gateway, method: str, path: str) -> None:
    """S1: whatever is asked of whichever path, an answer comes, and never a failure of ours."""
    with closing(HTTPConnection(urlsplit(gateway.url).netloc, timeout=3)) as connection:
        connection.request(method, path, headers={"mcp-protocol-version": MODERN})
        response = connection.getresponse()
        assert (response.status < 500, path != "/mcp" or response.status == 405) == (True, True)
        if response.status == 405:
            assert ("GET" if path == "/" else "POST") in str(response.getheader("allow"))


def test_a_body_that_is_too_large_is_refused_and_the_connection_lives_on(strict: Gateway) -> None:
    """G3: the limit and the key that raises it are named."""
    large = call("add", {"a": 1, "b": 1, "c": "x" * LIMIT})
    with Http(strict.url) as http:
        response = http.post(large)
        error = last(response)["error"]
        assert (response.status, error["code"]) == (413, -32600)
        assert str(LIMIT) in error["message"] and "max_body_bytes" in error["message"]
        assert http.ask(ADD)["result"]["structuredContent"] == {"sum": 2}


# The handshake era: what is sent, the status, the code, and a word that names the place.
OLDER: Final[dict[str, tuple[Message | bytes, int, int, str]]] = {
    "no JSON": (b"{", 400, -32700, "JSON"),
    "deep": (deep(DEEP), 400, -32700, "deep"),
    "a batch": (json.dumps([request("ping")]).encode(), 400, -32600, "batches"),
    "no name": (request("tools/call", {}), 200, -32602, "params.name"),
    "arguments that are a list": (
        request("tools/call", {"name": "add", "arguments": [1]}),
        200,
        -32602,
        "params.arguments",
    ),
    "a token that is a fraction": (
        request("tools/call", {"name": "add", "_meta": {"progressToken": 1.5}}),
        200,
        -32602,
        "progressToken",
    ),
    "an unknown method": (request("tools/dance"), 200, -32601, "tools/dance"),
    "an unknown level": (request("logging/setLevel", {"level": "loud"}), 200, -32602, "params.level"),
}


@pytest.mark.parametrize("case", OLDER)
def test_a_wrong_body_is_told_in_the_handshake_era(gateway: Gateway, case: str) -> None:
    """E4: the same in a session, which lives on."""
    body, status, code, place = OLDER[case]
    with Http(gateway.url) as http:
        http.shake_hands()
        response = http.post(body)
        error = last(response)["error"]
        assert (response.status, error["code"]) == (status, code)
        assert place in error["message"]
        assert http.ask(request("ping"))["result"] == {}


def test_sessions_that_are_missing_or_unknown_are_told(gateway: Gateway) -> None:
    """E4: 400 without a session, 404 for one that is unknown or was ended."""
    with Http(gateway.url) as http:
        response = http.post(request("tools/list"), mcp_protocol_version="2025-11-25")
        assert (response.status, "mcp-session-id" in last(response)["error"]["message"]) == (400, True)
        http.session = "unknown"
        response = http.post(request("tools/list"))
        assert (response.status, last(response)["error"]["code"]) == (404, -32600)


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unknown"}},
        {"jsonrpc": "2.0", "method": "notifications/unheard-of"},
        {"jsonrpc": "2.0", "id": "afoot-99", "result": {"action": "accept"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ],
    ids=["bad cancel", "stray cancel", "unknown notification", "stray answer", "stray error"],
)
def test_stray_notifications_and_answers_are_taken_and_dropped(gateway: Gateway, body: Message) -> None:
    """E4: 202, nothing in the log, and the connection lives on."""
    with Http(gateway.url) as http:
        http.shake_hands()
        response = http.post(body)
        assert (response.status, response.read()) == (202, b"")
        assert http.ask(request("ping"))["result"] == {}
    assert "Traceback" not in gateway.said()


@pytest.mark.parametrize("era", ["2026-07-28", "handshake"])
def test_a_pipe_survives_everything(strict: Gateway, era: str, fresh: Callable[[], str]) -> None:
    """E4, G3: each wrong line is answered with the protocol's error, and the next one is served."""
    own = Gateway(strict.folder / f"pipe {era}", {"max_body_bytes": LIMIT})
    good: Callable[..., Message] = call if era == "2026-07-28" else older_call
    wrong: list[tuple[Message | bytes, int, str]] = [
        (b'{"jsonrpc": "2.0", ', -32700, "JSON"),
        (b"\xff\xfe", -32700, "JSON"),
        (deep(DEEP), -32700, "deep"),
        (b"[1, 2]", -32600, "batches"),
        (json.dumps({**good("add"), "id": 1.5}).encode(), -32600, "id"),
        (json.dumps(good("add", {"c": "x" * LIMIT})).encode(), -32700, "max_body_bytes"),
        (good("addd", id="w"), -32602, "addd"),
        (good("add", id="w", progressToken=1.5), -32602, "progressToken"),
        ({**good("add", id="w"), "method": "tools/dance"}, -32601, "tools/dance"),
    ]
    with Pipe(own) as pipe:
        if era == "handshake":
            pipe.shake_hands()
        assert pipe.ask(good("add", {"a": 1, "b": 1}, id="first"))["result"]["structuredContent"]
        for line, code, place in wrong:
            pipe.put(line)
            answer = pipe.take()
            assert (answer["error"]["code"], answer["id"]) == (code, "w" if isinstance(line, dict) else None)
            assert place in answer["error"]["message"]
        assert pipe.ask(good("add", {"a": 2, "b": 1}, id="last"))["result"]["structuredContent"] == {"sum": 3}
        assert pipe.close() == 0
    assert "Traceback" not in own.said()


@pytest.mark.parametrize("era", ["2026-07-28", "handshake"])
def test_an_id_that_is_in_use_is_refused_on_a_pipe(
    strict: Gateway, era: str, fresh: Callable[[], str]
) -> None:
    """C8: -32600 naming the id; the first request goes on. T1: a token in use is served without progress."""
    tag = fresh()
    own = Gateway(strict.folder / f"ids {era}")
    good: Callable[..., Message] = call if era == "2026-07-28" else older_call
    with Pipe(own) as pipe:
        if era == "handshake":
            pipe.shake_hands()
        pipe.put(good("nap", {"tag": tag, "sleep_s": 0.5}, id=7))
        own.until_marked(tag, "started")
        pipe.put(good("nap", {"sleep_s": 0.0}, id=7))
        refused = pipe.take()
        assert (refused["id"], refused["error"]["code"]) == (7, -32600)
        assert "7" in refused["error"]["message"]
        assert pipe.take()["result"]["content"][0]["text"] == "slept"


def older_call(tool: str, arguments: Message | None = None, id: int | str = 1, **meta: Any) -> Message:
    """A `tools/call` of the handshake era."""
    return request("tools/call", {"name": tool, "arguments": arguments or {}, "_meta": meta}, id)


def test_stdin_and_stdout_may_be_files(strict: Gateway, tmp_path: Path) -> None:
    """H1: what a shell makes of `<` and `>` is served as a pipe is, to its end."""
    own = Gateway(strict.folder / "files")
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    asked.write_text(json.dumps(modern("server/discover")) + "\n")
    with asked.open() as source, answered.open("w") as sink:
        done = subprocess.run(
            own.command("--stdio"), stdin=source, stdout=sink, env=own.environment, timeout=10, check=False
        )
    assert done.returncode == 0
    assert json.loads(answered.read_text())["result"]["supportedVersions"] == [MODERN]
