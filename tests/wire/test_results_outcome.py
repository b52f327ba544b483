"""How an end is told: text for a model, the same in fields for programs."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from afoot.core.call import Call, evolve
from afoot.core.facts import Failure, Finished, Opened, Reading, Reported, Result, Started
from afoot.wire.results import (
    ToolCall,
    call_outcome,
    call_result,
    failure_meta,
    failure_text,
    reading_text,
)


@pytest.mark.parametrize(
    ("reading", "text"),
    [
        (Reading(1, 37, 120, "page 37"), "37/120: page 37"),
        (Reading(1, 37), "37"),
        (Reading(1, 1_234_567, 8_000_000), "1234567/8000000"),
        (Reading(1, 0.5, 1), "0.5/1"),
        (Reading(1, 0.42, 2, "step", "below"), "21 %: step"),
        (Reading(1, message="half way"), "half way"),
        (Reading(1, total=5), "an unknown point"),
        (Reading(1), "an unknown point"),
    ],
)
def test_how_far_it_got_reads_well(reading: Reading, text: str) -> None:
    """E2: numbers as a person writes them."""
    assert reading_text(reading) == text


def test_a_timeout_says_what_happened_how_far_it_got_and_what_may_be_done() -> None:
    """E2: a few short sentences."""
    failure = Failure(
        "timed out: no report for 30 s", "timeout", "idle_limit", True, clock="idle", elapsed_s=42.04,
        last=Reading(1, 3, 10, "page 3"), side_effects="possible",
    )  # fmt: skip
    assert failure_text(failure) == (
        "timed out: no report for 30 s. It had got to 3/10: page 3, 42.0 s after it was called. "
        "It may have had side effects. It may be tried again"
    )


def test_what_is_not_known_is_not_said() -> None:
    """E2: no progress, no side effects, no retry."""
    assert failure_text(Failure("no such page.", "not_found")) == "no such page"
    assert failure_text(Failure("slow down", "rate_limit", retryable=True, retry_after_s=7.5)) == (
        "slow down. Try again after 7.5 s"
    )


def test_the_fields_say_the_same_and_the_trace_stays_home() -> None:
    """E2, E3: for programs."""
    failure = Failure(
        "boom", "internal", "crash", retry_after_s=2.0, clock="idle", elapsed_s=3.0,
        last=Reading(1, 3, 10), trace="Traceback: secret",
    )  # fmt: skip
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(failure_meta(failure)))
    assert told == {
        "category": "internal", "code": "crash", "retryable": False, "retry_after_s": 2.0, "clock": "idle",
        "elapsed_s": 3.0, "last": {"at": 1, "progress": 3, "total": 10}, "side_effects": "none",
        "message": "boom",
    }  # fmt: skip


def ended(end: Finished, *partials: bytes) -> Result:
    """What the caller gets at this end."""
    call = Call("c", Opened(0.0, "tool", "bench", "local", Raw(b"{}")))
    evolve(call, Started(0.0))
    for partial in partials:
        evolve(call, Reported(1.0, partial=Raw(partial)))
    evolve(call, end)
    return call_outcome(call, end)


def texts(result: Result) -> list[str]:
    """The texts in a result."""
    items: list[dict[str, str]] = msgspec.json.decode(result.content)
    return [item["text"] for item in items]


def test_a_result_goes_out_as_the_tool_gave_it() -> None:
    """P11: the final result stays authoritative; partial ones are not repeated."""
    given = Result(Raw(b'[{"type":"text","text":"all"}]'), Raw(b'{"n":1}'))
    assert ended(Finished(2.0, "ok", given), b'[{"type":"text","text":"half"}]') is given


@pytest.mark.parametrize("kind", ["timed_out", "cancelled", "failed"])
def test_partial_results_are_attached_to_an_end_that_is_not_well(kind: str) -> None:
    """P11, E2: behind the words of the failure, in order; empty ones leave no hole."""
    end = Finished(2.0, kind, failure=Failure("too bad"))
    result = ended(end, b'[{"type":"text","text":"one"}]', b"[]", b'[{"type":"text","text":"two"}]')
    assert result.is_error and texts(result) == ["too bad", "one", "two"]


@pytest.mark.parametrize(
    ("partial", "told"),
    [
        (b"[]", {"afoot_error": "internal", "text": "too bad"}),
        (
            b'[{"type":"text","text":"one"}]',
            {"afoot_error": "internal", "text": "too bad", "partial": ["one"]},
        ),
        (b'[{"type":"image","data":"","mimeType":"image/png"}]', None),
        (b'[{"type":"text","text":7}]', None),
    ],
)
def test_an_error_is_whole_in_the_structured_content_or_not_there(partial: bytes, told: object) -> None:
    """F7, P11: some hosts read it alone, so it holds partial results too; an image has no place in it."""
    call = Call("c", Opened(0.0, "tool", "bench", "local", Raw(b"{}")))
    evolve(call, Reported(1.0, partial=Raw(partial)))
    end = Finished(2.0, "failed", failure=Failure("too bad"))
    want = ToolCall(1, "tool", Raw(b"{}"))
    for structures_errors in (True, False):
        frame = call_result(want, call, end, structures_errors=structures_errors)
        found = msgspec.json.decode(frame)["result"].get("structuredContent")
        assert found == (told if structures_errors else None)


def test_what_a_cancelled_tool_returned_is_attached_too() -> None:
    """X2: after the partial results that came before."""
    end = Finished(
        2.0, "cancelled", Result(Raw(b'[{"type":"text","text":"rest"}]')), Failure("cancelled: enough")
    )
    assert texts(ended(end, b'[{"type":"text","text":"one"}]')) == ["cancelled: enough", "one", "rest"]
