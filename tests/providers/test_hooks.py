"""Hooks before a call: who is asked, in which order, and what a failure does."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.config.settings import Hook
from afoot.core.call import Call
from afoot.core.facts import Failure, Finished, Opened, Question, Reading, Result, Started
from afoot.core.ports import Tool
from afoot.errors import ToolError
from afoot.providers import hook_runner
from afoot.providers.hooks import HookSet, call_event, end_event, progress_event, question_event
from tests.core.calls_by_state import lived

Body = Callable[[dict[str, Any]], object]
TOOL = Tool("export", "local", Raw(b"{}"))


def call(arguments: bytes = b'{"n":1}', parent: str | None = None) -> Call:
    """A call that waits."""
    return Call("c1", Opened(10.0, "export", "local", "me", Raw(arguments), parent=parent))


def hooks(
    monkeypatch: pytest.MonkeyPatch, *bodies: Body, required: bool = False, tools: str = "*"
) -> HookSet:
    """Hooks before a call that are these functions, in this order."""
    find: Callable[[str], Body] = lambda named: bodies[int(named)]  # noqa: E731
    monkeypatch.setattr(hook_runner, "_find_function", find)
    made = HookSet(
        [
            Hook("before_call", python=str(number), required=required, tools=tools)
            for number in range(len(bodies))
        ]
    )
    made.load()
    return made


async def test_nobody_who_says_anything_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: None means that the arguments are the caller's."""
    made = hooks(monkeypatch, lambda event: None, lambda event: {})
    assert await made.before(call(), TOOL) is None
    assert made.counted == {"run": 2}


async def test_each_hook_sees_what_the_one_before_made_of_the_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K1: several run in the order of the settings."""

    def add(event: dict[str, Any]) -> dict[str, Any]:
        return {"arguments": {"n": event["arguments"]["n"] * 10 + 1}}

    made = hooks(monkeypatch, add, lambda event: None, add)
    assert bytes(await made.before(call(), TOOL) or b"") == b'{"n":111}'
    assert made.counted == {"run": 3, "amended": 2}


async def test_a_refusal_ends_it_and_no_further_hook_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: the text goes to the caller."""
    asked = list[int]()
    made = hooks(monkeypatch, lambda event: {"refuse": "not on Sundays"}, lambda event: asked.append(1))
    with pytest.raises(ToolError, match="export was not run: a hook refused it: not on Sundays") as caught:
        await made.before(call(), TOOL)
    assert (caught.value.category, caught.value.code, asked) == ("refused", "hook_refused", [])
    assert made.counted["refused"] == 1


async def test_a_failing_hook_never_hurts_the_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """K1: it is logged, counted, told to the call's log, and the next one is asked."""
    made, lines = hooks(monkeypatch, lambda event: [][0], lambda event: {"arguments": {"n": 2}}), list[str]()
    made.log_to_call = lambda of, text: lines.append(f"{of}: {text}")
    with caplog.at_level(logging.WARNING, "afoot.hooks"):
        assert bytes(await made.before(call(), TOOL) or b"") == b'{"n":2}'
    assert made.counted == {"failed": 1, "run": 1, "amended": 1}
    assert lines == ["c1: before_call hook 0 failed: IndexError: list index out of range"]
    assert lines[0].removeprefix("c1: ") in caplog.text


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (Hook("before_call", "false", required=True), "before_call hook false exited with 1"),
        (Hook("before_call", "no-such-program", required=True), "hook no-such-program cannot be run"),
        (Hook("before_call", python="no.such:check", required=True), "hook no.such:check cannot be loaded"),
        (Hook("before_call", "sleep 1000", required=True, timeout_s=0.01), "took longer than 0.01 s"),
    ],
)
async def test_a_required_hook_that_fails_refuses_the_call_and_is_named(hook: Hook, why: str) -> None:
    """K1: it fails, cannot be found, or takes too long."""
    made = HookSet([hook])
    made.load()
    with pytest.raises(ToolError, match=f"export was not run: the required .*{why}") as caught:
        await made.before(call(), TOOL)
    assert (caught.value.category, caught.value.code) == ("refused", "hook_failed")


async def test_a_hook_for_other_tools_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: its pattern says for which."""
    made = hooks(monkeypatch, lambda event: {"refuse": "no"}, tools="other/*", required=True)
    assert await made.before(call(), TOOL) is None and not made.counted
    assert made.has("before_call") and not made.has("on_end")


def as_json(event: dict[str, Any]) -> Any:
    """An event as a command reads it."""
    return json.decode(json.encode(event))


def test_every_event_says_which_call_it_is_of() -> None:
    """K1, U12: id, tool, server and its name there, caller, and the call above where there is one."""
    event = as_json(call_event("before_call", call(), Raw(b'{"n":2}')))
    about = {"id": "c1", "tool": "export", "server": "local", "name": "export", "caller": "me"}
    assert event == {"hook": "before_call", "call": about, "arguments": {"n": 2}}
    assert as_json(call_event("on_end", call(parent="c0")))["call"]["parent"] == "c0"
    assert as_json(call_event("on_end", call(b"")))["arguments"] == {}


def test_progress_and_questions_are_told_as_they_were_said() -> None:
    """K1: numbers that are missing are null."""
    event = as_json(progress_event(call(), Reading(1.0, 3.0, None, "three")))
    assert (event["progress"], event["total"], event["message"]) == (3.0, None, "three")
    body = Raw(b'{"type":"object"}')
    event = as_json(question_event("on_question", call(), Question("c1.1", "q1", "form", "sure?", body)))
    assert event["question"] == {
        "id": "c1.1", "key": "q1", "kind": "form", "message": "sure?", "body": {"type": "object"},
    }  # fmt: skip


def test_an_end_is_told_with_result_and_duration() -> None:
    """K1: the seconds count from the tool's start."""
    end = Finished(15.5, "ok", Result(Raw(b'[{"type":"text","text":"x"}]'), Raw(b'{"x":1}')))
    event = as_json(end_event("after_call", lived(call().opened, Started(12.0), end), end))
    assert (event["outcome"], event["duration_s"], event["hook"]) == ("ok", 3.5, "after_call")
    assert event["result"] == {"content": [{"type": "text", "text": "x"}], "structured": {"x": 1}}
    assert "failure" not in event


def test_an_end_without_a_start_is_told_with_its_failure() -> None:
    """K1: it took no time, and has no result."""
    end = Finished(15.5, "refused", failure=Failure("no", "refused", "skipped"))
    event = as_json(end_event("on_end", lived(call().opened, end), end))
    assert (event["outcome"], event["duration_s"], "result" in event) == ("refused", 0.0, False)
    assert (event["failure"]["message"], event["failure"]["code"]) == ("no", "skipped")


def test_a_huge_result_is_told_by_its_size() -> None:
    """K1, G3: what waits for a hook is bounded."""
    end = Finished(15.5, "ok", Result(Raw(b'["' + b"x" * hook_runner.MAX_OUTPUT_BYTES + b'"]')))
    event = as_json(end_event("on_end", lived(call().opened, Started(12.0), end), end))
    assert "result" not in event and event["result_bytes"] == hook_runner.MAX_OUTPUT_BYTES + 4
