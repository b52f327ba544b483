"""`fact_bytes`, `without_content` and `encode_large`: how large facts are measured, emptied and encoded."""

import subprocess
import sys

import pytest
from msgspec import Raw, json

from afoot.core.encoding import FACT_BYTES, encode_large, fact_bytes, without_content
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


def test_a_large_value_is_encoded_as_any_other() -> None:
    """H8: only the way differs."""
    fact = Finished(1.0, "ok", Result(TEXT))
    assert encode_large(fact, fact_bytes(fact)) == encode_large(fact, 0) == json.encode(fact)


def test_a_value_that_does_not_fit_into_memory_is_an_error_and_no_crash() -> None:
    """H8: a process at its limit of memory ended with SIGSEGV here."""
    script = """
import resource
from msgspec import Raw
from afoot.core.encoding import encode_large
values = [Raw(b'"' + b"x" * (50 << 20) + b'"')] * 20
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
for size in (0, 1000 << 20):
    try:
        encode_large(values, size)
    except MemoryError:
        print("MemoryError")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stdout.split()) == (0, ["MemoryError", "MemoryError"])
