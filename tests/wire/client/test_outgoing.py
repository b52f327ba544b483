"""The client's side of MCP: what it says in both eras, and what it makes of what comes back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from afoot.wire import mcp_2026
from afoot.wire.client import incoming, outgoing
from afoot.wire.client.outgoing import Dialect, RemainingBudget
from afoot.wire.jsonrpc import Fault
from afoot.wire.mcp_2026 import decode_header, has_invalid_param_headers, param_headers

ME = Raw(b'{"name":"afoot","version":"1"}')
OLD, NEW = Dialect(outgoing.VERSION_2025, ME), Dialect(outgoing.VERSION_2026, ME)
PREFIX = "io.modelcontextprotocol/"


def raw(value: Any) -> Raw:
    return Raw(json.encode(value))


def definition(**properties: Any) -> bytes:
    return json.encode({"name": "t", "inputSchema": {"type": "object", "properties": properties}})


def test_the_handshake_says_who_we_are_and_what_can_be_asked() -> None:
    """Q3: elicitation is always offered."""
    said = json.decode(outgoing.initialize_request(1, OLD))
    assert (said["jsonrpc"], said["id"], said["method"]) == ("2.0", 1, "initialize")
    assert said["params"]["protocolVersion"] == "2025-11-25"
    assert said["params"]["clientInfo"] == {"name": "afoot", "version": "1"}
    assert said["params"]["capabilities"]["elicitation"] == {"form": {}, "url": {}}


def test_on_2026_07_28_every_request_says_it() -> None:
    """U1: there is no handshake, so each request carries the envelope; what was there stays."""
    said = json.decode(outgoing.request(NEW, 7, "tools/list", {"cursor": "x", "_meta": {"a": 1}}, {"b": 2}))
    assert said["params"]["cursor"] == "x"
    assert said["params"]["_meta"] == {
        "a": 1,
        "b": 2,
        f"{PREFIX}protocolVersion": "2026-07-28",
        f"{PREFIX}clientInfo": {"name": "afoot", "version": "1"},
        f"{PREFIX}clientCapabilities": json.decode(outgoing.CAPABILITIES_OF_GATEWAY),
    }
    assert json.decode(outgoing.request(OLD, 7, "tools/list", {}, {}))["params"] == {}


def test_a_call_carries_its_budget_its_parent_and_the_wish_for_logs() -> None:
    """C3, P8: and no token of anybody else's (T2)."""
    meta = json.decode(json.encode(outgoing.call_meta("c1", RemainingBudget(None, 9.5), "info")))
    assert meta == {
        "dev.afoot/budget": {"left_s": 9.5},
        "dev.afoot/parent": {"call": "c1", "weight": 1},
        "dev.afoot/partial": True,
        f"{PREFIX}logLevel": "info",
    }


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [
        ("tools/call", {"name": "t"}, {"mcp-method": "tools/call", "mcp-name": "t"}),
        ("resources/read", {"uri": "a://b"}, {"mcp-method": "resources/read", "mcp-name": "a://b"}),
        ("prompts/get", {"name": "ö"}, {"mcp-method": "prompts/get", "mcp-name": "=?base64?w7Y=?="}),
        ("tools/list", {}, {"mcp-method": "tools/list"}),
    ],
)
def test_headers_repeat_the_body(method: str, params: dict[str, str], headers: dict[str, str]) -> None:
    """U1: 2026-07-28 routes by headers; before, only the version stands there, and not on the handshake."""
    assert outgoing.request_headers(NEW, method, params) == {"mcp-protocol-version": "2026-07-28", **headers}
    assert outgoing.request_headers(OLD, method, params) == {"mcp-protocol-version": "2025-11-25"}
    assert outgoing.request_headers(OLD, "initialize", {}) == {}


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_survives_a_header(text: str) -> None:
    """U1: what would not arrive as it is goes in base64, and is read back by our own server."""
    sent = mcp_2026.encode_header(text)
    assert sent.isascii() and sent == sent.strip() and (sent.isprintable() or not sent)
    assert decode_header(sent) == text


