"""Frames: progress that rises, results of both eras, answers; checked against the official types."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.methods import parse_server_notification, parse_server_result
from msgspec import Raw

from afoot.core.call import Call, ProgressSeries, evolve
from afoot.core.facts import (
    NOTHING,
    Answer,
    Failure,
    Finished,
    Logged,
    Opened,
    Question,
    Reading,
    Reported,
    Result,
    Started,
)
from afoot.wire import results
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.results import Capabilities, FrameMeta, ToolCall

INFO = Raw(b'{"name":"afoot","version":"0.1.0"}')
ERAS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
eras = pytest.mark.parametrize("version", ERAS)
numbers = st.one_of(st.none(), st.integers(0, 10**15), st.floats(0, 1e15))
told = st.builds(
    Reading,
    st.just(0.0),
    numbers,
    numbers,
    st.none() | st.text(max_size=3),
    st.sampled_from(["tool", "engine"]),
)


def call() -> Call:
    """A call that runs."""
    made = Call("c1", Opened(0.0, "tool", "bench", "local", Raw(b"{}")))
    evolve(made, Started(0.0))
    return made


def sent(frame: bytes) -> dict[str, Any]:
    """The message in a frame."""
    decoded: dict[str, Any] = msgspec.json.decode(frame)
    return decoded


@given(st.lists(told, min_size=1, max_size=30))
def test_progress_always_rises_and_never_passes_its_total(readings: list[Reading]) -> None:
    """P4: strictly, whatever the tool says."""
    series = ProgressSeries()
    values = [series.rise(reading) for reading in readings]
    for (before, _), (after, _) in zip(values, values[1:], strict=False):
        assert after > before
    assert all(total is None or total >= value for value, total in values)


@given(st.lists(told, max_size=20), st.floats(0, 1e15))
def test_a_value_that_is_higher_goes_out_unchanged(readings: list[Reading], value: float) -> None:
    """P4: notices and messages never use up the tool's numbers."""
    series = ProgressSeries()
    for reading in readings:
        series.rise(reading)
    if series.last is None or value > series.last:
        before = series.repaired
        assert series.rise(Reading(0.0, value))[0] == value and series.repaired == before


def test_a_report_without_a_number_says_so() -> None:
    """P1, P8: a gateway in front can tell it from a tool that reported a millionth."""
    series = ProgressSeries()
    frames = [
        msgspec.json.decode(results.progress_notification("t", series, reading))["params"]
        for reading in (Reading(1.0, message="words"), Reading(2.0, 3.0), Reading(3.0, message="more"))
    ]
    told = [frame.get("_meta", {}).get("dev.afoot/progress") for frame in frames]
    assert told == [{"indeterminate": True}, None, {"indeterminate": True}]


def test_a_day_of_messages_does_not_use_up_the_next_whole_number() -> None:
    """P4: 86,400 notices between 41 and 42."""
    series = ProgressSeries()
    series.rise(Reading(0.0, 41.0, 100.0))
    for _ in range(86_400):
        series.rise(Reading(0.0, message="still here", source="engine"))
    assert series.rise(Reading(0.0, 42.0, 100.0)) == (42.0, 100.0)


def test_steps_are_small_and_the_total_goes_up_with_them() -> None:
    """P4: backwards, message only, and at the total."""
    series = ProgressSeries()
    said = [(5.0, 10.0), (3.0, 10.0), (None, None), (10.0, 10.0), (10.0, 10.0), (11.0, 10.0)]
    out = [series.rise(Reading(0.0, value, total)) for value, total in said]
    assert out == [
        (5.0, 10.0),
        (5.000001, 10.0),
        (5.000002, 10.0),
        (10.0, 10.0),
        (10.000001, 10.000001),
        (11.0, 11.0),
    ]
    assert series.repaired == 2


def test_a_tool_without_numbers_gets_the_smallest_steps_and_no_total() -> None:
    """P1: indeterminate."""
    series = ProgressSeries()
    out = [series.rise(Reading(0.0, message="busy")) for _ in range(3)]
    assert out == [(0.0, None), (1e-06, None), (2e-06, None)]


