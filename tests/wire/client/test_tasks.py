"""Tasks of servers: bytes in, typed values out."""

from typing import Any

import pytest
from msgspec import Raw, json

from afoot.wire.client import tasks as client_tasks
from afoot.wire.client.outgoing import Dialect
from afoot.wire.jsonrpc import Fault

INFO = Raw(b"{}")
TAKES_TASKS: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
TASKS = "io.modelcontextprotocol/tasks"


@pytest.mark.parametrize(
    ("support", "version", "capabilities", "is_task"),
    [
        ("required", "2025-11-25", TAKES_TASKS, True),
        ("optional", "2025-11-25", TAKES_TASKS, False),
        ("required", "2025-06-18", TAKES_TASKS, False),
        ("required", "2026-07-28", TAKES_TASKS, False),
        ("required", "2025-11-25", {"tasks": {"requests": {}}}, False),
        ("required", "2025-11-25", {"tasks": 1}, False),
    ],
)
def test_a_call_is_a_task_only_where_tool_server_and_version_want_it(
    support: str, version: str, capabilities: dict[str, object], is_task: bool
) -> None:
    """U9: a plain call has more to show, so it is preferred."""
    assert client_tasks.runs_as_task_2025(support, Dialect(version, INFO), capabilities) is is_task


@pytest.mark.parametrize(
    ("code", "data", "requires"),
    [
        (-32021, {"requiredCapabilities": {"extensions": {TASKS: {}}}}, True),
        (-32021, {"requiredCapabilities": {"elicitation": {}}}, False),
        (-32021, None, False),
        (-32602, {"requiredCapabilities": {"extensions": {TASKS: {}}}}, False),
    ],
)
def test_a_refusal_says_that_tasks_must_be_declared(code: int, data: object, requires: bool) -> None:
    """U9: and no other refusal does."""
    assert client_tasks.requires_tasks(Fault(code, "no", data=data)) is requires


@pytest.mark.parametrize(
    ("fields", "poll_s"),
    [({}, 1.0), ({"pollInterval": 50}, 0.05), ({"pollIntervalMs": 0}, 0.02), ({"pollIntervalMs": 1e12}, 300)],
)
def test_the_interval_of_a_server_is_kept_within_reason(fields: dict[str, float], poll_s: float) -> None:
    """U9: neither a busy loop nor for ever."""
    assert client_tasks.read_task(Raw(json.encode({"taskId": "t", **fields}))).poll_s == poll_s


def test_what_is_no_task_is_none() -> None:
    """U9, T2: garbage is an error in words, or nothing."""
    with pytest.raises(Fault, match="no task"):
        client_tasks.read_task(Raw(b'{"status":"working"}'))
    assert client_tasks.read_created_2025(Raw(b'{"content":[]}')) is None
    assert client_tasks.read_task(Raw(b'{"taskId":"t","_meta":{"dev.afoot/progress":7}}')).details is None
    related = b'{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}'
    assert client_tasks.related_task(Raw(related)) == "t"
    assert client_tasks.related_task(Raw(related.replace(b'{"taskId":"t"}', b"7"))) is None


def test_tasks_are_declared_beside_the_extensions_of_the_caller() -> None:
    """U9, U8: the caller's stay."""
    key = "io.modelcontextprotocol/clientCapabilities"
    declared = client_tasks.with_tasks_declared({key: {"extensions": {"x.example/a": {}}}, "a": 1})
    assert declared == {key: {"extensions": {"x.example/a": {}, TASKS: {}}}, "a": 1}