def test_arguments_are_mirrored_in_headers() -> None:
    """U1: Mcp-Param-*, for what is given only."""
    asked = definition(
        region={"type": "string", "x-mcp-header": "Region"},
        deep={"type": "object", "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
        none={"type": "integer", "x-mcp-header": "None"},
    )
    given = raw({"region": "ö", "deep": {"flag": True}})
    sent = outgoing.encode_param_headers(param_headers(asked), given)
    assert sent == {"mcp-param-Region": "=?base64?w7Y=?=", "mcp-param-Flag": "true"}
    assert outgoing.encode_param_headers([], given) == {}


@pytest.mark.parametrize(
    ("properties", "wrong"),
    [
        ({"a": {"type": "string", "x-mcp-header": "A"}}, False),
        ({"a": {"type": "number", "x-mcp-header": "A"}}, True),
        ({"a": {"type": "string", "x-mcp-header": "A B"}}, True),
        ({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}, True),
        ({"a": {"type": "string", "default": {"x-mcp-header": 1}}}, False),
    ],
)
def test_a_tool_whose_mirrors_are_not_valid_is_known(properties: dict[str, Any], wrong: bool) -> None:
    """U1: clients must leave such a tool out."""
    assert has_invalid_param_headers(definition(**properties)) is wrong


def test_notices_and_answers_have_the_protocols_form() -> None:
    """X1: a cancel names the request; an answer or a refusal names the server's."""
    assert json.decode(outgoing.cancel_notification(3, "why")) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 3, "reason": "why"},
    }
    assert json.decode(outgoing.result_response("x", {})) == {"jsonrpc": "2.0", "id": "x", "result": {}}
    refused = json.decode(outgoing.error_response(4, Fault(-1, "no")))
    assert refused == {"jsonrpc": "2.0", "id": 4, "error": {"code": -1, "message": "no"}}


@pytest.mark.parametrize(
    "line",
    [b"hello", b"{", b"[1,2]", b"\xff", b'"x"', b"17", b'{"id": {}}', b'{"id": 1.5}', b"[" * 9999, b"null"],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    """U1: a server may print anything."""
    with pytest.raises(Fault):
        incoming.read_message(line)


@pytest.mark.parametrize("line", [b'{"id":1,"result":{"a":NaN}}', b'{"id":1,"result":{"a":"\xff"}}'])
def test_what_other_servers_can_read_is_mended(line: bytes) -> None:
    """U1: Python writes NaN, and some write broken text; their answers count."""
    message = incoming.read_message(line)
    assert message.id == 1 and json.decode(message.result)["a"] in (None, "\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"progressToken": 1},
        {"progress": 1},
        {"progressToken": 1, "progress": "many"},
        {"progressToken": 1, "progress": None},
        {"progressToken": None, "progress": 1},
        {"progressToken": {}, "progress": 1},
        [],
    ],
)
def test_progress_without_token_or_number_is_none(params: object) -> None:
    """P4: it is counted and dropped by whoever reads it."""
    assert incoming.read_progress(raw(params)) is None


def test_progress_keeps_its_numbers_whatever_stands_beside_them() -> None:
    """U6: a message that is no text, or a `_meta` that is none of ours, costs only itself."""
    told = incoming.read_progress(raw({"progressToken": "a", "progress": 1, "message": 5, "_meta": 3}))
    assert told is not None and (told.token, told.progress, told.message) == ("a", 1, None)
    meta = {"dev.afoot/progress": {"source": "engine", "new": 1}, "x": 1}
    told = incoming.read_progress(raw({"progressToken": 1, "progress": 0.5, "total": 2, "_meta": meta}))
    assert told is not None and told.total == 2
    assert told.meta is not None and told.meta.details is not None and told.meta.details.source == "engine"


def test_a_result_is_kept_as_it_came() -> None:
    """U5: unknown fields of content survive."""
    found = incoming.read_result(
        Raw(b'{"content":[{"type":"new","x":1.0}],"structuredContent":[1, 2],"y":1}')
    )
    assert bytes(found.content) == b'[{"type":"new","x":1.0}]'
    assert bytes(found.structured) == b"[1, 2]"
    assert (found.kind, found.is_error) == ("complete", None)
    assert bytes(incoming.read_result(Raw(b"{}")).content) == b"[]"


@pytest.mark.parametrize(
    "result", [[], 1, {"content": {}}, {"content": None}, {"isError": "yes"}, {"resultType": 1}]
)
def test_a_result_that_is_none_is_refused(result: object) -> None:
    """U1: what cannot be passed on is an error, not a guess."""
    with pytest.raises(Fault):
        incoming.read_result(raw(result))


def test_pages_of_a_list_are_kept_apart() -> None:
    """U5: items stay as they came; the cursor says whether there is more."""
    items, cursor = incoming.read_list_page(Raw(b'{"tools":[{"a": 1}],"nextCursor":"n"}'), "tools")
    assert ([bytes(item) for item in items], cursor) == ([b'{"a": 1}'], "n")
    assert incoming.read_list_page(Raw(b"{}"), "tools") == ([], None)
    with pytest.raises(Fault):
        incoming.read_list_page(Raw(b'{"tools":5}'), "tools")


def test_pages_to_visit_are_found_in_the_error() -> None:
    """Q2: -32042 of 2025-11-25."""
    page = {"mode": "url", "elicitationId": "e", "url": "https://x", "message": "log in"}
    error = {"code": -32042, "message": "no", "data": {"elicitations": [page]}}
    (link,) = incoming.required_urls(incoming.read_error(raw(error)))
    assert (link.url, link.id, link.message) == ("https://x", "e", "log in")
    assert incoming.required_urls(incoming.read_error(raw({**error, "data": 1}))) == []
    assert incoming.required_urls(Fault(-32602, "no", data=error["data"])) == []