def test_a_notice_of_the_engine_never_shows_a_total_of_its_own_or_all_of_it() -> None:
    """T5: no total, and no 100 %."""
    series = ProgressSeries()
    notice = Reading(0.0, message="running, 45 s", source="engine")
    assert series.rise(notice) == (0.0, None)
    series.rise(Reading(0.0, 10.0, 10.0))
    assert series.rise(notice)[1] is None


@eras
@pytest.mark.parametrize("token", ["t", 7])
def test_progress_fits_the_official_types(version: str, token: int | str) -> None:
    """P6, T1: with the caller's token as it was."""
    frame = sent(results.progress_notification(token, ProgressSeries(), Reading(0.0, 1, 2, "page")))
    parse_server_notification(frame["method"], version, frame["params"])
    assert frame["params"] == {"progressToken": token, "progress": 1, "total": 2, "message": "page"}


def test_what_was_repaired_is_shown_beside_it() -> None:
    """P4: the tool's own number travels in `_meta`."""
    series = ProgressSeries(last=5.0)
    frame = sent(results.progress_notification("t", series, Reading(0.0, 3.0, 10.0)))
    assert frame["params"]["progress"] == 5.000001
    assert frame["params"]["_meta"]["dev.afoot/progress"] == {"progress": 3.0, "total": 10.0}


def test_data_and_partial_results_travel_in_meta_for_those_who_want_them() -> None:
    """P7, P11: the message stays the readable fallback."""
    report = Reported(0.0, 1, 1, 2, "page", Raw(b'{"phase":1}'), Raw(b'[{"type":"text","text":"half"}]'))
    every = results.frame_meta(report, call(), True)
    less = results.frame_meta(report, call(), False)
    assert isinstance(every, FrameMeta) and isinstance(less, FrameMeta)
    frame = sent(results.progress_notification("t", ProgressSeries(), Reading(0.0, 1, 2, "page"), every))[
        "params"
    ]
    assert frame["message"] == "page" and frame["_meta"]["dev.afoot/partial"] == [
        {"type": "text", "text": "half"}
    ]
    assert frame["_meta"]["dev.afoot/progress"] == {"data": {"phase": 1}}
    assert b"partial" not in results.encode(less)
    assert results.frame_meta(Reported(0.0, progress=1.0), call(), True) is None


def test_a_notice_says_that_it_is_the_engine_and_on_whom_it_waits() -> None:
    """T5, C6: source and waiting_on."""
    waiting = call()
    waiting.open["q"] = Question("q", "k", "form")
    meta = results.frame_meta(Reading(0.0, message="waiting", source="engine"), waiting, False)
    assert msgspec.json.decode(results.encode(meta)) == {
        "dev.afoot/progress": {"source": "engine", "waiting_on": "person"}
    }


@eras
@pytest.mark.parametrize("structured", [b"", b'{"n":1}', b"[1]", b"5", b"null"])
def test_a_result_fits_the_official_types_of_its_era(version: str, structured: bytes) -> None:
    """T3: only 2026-07-28 has a result type and structures of any kind; before, it must be an object."""
    given = Result(Raw(b'[{"type":"text","text":"done"}]'), Raw(structured) if structured else NOTHING)
    end = Finished(1.0, "ok", given)
    modern = version == "2026-07-28"
    want = ToolCall(1, "tool", Raw(b"{}"), "t")
    answer = results.call_result(want, call(), end, modern=INFO if modern else NOTHING)
    result = sent(answer)["result"]
    parse_server_result("tools/call", version, result)
    assert ("resultType" in result) is modern and "isError" not in result
    assert ("structuredContent" in result) is (bool(structured) and (modern or structured[:1] == b"{"))
    assert result["_meta"]["progressToken"] == "t" and result["_meta"]["dev.afoot/call"] == "c1"


