"""The handshake era: what is read, and that what is sent fits the official types of each version."""

from typing import Any

import msgspec
import pytest
from mcp_types.methods import parse_server_notification, parse_server_request, parse_server_result
from msgspec import UNSET, Raw

from afoot.core.facts import Question
from afoot.wire import mcp_2025
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, read
from afoot.wire.resources import server_capabilities
from afoot.wire.results import Capabilities

INFO = Raw(b'{"name":"afoot","version":"0.1.0"}')
versions = pytest.mark.parametrize("version", mcp_2025.VERSIONS)


def message(method: str, **params: object) -> Envelope:
    """A request with these params."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return read(msgspec.json.encode(body))


def told(frame: bytes) -> dict[str, Any]:
    """The message in a frame."""
    decoded: dict[str, Any] = msgspec.json.decode(frame)
    return decoded


@versions
def test_the_welcome_fits_the_version_that_was_asked_for(version: str) -> None:
    """Deliver 2: 2024-11-05 to 2025-11-25."""
    hello = mcp_2025.read_initialize(message("initialize", protocolVersion=version, capabilities={}))
    result = told(
        mcp_2025.initialize_result(
            1, hello, INFO, "be kind", server_capabilities(subscribe=True, completions=True)
        )
    )["result"]
    parse_server_result("initialize", version, result)
    assert result["protocolVersion"] == version and "resultType" not in result


@pytest.mark.parametrize("asked", ["2026-07-28", "1999-01-01", ""])
def test_an_unknown_version_gets_our_newest_of_this_era(asked: str) -> None:
    """Deliver 2: the client decides whether that will do."""
    assert mcp_2025.read_initialize(message("initialize", protocolVersion=asked)).version == "2025-11-25"


@pytest.mark.parametrize(
    ("params", "field"),
    [({}, "params.protocolVersion: missing"), ({"protocolVersion": 5}, "params.protocolVersion"),
     ({"protocolVersion": "2025-11-25", "capabilities": {"roots": 5}}, "params.capabilities.roots")],
)  # fmt: skip
def test_a_wrong_hello_names_the_field(params: dict[str, Any], field: str) -> None:
    """Bad input: -32602."""
    with pytest.raises(Fault) as caught:
        mcp_2025.read_initialize(message("initialize", **params))
    assert caught.value.code == INVALID_PARAMS and caught.value.message.startswith(field)


def test_a_call_is_read_with_what_its_session_knows() -> None:
    """T1, C3: token and budget from `_meta`, capabilities and level from the session."""
    meta = {"progressToken": 7, "dev.afoot/budget": {"idle_s": 2}}
    asked = message("tools/call", name="export", arguments={"pages": 3}, _meta=meta)
    want = mcp_2025.read_call(asked, Capabilities(roots={}), "warning")
    assert (want.id, want.name, bytes(want.arguments)) == (1, "export", b'{"pages":3}')
    assert (want.token, want.level, want.budget.idle_s, want.state) == (7, "warning", 2, None)
    assert want.capabilities.can("roots") and not want.capabilities.can("form")


def test_a_call_without_a_token_has_none() -> None:
    """T1: and may have no arguments either."""
    want = mcp_2025.read_call(message("tools/call", name="export"), Capabilities(), None)
    assert want.token is UNSET and bytes(want.arguments) == b"{}"


@pytest.mark.parametrize(
    ("params", "field"),
    [({}, "params.name: missing"), ({"name": "x", "arguments": 5}, "params.arguments"),
     ({"name": "x", "_meta": {"progressToken": [1]}}, "params._meta.progressToken"),
     ({"name": "x", "_meta": {"progressToken": True}}, "params._meta.progressToken")],
)  # fmt: skip
def test_a_wrong_call_names_the_field(params: dict[str, Any], field: str) -> None:
    """Bad input: also a token of the wrong type."""
    with pytest.raises(Fault) as caught:
        mcp_2025.read_call(message("tools/call", **params), Capabilities(), None)
    assert caught.value.code == INVALID_PARAMS and caught.value.message.startswith(field)


def test_a_list_has_one_page() -> None:
    """Bad input: an unknown cursor is -32602."""
    mcp_2025.read_list(message("tools/list"))
    with pytest.raises(Fault, match=r"params\.cursor"):
        mcp_2025.read_list(message("tools/list", cursor="x"))


def test_a_level_is_one_of_those_there_are() -> None:
    """Bad input: the levels are named."""
    assert mcp_2025.read_level(message("logging/setLevel", level="debug")) == "debug"
    with pytest.raises(Fault, match=r"params\.level: must be one of debug, info"):
        mcp_2025.read_level(message("logging/setLevel", level="loud"))


def test_a_cancel_names_its_request() -> None:
    """X1: with a reason or without."""
    cancelled = mcp_2025.read_cancelled(message("notifications/cancelled", requestId="a", reason="enough"))
    assert (cancelled.requestId, cancelled.reason) == ("a", "enough")
    assert mcp_2025.read_cancelled(message("notifications/cancelled")).requestId is None


@pytest.mark.parametrize(
    "question",
    [
        Question(
            "c.1", "who", "form", "your name?", Raw(b'{"type":"object","properties":{"n":{"type":"string"}}}')
        ),
        Question("c.2", "sure", "form", "sure?"),
        Question("c.3", "model", "sample", body=Raw(b'{"messages":[],"maxTokens":5}')),
        Question("c.4", "roots", "roots"),
    ],
)
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_question_is_a_request_that_fits_the_official_types(question: Question, version: str) -> None:
    """Q1: a nested request."""
    asked = told(mcp_2025.question_request("afoot-1", question))
    parse_server_request(asked["method"], version, asked["params"])
    assert asked["id"] == "afoot-1" and "mode" not in asked["params"]


@versions
def test_notices_fit_the_official_types(version: str) -> None:
    """A5, U5: withdrawn questions and changed lists."""
    changed = [mcp_2025.changed_notification(kind) for kind in ("tools", "prompts", "resources")]
    changed.append(mcp_2025.changed_notification("resource", "file:///a"))
    for frame in (mcp_2025.cancel_notification("afoot-1", "answered by operator"), *changed):
        sent = told(frame)
        parse_server_notification(sent["method"], version, sent["params"])
