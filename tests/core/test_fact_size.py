"""`fact_bytes` and `without_content`: how large facts are measured and emptied."""

import pytest
from msgspec import Raw

from afoot.core.fact_size import FACT_BYTES, fact_bytes, without_content
from afoot.core.facts import Fact, Finished, Logged, Opened, Released, Reported, Result

TEXT = Raw(b'[{"type":"text","text":"' + b"x" * 9000 + b'"}]')


@pytest.mark.parametrize(
    "fact",
    [
        Finished(1.0, "ok", Result(TEXT)),
        Reported(1.0, partial=TEXT),
        Reported(1.0, checkpoint=TEXT),
        Logged(1.0, "x" * 9000),
        Opened(1.0, "tool", "local", "caller", TEXT),
    ],
    ids=["result", "partial", "checkpoint", "line", "arguments"],
)
def test_the_size_of_a_fact_is_that_of_its_content(fact: Fact) -> None:
    """H8: a bound in bytes counts what a fact holds."""
    assert 9000 < fact_bytes(fact) < 9000 + 2 * FACT_BYTES


def test_a_small_fact_counts_too() -> None:
    """H8: a million small facts are no free ride."""
    assert fact_bytes(Released(1.0)) == FACT_BYTES


def test_a_result_without_its_content_says_so_and_is_an_error() -> None:
    """H8: nobody takes what was left out for an empty result."""
    fact = without_content(Finished(1.0, "ok", Result(TEXT)), "the history was away")
    assert isinstance(fact, Finished) and fact.result is not None
    assert fact.outcome == "ok" and fact.result.is_error
    assert f"{len(TEXT)} bytes were not kept: the history was away".encode() in bytes(fact.result.content)


def test_little_content_stays() -> None:
    """H8: leaving out a few bytes would cost more than it gives."""
    small = Finished(1.0, "ok", Result(Raw(b"[]")))
    assert without_content(small, "why") is small
