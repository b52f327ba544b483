"""Arguments mirrored in headers."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from afoot.wire.jsonrpc import Fault
from afoot.wire.mcp_2026 import ParamHeader, check_param_headers, param_headers

REGION = {"type": "string", "x-mcp-header": "Region"}


def of(**properties: Any) -> list[ParamHeader]:
    """The mirrors of a tool with these parameters."""
    return schema({"type": "object", "properties": properties})


def schema(found: Any) -> list[ParamHeader]:
    """The mirrors of a tool with this input schema."""
    return param_headers(msgspec.json.encode({"name": "x", "inputSchema": found}))


def agree(kind: str, value: object, sent: str | None, name: str = "n") -> bool:
    """Whether an argument and its header go together."""
    wanted = of(n={"type": kind, "x-mcp-header": "N"})
    headers = {} if sent is None else {"mcp-param-n": sent}
    try:
        check_param_headers(wanted, msgspec.json.encode({} if value is ... else {name: value}), headers)
    except Fault as fault:
        assert fault.code == -32020 and "mcp-param-N" in fault.message
        return False
    return True


def test_a_schema_may_mirror_strings_integers_and_booleans_also_inside_objects() -> None:
    """Deliver 2: reachable by properties alone."""
    found = of(
        region=REGION,
        size={"type": "integer", "x-mcp-header": "Size"},
        inner={"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}},
        plain={"type": "string"},
    )
    assert found == [
        ParamHeader(("region",), "Region", "string"),
        ParamHeader(("size",), "Size", "integer"),
        ParamHeader(("inner", "dry"), "Dry", "boolean"),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "string", "x-mcp-header": "not a token"},
        {"type": "string", "x-mcp-header": ""},
        {"type": "string", "x-mcp-header": 5},
        {"type": "number", "x-mcp-header": "Other"},
        {"type": ["string", "null"], "x-mcp-header": "Other"},
        {"x-mcp-header": "Other"},
        {"type": "string", "x-mcp-header": "REGION"},
        {"type": "array", "items": {"type": "string", "x-mcp-header": "Other"}},
        {"anyOf": [{"type": "string", "x-mcp-header": "Other"}, {"type": "null"}]},
        {"type": "object", "additionalProperties": {"type": "string", "x-mcp-header": "Other"}},
    ],
)
def test_one_annotation_that_is_not_valid_and_none_is_checked(wrong: dict[str, Any]) -> None:
    """Deliver 2: clients drop such a tool's annotations, so the server must not insist."""
    assert of(region=REGION, other=wrong) == []


@pytest.mark.parametrize(
    "found",
    [
        {"type": "object", "x-mcp-header": "Root", "properties": {"region": REGION}},
        {
            "type": "object",
            "properties": {"region": REGION},
            "$defs": {"d": {"type": "string", "x-mcp-header": "D"}},
        },
        {"type": "object", "properties": {"region": REGION}, "allOf": [{"properties": {"a": REGION}}]},
    ],
)
def test_an_annotation_where_none_may_be_counts_too(found: dict[str, Any]) -> None:
    """Deliver 2: at the root, in definitions, in alternatives."""
    assert schema(found) == []


@pytest.mark.parametrize(
    "harmless",
    [
        {"type": "object", "default": {"x-mcp-header": "no"}},
        {"enum": [{"x-mcp-header": "no"}]},
        {"type": "object", "properties": {"x-mcp-header": {"type": "string"}}},
        {"type": "object", "properties": None},
        True,
    ],
)
def test_what_only_looks_like_an_annotation_is_none(harmless: Any) -> None:
    """Deliver 2: values, and a parameter of that name."""
    assert len(of(region=REGION, other=harmless)) == 1


@pytest.mark.parametrize(
    ("kind", "value", "sent", "same"),
    [
        ("string", "eu", "eu", True),
        ("string", "eu", "EU", False),
        ("string", "", "", True),
        ("string", ..., None, True),
        ("string", None, None, True),
        ("string", ..., "eu", False),
        ("string", None, "eu", False),
        ("string", "eu", None, False),
        ("string", "käse", f"=?base64?{b64encode('käse'.encode()).decode()}?=", True),
        ("string", "eu", "=?base64?!?=", False),
        ("integer", 42, "42", True),
        ("integer", 42, "42.0", True),
        ("integer", 42.0, "42", True),
        ("integer", -7, "-7", True),
        ("integer", 42, "42.5", False),
        ("integer", 42, "43", False),
        ("integer", 42, "4e1", False),
        ("integer", 2, "²", False),
        ("integer", 42, f"=?base64?{b64encode('٤٢'.encode()).decode()}?=", False),
        ("integer", 42, "", False),
        ("integer", 42, "9" * 5000, False),
        ("boolean", True, "true", True),
        ("boolean", True, "True", False),
        ("boolean", False, "false", True),
        ("boolean", False, "0", False),
        ("string", {"a": 1}, None, True),
        ("string", [1], "x", False),
    ],
)
def test_header_and_argument_say_the_same_or_it_is_a_mismatch(
    kind: str, value: object, sent: str | None, same: bool
) -> None:
    """Bad input: -32020, naming the header."""
    assert agree(kind, value, sent) is same


def test_headers_that_nobody_asked_for_are_ignored() -> None:
    """Deliver 2: unknown Mcp-Param-* headers."""
    check_param_headers(
        of(region=REGION), b'{"region":"eu"}', {"mcp-param-region": "eu", "mcp-param-other": "x"}
    )


def test_an_argument_inside_something_that_is_no_object_is_absent() -> None:
    """Bad input: the path leads nowhere."""
    wanted = of(inner={"type": "object", "properties": {"region": REGION}})
    check_param_headers(wanted, b'{"inner":5}', {})
    with pytest.raises(Fault, match="arguments.inner.region"):
        check_param_headers(wanted, b'{"inner":5}', {"mcp-param-region": "eu"})


def test_arguments_that_cannot_be_compared_with_headers_are_refused() -> None:
    """S5: a number out of range is no failure of ours; found by the fuzzer."""
    with pytest.raises(Fault) as caught:
        check_param_headers(of(n={"type": "integer", "x-mcp-header": "N"}), b'{"n":1e999}', {})
    assert caught.value.code == -32602 and caught.value.message.startswith("params.arguments: ")
