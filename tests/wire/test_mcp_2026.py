"""The ladder of 2026-07-28: which rung a wrong request falls from, and the answers that start no call."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import parse_server_notification, parse_server_result
from msgspec import Raw

from afoot.core.facts import Question
from afoot.wire import mcp_2026
from afoot.wire.jsonrpc import Fault, read
from afoot.wire.mcp_2026 import decode_header
from afoot.wire.resources import server_capabilities

INFO = Raw(b'{"name":"afoot","version":"0.1.0"}')
PREFIX = "io.modelcontextprotocol/"
META: dict[str, Any] = {f"{PREFIX}protocolVersion": mcp_2026.VERSION, f"{PREFIX}clientCapabilities": {}}
HEADERS = {"mcp-protocol-version": mcp_2026.VERSION, "mcp-method": "tools/call", "mcp-name": "export"}


def call(
    meta: object = META, headers: dict[str, str] | None = HEADERS, **fields: object
) -> mcp_2026.ToolCall:
    """Read a tools/call with these parts."""
    body: dict[str, object] = {"name": "export", "arguments": {}, "_meta": meta, **fields}
    kept = {key: value for key, value in body.items() if value is not ...}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": kept}
    return mcp_2026.read_call(read(msgspec.json.encode(message)), headers)


def without(key: str) -> dict[str, Any]:
    """The `_meta` without one of its keys."""
    return {name: value for name, value in META.items() if name != f"{PREFIX}{key}"}


def code_of(**parts: Any) -> tuple[int, str]:
    """Code and message of the fault that this request causes."""
    with pytest.raises(Fault) as caught:
        call(**parts)
    assert caught.value.status == 400
    return caught.value.code, caught.value.message


def test_a_request_with_everything_is_read() -> None:
    """T1, C3, P11: token, level, capabilities, budget, answers and state."""
    want = call(
        {**META, "progressToken": "t", f"{PREFIX}logLevel": "info", "dev.afoot/budget": {"left_s": 9.5},
         "dev.afoot/partial": True, f"{PREFIX}clientCapabilities": {"elicitation": {}, "sampling": {}}},
        arguments={"pages": 3}, inputResponses={"q1": {"action": "accept"}}, requestState="s",
    )  # fmt: skip
    assert (want.id, want.name, bytes(want.arguments)) == (1, "export", b'{"pages":3}')
    assert (want.token, want.level, want.budget.left_s, want.partial, want.state) == (
        "t",
        "info",
        9.5,
        True,
        "s",
    )
    assert [want.capabilities.can(kind) for kind in ("form", "url", "sample", "roots")] == [
        True,
        False,
        True,
        False,
    ]
    assert bytes(want.answers["q1"]) == b'{"action":"accept"}'


@pytest.mark.parametrize("arguments", [..., None, {}])
def test_arguments_may_be_missing(arguments: object) -> None:
    """Deliver 2: a tool without parameters."""
    assert bytes(call(arguments=arguments).arguments) == b"{}"


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        # 9: the envelope comes before the headers
        ({"meta": ...}, -32602, "params._meta"),
        ({"meta": 5}, -32602, "params._meta: expected object"),
        ({"meta": {}}, -32602, "protocolVersion"),
        ({"meta": without("protocolVersion")}, -32602, "protocolVersion"),
        ({"meta": without("clientCapabilities")}, -32602, "clientCapabilities"),
        ({"meta": without("clientCapabilities"), "headers": {}}, -32602, "clientCapabilities"),
        # wrong types, named
        ({"meta": {**META, "progressToken": 1.5}}, -32602, "params._meta.progressToken"),
        ({"meta": {**META, "progressToken": None}}, -32602, "params._meta.progressToken"),
        ({"meta": {**META, f"{PREFIX}clientCapabilities": []}}, -32602, "clientCapabilities"),
        ({"name": 5}, -32602, "params.name"),
        ({"name": ...}, -32602, "params.name: missing"),
        ({"arguments": [1]}, -32602, "params.arguments"),
        ({"arguments": "x"}, -32602, "params.arguments"),
        ({"inputResponses": []}, -32602, "params.inputResponses"),
        ({"requestState": 5}, -32602, "params.requestState"),
        # 10: headers and body agree
        ({"headers": {}}, -32020, "mcp-protocol-version: missing"),
        ({"headers": {**HEADERS, "mcp-protocol-version": "2025-11-25"}}, -32020, "mcp-protocol-version"),
        ({"headers": {**HEADERS, "mcp-method": "TOOLS/CALL"}}, -32020, "mcp-method"),
        ({"headers": {key: HEADERS[key] for key in list(HEADERS)[:2]}}, -32020, "mcp-name: missing"),
        ({"headers": {**HEADERS, "mcp-name": "import"}}, -32020, "mcp-name"),
        ({"headers": {**HEADERS, "mcp-name": "=?base64?ZXhwb3J0?"}}, -32020, "mcp-name"),
        ({"headers": {**HEADERS, "mcp-name": "=?base64?!?="}}, -32020, "mcp-name"),
        ({"meta": {**META, f"{PREFIX}protocolVersion": "v999.0.0"}}, -32020, "mcp-protocol-version"),
        # 11: versions
        ({"meta": {**META, f"{PREFIX}protocolVersion": 5}}, -32602, "protocolVersion"),
    ],
)  # fmt: skip
def test_the_ladder(parts: dict[str, Any], code: int, words: str) -> None:
    """Bad input: the first rung that fails is told."""
    found, message = code_of(**parts)
    assert found == code and words in message


def test_an_unknown_version_is_told_which_there_are() -> None:
    """Deliver 2: supported and requested, in header and body alike."""
    meta = {**META, f"{PREFIX}protocolVersion": "v999.0.0"}
    with pytest.raises(Fault) as caught:
        call(meta, {**HEADERS, "mcp-protocol-version": "v999.0.0"})
    assert caught.value.code == -32022
    assert caught.value.data == {"supported": [mcp_2026.VERSION], "requested": "v999.0.0"}


def test_a_transport_without_headers_has_fewer_rungs() -> None:
    """Deliver 5: stdio."""
    assert call(headers=None).name == "export"
    assert code_of(headers=None, meta={**META, f"{PREFIX}protocolVersion": "v9"})[0] == -32022


def test_a_name_may_come_wrapped() -> None:
    """Deliver 2: what no header can hold is base64."""
    name = "käse\n"
    wrapped = f"=?base64?{b64encode(name.encode()).decode()}?="
    assert call(name=name, headers={**HEADERS, "mcp-name": wrapped}).name == name


@pytest.mark.parametrize("broken", ["SGVsbG8", "SGVsbG9=", "SGVs bG8=", "SGVsbG8-", "/w=="])
def test_a_broken_wrapping_matches_nothing(broken: str) -> None:
    """Bad input: bad padding, not canonical, bad alphabet, not UTF-8."""
    assert decode_header(f"=?base64?{broken}?=") is None


@given(st.text())
def test_what_is_wrapped_comes_out_again(text: str) -> None:
    """Deliver 2: for every text that UTF-8 can hold."""
    try:
        wrapped = b64encode(text.encode()).decode()
    except UnicodeEncodeError:
        return
    assert decode_header(f"=?base64?{wrapped}?=") == text


def result_of(answer: bytes, method: str) -> dict[str, Any]:
    """The result in a response, checked against the official types."""
    message = msgspec.json.decode(answer)
    assert (message["jsonrpc"], message["id"]) == ("2.0", 1)
    parse_server_result(method, mcp_2026.VERSION, message["result"])
    return message["result"]


def test_discovery_says_who_we_are_and_what_we_speak() -> None:
    """Deliver 2: checked against the official types."""
    found = result_of(
        mcp_2026.discover_result(1, INFO, "", server_capabilities(subscribe=True, completions=True)),
        "server/discover",
    )
    assert found["supportedVersions"] == [mcp_2026.VERSION] and found["resultType"] == "complete"
    assert found["_meta"][f"{PREFIX}serverInfo"]["name"] == "afoot"
    assert {"ttlMs", "cacheScope"} <= found.keys() and {"prompts", "resources", "tools"} <= found[
        "capabilities"
    ].keys()


@pytest.mark.parametrize(
    ("method", "field"),
    [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources"),
     ("resources/templates/list", "resourceTemplates")],
)  # fmt: skip
def test_empty_lists_fit_the_official_types(method: str, field: str) -> None:
    """Deliver 6: with ttlMs and cacheScope."""
    assert (
        result_of(mcp_2026.complete_result(1, INFO, **{field: []}, **mcp_2026.CACHE_FIELDS), method)[field]
        == []
    )


def test_a_round_carries_every_kind_of_question() -> None:
    """Q1 f: form, url, sample and roots in one, checked against the official types."""
    schema = Raw(b'{"type":"object","properties":{"name":{"type":"string"}}}')
    asked = [
        Question("c.1", "who", "form", "your name?", schema),
        Question("c.2", "where", "url", "log in", Raw(b'"https://example.com/"')),
        Question("c.3", "model", "sample", body=Raw(b'{"messages":[],"maxTokens":5}')),
        Question("c.4", "roots", "roots"),
        Question("c.5", "sure", "form", "sure?"),
    ]
    found = result_of(mcp_2026.input_required_result(1, INFO, asked, "state"), "tools/call")
    assert found["resultType"] == "input_required" and found["requestState"] == "state"
    methods = {key: entry["method"] for key, entry in found["inputRequests"].items()}
    assert methods == {
        "who": "elicitation/create", "where": "elicitation/create", "model": "sampling/createMessage",
        "roots": "roots/list", "sure": "elicitation/create",
    }  # fmt: skip
    assert "ttlMs" not in found


def test_a_round_without_questions_only_asks_to_come_again() -> None:
    """Deliver 5: state only."""
    assert "inputRequests" not in result_of(
        mcp_2026.input_required_result(1, INFO, [], "state"), "tools/call"
    )


def test_the_frames_of_a_listen_stream_carry_its_id() -> None:
    """Deliver 6: acknowledgement, notice and end, checked against the official types."""
    told = mcp_2026.listen_notification(
        "notifications/subscriptions/acknowledged", 7, notifications=mcp_2026.ListenFilter(True)
    )
    changed = mcp_2026.listen_notification("notifications/tools/list_changed", 7)
    for frame in (told, changed):
        message = msgspec.json.decode(frame)
        parse_server_notification(message["method"], mcp_2026.VERSION, message["params"])
        assert message["params"]["_meta"][f"{PREFIX}subscriptionId"] == 7
    assert msgspec.json.decode(told)["params"]["notifications"] == {"toolsListChanged": True}
    over = result_of(mcp_2026.listen_result(1, INFO), "subscriptions/listen")
    assert over["_meta"][f"{PREFIX}subscriptionId"] == 1


def test_what_is_missing_is_named_as_an_object() -> None:
    """Deliver 6: -32021 with requiredCapabilities."""
    fault = mcp_2026.missing_capability({"sampling": {}})
    assert (fault.code, fault.status) == (-32021, 400)
    assert fault.data == {"requiredCapabilities": {"sampling": {}}}


def test_an_unknown_method_is_not_found() -> None:
    """Bad input: 404 and -32601, naming it."""
    fault = mcp_2026.unknown_method("tools/cal")
    assert (fault.code, fault.status) == (-32601, 404) and "tools/cal" in fault.message
