"""The words by which a call is listed."""

from copy import deepcopy
from pathlib import Path

import pytest
from msgspec import Raw, Struct, json

from afoot.core.call import note
from afoot.core.facts import (
    Failure,
    Finished,
    Reading,
    Result,
)
from afoot.core.last_words import last_words, result_line
from tests.core.calls_by_state import commit, running

LINES = Path(__file__).parents[1] / "vectors" / "result_line.json"


class Line(Struct):
    """A result, and the line by which its call is listed."""

    name: str
    result: Result
    line: str


@pytest.mark.parametrize("one", json.decode(LINES.read_bytes(), type=list[Line]), ids=lambda one: one.name)
def test_a_call_that_ended_well_is_listed_by_its_result_in_a_line(one: Line) -> None:
    """V6: where the result is written for people, on the vectors of the console."""
    assert result_line(one.result) == one.line


def test_a_call_is_listed_by_why_it_failed_else_its_result_else_its_last_message() -> None:
    """V6: in the API, the history and the console alike."""
    call = running()
    assert last_words(call) is None
    note(call, Reading(1.0, 1.0, message="page 1"))
    assert last_words(call) == "page 1"
    data, words = (Result(Raw(json.encode([{"type": "text", "text": text}]))) for text in ("{}", "20 pages"))
    for result, told in ((data, "page 1"), (words, "20 pages")):
        ended = deepcopy(call)
        commit(ended, Finished(2.0, "ok", result))
        assert last_words(ended) == told
    commit(call, Finished(2.0, "failed", words, Failure("it broke")))
    assert last_words(call) == "it broke"
