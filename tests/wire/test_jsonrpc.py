"""Envelopes: what is a request, and which words a wrong one gets."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.jsonrpc import JSONRPCError

from afoot.wire.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Fault, read, read_params
from afoot.wire.results import error_response


class Wanted(msgspec.Struct):
    """Params of a made-up method."""

    name: str
    inner: dict[str, int] = {}


DECODER = msgspec.json.Decoder(Wanted)


def fault_of(body: bytes) -> Fault:
    """The fault that this body causes."""
    with pytest.raises(Fault) as caught:
        read(body)
    return caught.value


@pytest.mark.parametrize("request_id", [0, 1, -1, 2**53, 2**64, 10**30, "", "a", "käse"])
def test_a_request_keeps_its_id_as_it_was(request_id: int | str) -> None:
    """T1: strings and integers of any size, unchanged."""
    message = read(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": "x"}))
    assert message.is_request and message.id == request_id and type(message.id) is type(request_id)
    answered = msgspec.json.decode(error_response(Fault(INVALID_REQUEST, "no"), request_id))
    assert answered["id"] == request_id


def test_requests_notifications_and_responses_are_told_apart() -> None:
    """Deliver 2: by what they have, not by what they say."""
    notification = read(b'{"jsonrpc":"2.0","method":"x"}')
    response = read(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    failed = read(b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}')
    assert (notification.is_request, notification.is_notification, notification.is_response) == (
        False,
        True,
        False,
    )
    assert response.is_response and failed.is_response and not response.is_request


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nonsense", b'{"a":}', b"\xff\xfe", b'{"jsonrpc":"2.0",}', b'{"a":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"deep":"\xff"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    """Bad input: malformed, not UTF-8 anywhere, nested too deep."""
    fault = fault_of(body)
    assert (fault.code, fault.status, fault.id) == (PARSE_ERROR, 400, None)


@pytest.mark.parametrize(
    ("body", "field", "request_id"),
    [
        (b"null", "message", None),
        (b"5", "message", None),
        (b"{}", "jsonrpc", None),
        (b'{"id":3,"method":"x"}', "jsonrpc", 3),
        (b'{"jsonrpc":"1.0","id":"a","method":"x"}', "jsonrpc", "a"),
        (b'{"jsonrpc":2.0,"id":3,"method":"x"}', "message.jsonrpc", 3),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', "message.method", 7),
        (b'{"jsonrpc":"2.0","id":7}', "method", 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', "id", None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', "message.id", None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', "message.id", None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', "message.id", None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"x"}', "message.id", None),
    ],
)
def test_a_wrong_envelope_names_the_field_and_echoes_the_id(
    body: bytes, field: str, request_id: int | str | None
) -> None:
    """Bad input: the protocol's error, with a message that says what to change."""
    fault = fault_of(body)
    assert (fault.code, fault.id) == (INVALID_REQUEST, request_id)
    assert fault.message.startswith(f"{field}:")
    JSONRPCError.model_validate_json(error_response(fault))


@pytest.mark.parametrize("body", [b"[]", b'  [{"jsonrpc":"2.0","id":1,"method":"x"}]'])
def test_batches_are_refused(body: bytes) -> None:
    """Deliver 6: -32600."""
    fault = fault_of(body)
    assert fault.code == INVALID_REQUEST and "batches" in fault.message


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"{}", "params.name: missing"),
        (b'{"name":5}', "params.name: expected str, got int"),
        (b'{"name":"x","inner":{"a":"b"}}', "params.inner[...]: expected int, got str"),
        (b"[1]", "params: expected object, got array"),
        (b"null", "params: expected object, got null"),
    ],
)
def test_wrong_params_name_the_field(sent: bytes, told: str) -> None:
    """Bad input: wrong types, with the path to them."""
    message = read(b'{"jsonrpc":"2.0","id":7,"method":"x","params":' + sent + b"}")
    with pytest.raises(Fault) as caught:
        read_params(message, DECODER)
    assert (caught.value.code, caught.value.message, caught.value.id) == (INVALID_PARAMS, told, 7)


def test_missing_params_are_an_empty_object() -> None:
    """Deliver 2: so that the missing field is named."""
    with pytest.raises(Fault, match=r"params\.name: missing"):
        read_params(read(b'{"jsonrpc":"2.0","id":7,"method":"x"}'), DECODER)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_in_its_own_way(body: bytes) -> None:
    """Bad input: a Fault, or a message; never a crash."""
    try:
        read(body)
    except Fault as fault:
        assert fault.code in (PARSE_ERROR, INVALID_REQUEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "other"])


@given(st.dictionaries(FIELDS, JSON | st.just("2.0"), max_size=6))
def test_no_json_makes_the_reader_fail_in_its_own_way(message: dict[str, object]) -> None:
    """Bad input: whatever stands in the fields."""
    try:
        body = msgspec.json.encode(message)
    except (OverflowError, UnicodeEncodeError):
        return
    try:
        found = read(body)
        read_params(found, DECODER)
    except Fault as fault:
        assert fault.code in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS)
        JSONRPCError.model_validate_json(error_response(fault))


@pytest.mark.parametrize(
    "rest", [b'"meth', b'"params":' + b"[" * 100_000, b'"params":' + b"[" * 9999 + b"]" * 9999 + b"}"]
)
def test_what_is_wrong_in_two_ways_is_wrong_once(rest: bytes) -> None:
    """E4: a field of the wrong type, and then no end, or one too deep: a fault like any other."""
    with pytest.raises(Fault) as found:
        read(b'{"jsonrpc":2,"id":1,' + rest)
    assert found.value.code in (INVALID_REQUEST, PARSE_ERROR)
