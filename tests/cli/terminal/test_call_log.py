"""A call's story as lines, from facts and readings alone."""

import re
from typing import Any

import msgspec

from afoot.cli.terminal.call_log import MAX_SHOWN_READINGS, StoredReading, choose_items, log_lines
from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    CancelRequested,
    Entry,
    Fact,
    Failure,
    Finished,
    Interrupted,
    Logged,
    Opened,
    Question,
    Reading,
    Redefined,
    Released,
    Reported,
    Started,
)

PARTIAL = msgspec.Raw(b'[{"type": "text", "text": "row 1\\nrow 2"}]')
ID = "0" * 24 + "1a2b3c4d"


def told(
    *items: Fact | StoredReading,
    view: dict[str, Any] | None = None,
    below: list[dict[str, Any]] | None = None,
    **opened: Any,
) -> list[str]:
    """The story of a call that was opened at 100 s, and of which then these came."""
    first = Opened(100.0, "count", "local", "operator", msgspec.Raw(b'{"n": 5}'), **opened)
    entries: list[Entry | StoredReading] = [Entry(ID, 1, first)]
    for item in items:
        number = 1 + sum(isinstance(one, Entry) for one in entries)
        entries.append(item if isinstance(item, StoredReading) else Entry(ID, number, item))
    return list(log_lines(entries, view, below or []))


def test_it_begins_with_how_the_call_ended_and_how_far_it_came() -> None:
    """V2: what one wants to know first."""
    last = Reading(104.0, 3, 5, "third")
    failure = Failure(
        "too many requests", retryable=True, retry_after_s=7.0, last=last, side_effects="possible"
    )
    lines = told(Started(100.1), StoredReading(last), Finished(105.0, "failed", failure=failure))
    assert lines[0].startswith(f"call {ID}: count on local, ")
    assert lines[1:6] == [
        "  failed after 5.0 s: too many requests", "  it had come to 3/5 third",
        "  it may be tried again in 7.0 s", "  side effects: possible", "",
    ]  # fmt: skip
    assert lines[6] == '    0.000  opened    count {"n": 5} by operator, approval auto'
    assert lines[-1] == "    5.000  finished  failed"


def test_the_operator_is_told_what_can_be_done_about_a_refusal() -> None:
    """A1, A8: the setting, which no model is told."""
    hint = 'set approval = "auto" in [tools."local/count"]'
    lines = told(Finished(101.0, "refused", failure=Failure("nobody can approve it", hint=hint)))
    assert lines[1:3] == ["  refused after 1.0 s: nobody can approve it", f"  what you can do: {hint}"]


def test_a_call_that_lives_is_told_as_it_stands() -> None:
    """V2: what it waits for, and what it asks."""
    question = Question(f"{ID}.1", "", "approval", "Run it?", to="operator")
    lines = told(Asked(101.0, question))
    assert lines[1:3] == ["  waiting for approval", "  it asks: Run it?"]
    assert lines[-1].endswith("asked     Run it? (question 1a2b3c4d.1)")
    assert told(Started(100.1), StoredReading(Reading(101.0, 1, 5, "one")))[1] == "  running, at 1/5 one"


def test_an_answer_says_who_how_where_and_how_long_it_took() -> None:
    """Q4, V2: people want to know who let it run."""
    asked = Asked(101.0, Question(f"{ID}.1", "", "approval", "Run it?"))
    said = Answer("accept", msgspec.Raw(b'{"decision": "run"}'), "operator", surface="terminal")
    [line] = [line for line in told(asked, Answered(105.0, f"{ID}.1", said)) if "answered" in line]
    want = 'accept {"decision": "run"} by operator in the terminal, 4.0 s after 1a2b3c4d.1'
    assert line == f"    5.000  answered  {want}"


def test_the_death_of_a_gateway_is_told_and_how_long_the_call_had_run() -> None:
    """V2, H4: its next attempt is to come, and one that had not begun has run for no time."""
    lines = told(Started(100.1), Interrupted(160.0, 12.34))
    assert lines[1] == "  next attempt"
    assert lines[-1] == "   60.000  interrupt the gateway died; it had run 12.3 s"
    assert told(Interrupted(160.0))[-1] == "   60.000  interrupt the gateway died"


def test_a_tool_that_has_changed_is_told() -> None:
    """V2, A7: and what its approval is now."""
    lines = told(Redefined(101.0, "another", approval="ask"))
    assert lines[-1] == "    1.000  redefined its tool has another definition now, approval ask"