def test_a_token_is_echoed_only_if_there_was_one() -> None:
    """T3: and the history says if it was not written."""
    end = Finished(1.0, "ok", Result(Raw(b"[]")))
    result = sent(results.call_result(ToolCall("a", "tool", Raw(b"{}")), call(), end, unrecorded=True))[
        "result"
    ]
    meta = {"dev.afoot/call": "c1", "dev.afoot/history": "unrecorded"}
    assert result == {"content": [], "_meta": {**meta, "dev.afoot/server": "bench", "dev.afoot/tool": "tool"}}


@eras
def test_a_failure_is_an_error_result_with_its_fields_in_meta(version: str) -> None:
    """E2: readable text for the model, the same for programs, and no trace."""
    failure = Failure("boom", "timeout", "idle_limit", True, clock="idle", elapsed_s=30.0, trace="secret")
    end = Finished(30.0, "timed_out", failure=failure)
    modern = INFO if version == "2026-07-28" else NOTHING
    answer = results.call_result(ToolCall(1, "tool", Raw(b"{}")), call(), end, modern=modern)
    result = sent(answer)["result"]
    parse_server_result("tools/call", version, result)
    assert result["isError"] and result["content"][0]["text"].startswith("boom")
    assert result["_meta"]["dev.afoot/error"]["clock"] == "idle" and b"secret" not in answer


@eras
def test_a_log_line_fits_the_official_types(version: str) -> None:
    """Deliver 6: ctx.log."""
    frame = sent(results.log_notification(Logged(0.0, "hello", "warning")))
    parse_server_notification(frame["method"], version, frame["params"])
    assert frame["params"] == {"level": "warning", "logger": "tool", "data": "hello"}


@pytest.mark.parametrize(
    ("wanted", "level", "goes"),
    [("info", "info", True), ("info", "debug", False), ("debug", "emergency", True), (None, "error", False),
     ("loud", "error", False), ("info", "loud", False)],
)  # fmt: skip
def test_a_caller_gets_the_level_it_asked_for_and_everything_above(
    wanted: str | None, level: str, goes: bool
) -> None:
    """Deliver 6: none for a level that is unknown."""
    assert results.is_log_wanted(wanted, level) is goes


@pytest.mark.parametrize(
    ("capabilities", "form", "url"),
    [(None, False, False), ({}, True, False), ({"form": {}}, True, False), ({"url": {}}, False, True),
     ({"form": {}, "url": {}}, True, True)],
)  # fmt: skip
def test_an_empty_elicitation_means_forms(
    capabilities: dict[str, object] | None, form: bool, url: bool
) -> None:
    """Q2: form and URL modes."""
    found = Capabilities(elicitation=capabilities)
    assert (found.can("form"), found.can("url")) == (form, url)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (b'{"action":"accept","content":{"n":1}}', Answer("accept", Raw(b'{"n":1}'), "me")),
        (b'{"action":"accept","content":null}', Answer("accept", by="me")),
        (b'{"action":"decline"}', Answer("decline", by="me")),
    ],
)
def test_an_elicited_answer_is_read(given: bytes, answer: Answer) -> None:
    """Q2: accept, decline, cancel."""
    assert results.read_answer(Question("q", "k", "form"), Raw(given), "me") == answer
    assert results.read_early_answer(Raw(given), "me") == answer


@pytest.mark.parametrize("given", [b"12345", b"[]", b"{}", b'{"action":5}', b"null"])
def test_an_answer_of_the_wrong_shape_names_the_field(given: bytes) -> None:
    """Q1 d: it is an error, never an answer."""
    with pytest.raises(Fault, match=r"inputResponses\.k") as caught:
        results.read_answer(Question("q", "k", "form"), Raw(given), "me")
    assert caught.value.code == INVALID_PARAMS


def test_what_a_model_said_is_taken_whole() -> None:
    """Q1: sampling and roots."""
    said = Raw(b'{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}')
    assert results.read_answer(Question("q", "k", "sample"), said, "me") == Answer("accept", said, "me")
    assert results.read_early_answer(said, "me") == Answer("accept", said, "me")


def test_an_error_without_a_known_id_says_null() -> None:
    """Bad input: clients need the key."""
    assert sent(results.error_response(Fault(-32700, "not JSON"))) == {
        "jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not JSON"}
    }  # fmt: skip
