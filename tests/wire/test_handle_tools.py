"""The handle of a call that runs on, and schemas that allow it."""

import json
from typing import Any

import jsonschema_rs
import mcp_types as types
import pytest
from msgspec import Raw

from afoot.core.call import Call, note
from afoot.core.facts import NOTHING, Opened, Reading
from afoot.wire import handle_tools
from afoot.wire.results import ErrorMeta, ResultMeta, ToolCall

TREE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"top": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
    "required": ["top"],
    "additionalProperties": False,
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"const": 1}}},
    },
}  # fmt: skip


def wide(schema: object) -> dict[str, Any]:
    """The schema that a tool with this one is listed with."""
    definition = json.dumps({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema})
    found: dict[str, Any] = json.loads(bytes(handle_tools.with_handle_output(definition.encode())))
    return found["outputSchema"]


@pytest.mark.parametrize(
    "value, fits",
    [
        ({"afoot_call": "abc"}, True),
        ({"top": {"next": {"next": {"n": 1}}}}, True),
        ({"top": {}, "self": {"top": {"n": 1}}}, True),
        ({"top": {"next": {"n": 2}}}, False),
        ({"top": {}, "self": {}}, False),
        ({"top": {}, "more": 1}, False),
        ({"afoot_call": 7}, False),
        ({}, False),
    ],
)
def test_a_widened_schema_allows_the_handle_and_what_it_allowed_before(value: object, fits: bool) -> None:
    """H5: pointers into the schema still lead where they led."""
    assert jsonschema_rs.is_valid(wide(TREE), value) == fits
    if "afoot_call" not in str(value):
        assert jsonschema_rs.is_valid(TREE, value) == fits


def test_a_widened_schema_says_at_its_root_that_it_is_an_object() -> None:
    """H5: clients of the handshake era take no other; on 2026-07-28 a result may be anything."""
    assert wide(TREE)["type"] == "object" and wide(TREE)["$schema"] == TREE["$schema"]
    listed = wide({"type": "array", "items": {"type": "integer"}})
    assert "type" not in listed
    assert jsonschema_rs.is_valid(listed, [1]) and not jsonschema_rs.is_valid(listed, ["a"])


def test_data_in_a_schema_stays_data() -> None:
    """H5: what looks like a pointer in a default, an enum or a property's name is none."""
    schema = {
        "type": "object",
        "properties": {
            "$ref": {"type": "string"},
            "a": {"default": {"$ref": "#/x"}, "enum": [{"$ref": "#"}]},
        },
    }
    assert wide(schema)["anyOf"][0] == schema


def test_a_property_may_have_any_name() -> None:
    """H5: one that is called as a keyword is still a property, and its pointer moves."""
    schema = {"type": "object", "properties": {"default": {"$ref": "#"}, "$id": {"type": "string"}}}
    assert wide(schema)["anyOf"][0]["properties"] == {
        "default": {"$ref": "#/anyOf/0"}, "$id": {"type": "string"},
    }  # fmt: skip


def test_a_schema_with_an_id_keeps_its_pointers() -> None:
    """H5: what has an id is the root of its own pointers."""
    inner = {"$id": "https://a.example/inner", "$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}
    schema = {"type": "object", "properties": {"a": inner}}
    assert wide(schema)["anyOf"][0] == schema
    assert wide({**TREE, "$id": "https://a.example/tree"})["anyOf"][0]["properties"]["self"] == {"$ref": "#"}


def test_a_tool_without_an_output_schema_is_listed_as_it_is() -> None:
    """H5: nothing is promised, so nothing is broken."""
    assert bytes(handle_tools.with_handle_output(b'{"name":"t"}')) == b'{"name":"t"}'


@pytest.mark.parametrize("name", list(handle_tools.TOOLS))
def test_the_three_tools_are_described_for_a_model(name: str) -> None:
    """H5: as the official types want them, and short."""
    tool = types.Tool.model_validate(json.loads(bytes(handle_tools.TOOLS[name])))
    assert tool.name == name and tool.description is not None and len(tool.description) < 250
    assert tool.annotations is not None and tool.annotations.read_only_hint == (name != handle_tools.CANCEL)


def result(frame: bytes) -> dict[str, Any]:
    """The result in a frame."""
    found: dict[str, Any] = json.loads(frame)["result"]
    return found


def test_a_handle_says_which_call_how_far_and_what_to_do() -> None:
    """H5: text for the model, the id for programs; no error."""
    call = Call("c1", Opened(100.0, "export", "here", "local", Raw(b"{}")))
    want = ToolCall(3, "export", Raw(b"{}"), "tok")
    note(call, Reading(101.0, 37, 120, "page 37"))
    info = Raw(b'{"name":"afoot"}')
    modern = result(handle_tools.handle_result(want, call, 145.0, 0.0, info))
    text = modern["content"][0]["text"]
    assert "call c1 of tool export, queued, 45 s, at 37/120: page 37." in text
    assert 'call the tool afoot_wait with {"call": "c1"}' in text
    assert modern["structuredContent"] == {"afoot_call": "c1", "text": text} and not modern.get("isError")
    assert (modern["resultType"], modern["_meta"]["dev.afoot/call"]) == ("complete", "c1")
    assert modern["_meta"]["progressToken"] == "tok"
    older = result(handle_tools.handle_result(want, call, 145.0, 0.0, NOTHING))
    assert "resultType" not in older and "io.modelcontextprotocol/serverInfo" not in older["_meta"]
    assert (older["_meta"]["dev.afoot/server"], older["_meta"]["dev.afoot/tool"]) == ("here", "export")


def test_what_is_said_in_place_of_a_result_may_be_an_error() -> None:
    """E2: with its category for programs, and no call that it is about."""
    meta = ResultMeta(error=ErrorMeta("not_found", "x"))
    found = result(handle_tools.text_result(ToolCall(1, "t", Raw(b"{}")), "no", meta))
    assert found["isError"] and found["_meta"] == {"dev.afoot/error": {"category": "not_found", "code": "x"}}
