"""Schemas of a hostile server or page whose check would take hours: nobody waits for them."""

from time import perf_counter

from msgspec import Raw, json

from afoot.core.facts import Question
from afoot.engine.questions import misfits
from afoot.providers.arguments import check_arguments, fits_schema
from tests.core.test_schema_cost import doubling

BOMB = doubling(40)


def test_a_schema_that_takes_hours_is_not_checked() -> None:
    """E4: neither for arguments and results, nor for the answer to a question; the tool itself must check."""
    before = perf_counter()
    check_arguments(json.encode(BOMB), Raw(b"{}"))
    assert fits_schema(json.encode(BOMB), {})
    assert misfits(Question("q", "k", "form", body=Raw(json.encode(BOMB))), {}, 2) == []
    assert perf_counter() - before < 1.0
