"""A call as JSON: what is there only sometimes, and who is said to have answered."""

from msgspec import Raw, json

from afoot.core.call import fold
from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    Failure,
    Finished,
    Opened,
    Question,
    Released,
    Reported,
    Started,
    Trace,
)
from afoot.serve.api.views import call_view, encode_json, full_call_view


def test_processor_time_and_trace_are_shown_where_they_are_known() -> None:
    """V3, V4, G1: a call in a process of its own, and one of a caller that traces."""
    trace = Trace("00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    opened = Opened(1.0, "tool", "local", "local", Raw(b"{}"), trace=trace)
    call = fold("c1", [opened, Started(1.0), Finished(2.0, "ok", cpu_s=1.5), Released(2.0, cpu_s=1.75)])
    shown = json.decode(encode_json(call_view(call, 3.0)))
    assert (shown["cpu_s"], shown["trace"]) == (1.75, "a" * 32)
    plain = fold("c2", [Opened(1.0, "tool", "local", "local", Raw(b"{}")), Started(1.0)])
    shown = json.decode(encode_json(call_view(plain, 3.0)))
    assert "cpu_s" not in shown and shown["trace"] is None and "redacted" not in shown
    assert json.decode(encode_json(full_call_view(plain, [], 3.0)))["redacted"] == []


def test_why_a_call_did_not_end_well_is_what_it_says_last() -> None:
    """V4, H3: in a list as in the history, also while its tool has not stopped yet."""
    opened = Opened(1.0, "tool", "local", "local", Raw(b"{}"))
    end = Finished(2.0, "failed", failure=Failure("too many requests"))
    shown = call_view(fold("c1", [opened, Started(1.0), Reported(1.5, message="half"), end]), 3.0)
    assert shown.message == "too many requests"


def test_who_answered_is_the_caller_unless_it_is_said() -> None:
    """A3, Q4: the caller, the operator and where, or nobody of them."""
    answers = {
        "q1": Answer("accept", by="session:1"),
        "q2": Answer("accept", by="operator", surface="console", who="s1"),
        "q3": Answer("decline", by="engine"),
    }
    asked = [Asked(1.0, Question(key, key, "form")) for key in answers]
    said = [Answered(2.0, key, answer) for key, answer in answers.items()]
    opened = Opened(1.0, "tool", "local", "local", Raw(b"{}"))
    shown = full_call_view(fold("c1", [opened, Started(1.0), *asked, *said]), [], 3.0)
    found = [one["answer"] for one in json.decode(encode_json(shown))["settled"]]
    assert [(one["by"], one["surface"], one["who"]) for one in found] == [
        ("session:1", "caller", None), ("operator", "console", "s1"), ("engine", "", None)
    ]  # fmt: skip