def test_logs_partials_cancels_and_what_came_late_are_in_it() -> None:
    """V2: everything that was recorded."""
    lines = told(
        Started(100.0), Logged(100.5, "hello", "warning", "x"), Reported(101.0, partial=PARTIAL),
        CancelRequested(102.0, "operator", "enough"), Finished(103.0, "cancelled"),
        Reported(104.0, message="more", late=True), Released(105.0, "grace"),
    )  # fmt: skip
    words = [line.split()[1] for line in lines[lines.index("") + 1 :]]
    assert words == ["opened", "started", "logged", "reported", "cancel", "finished", "late", "released"]
    assert lines[-5].endswith("partial row 1 row 2") and lines[-1].endswith("after its grace, still running")


def test_of_many_readings_some_are_told_and_the_others_counted() -> None:
    """V2: the first, the last, and a few between; none is lost from the count."""
    reads = [StoredReading(Reading(100.0 + number, number, 499), 1) for number in range(500)]
    found = list(choose_items(reads))
    assert len(found) == MAX_SHOWN_READINGS and (found[0][0], found[-1][0]) == (reads[0], reads[-1])
    assert sum(left_out for _, left_out in found) + MAX_SHOWN_READINGS == 2 * 500
    assert [one for one, _ in choose_items(reads[:MAX_SHOWN_READINGS])] == reads[:MAX_SHOWN_READINGS]
    assert list(choose_items(reads[:1])) == [(reads[0], 1)] and list(choose_items([])) == []


def test_of_many_checkpoints_some_are_told_and_the_others_counted() -> None:
    """V2, H4: a tool that saves after each page fills no screen; what else it reports stays whole."""
    saved = [Reported(101.0 + number, checkpoint=msgspec.Raw(b'{"page": 1}')) for number in range(60)]
    rows = [Reported(200.0, partial=PARTIAL) for _ in range(20)]
    lines = told(Started(100.1), *saved, *rows)
    assert sum("checkpoint" in line for line in lines) == MAX_SHOWN_READINGS
    assert sum("partial" in line for line in lines) == 20
    counted = re.findall(r"\((\d+) more before it\)", "\n".join(lines))
    assert sum(map(int, counted)) + MAX_SHOWN_READINGS == 60
    assert (
        sum("checkpoint" in line for line in told(Started(100.1), *saved[:MAX_SHOWN_READINGS]))
        == MAX_SHOWN_READINGS
    )


def test_what_it_belongs_to_is_said_with_what_to_type() -> None:
    """V2: the call it repeats, the call above it, those below it, its trace."""
    view = {"children": {"total": 12, "live": 0, "failed": 3}, "trace": "ab" * 16}
    child = {
        "id": "c" * 32, "tool": "child", "outcome": "timed_out", "state": "finished", "opened": 101.0,
        "elapsed_s": 2.0, "progress": 1, "total": 4,
    }  # fmt: skip
    lines = told(view=view, below=[child], rerun_of="f" * 32, parent="e" * 32)
    for line in (
        "  again of call ffffffff: afoot log ffffffff", "  called by call eeeeeeee: afoot log eeeeeeee",
        "  called 12 others: 3 failed", f"  trace {'ab' * 16}",
        "    cccccccc  child  timed out  2.0 s  1/4", "    … 11 more",
    ):  # fmt: skip
        assert line in lines


def test_processor_time_is_said_where_it_was_measured() -> None:
    """G2, V2: of a call in a process of its own; what was told to stop may have gone on."""
    end = Finished(105.0, "ok", cpu_s=1.25)
    assert "  1.2 s of processor time" in told(Started(100.0), end)
    assert "  3.5 s of processor time" in told(Started(100.0), end, Released(106.0, cpu_s=3.5))
    assert not any("processor" in line for line in told(Started(100.0), Finished(105.0, "ok")))


def test_a_crash_is_told_with_its_place() -> None:
    """E3, V2: the trace is for the history, and here it is read."""
    trace = "Traceback:\n  File x\x1b[2J\nKeyError: 1\n"
    lines = told(Started(100.0), Finished(101.0, "failed", failure=Failure("it crashed", trace=trace)))
    assert [line.strip() for line in lines[-3:]] == ["| Traceback:", "|   File x␛[2J", "| KeyError: 1"]


def test_an_error_is_told_once() -> None:
    """E3, V2: neither the line of the end nor the end of the trace repeats it."""
    words = "ValueError: no such shop\nask for another"
    failure = Failure(f"tool count crashed: {words}", trace=f"Traceback:\n  File x\n{words}\n")
    lines = told(Started(100.0), Finished(101.0, "failed", failure=failure))
    assert sum("no such shop" in line for line in lines) == 1
    assert [line.strip() for line in lines[-2:]] == ["| Traceback:", "|   File x"]


def test_nothing_is_told_of_nothing() -> None:
    """V2: no facts, no story."""
    assert list(log_lines([])) == []
