"""The clocks of a call as a page gets them: the shared vectors, and the engine that they must agree with."""

from pathlib import Path

import pytest
from msgspec import Struct, json, to_builtins

from afoot.cli.terminal.call_clocks import ClockReading
from afoot.core.call import State, fold, note_number
from afoot.core.facts import Fact, Reading
from afoot.core.rules import Tick, decide, next_deadline
from afoot.serve.api.live.clocks import clock_view


class Firing(Struct, forbid_unknown_fields=True):
    """The clock that ends the call if nothing is heard until then."""

    at: float
    clock: str


class Vector(Struct, forbid_unknown_fields=True):
    """Facts, the newest sign of life that is none of them, and the clocks that follow."""

    name: str
    facts: list[Fact]
    clocks: dict[str, float | list[str] | None]
    at: float
    reading: ClockReading  # as the console and the terminal work it out
    heard: float = 0.0
    readings: int = 0
    fires: Firing | None = None


VECTORS = json.decode(
    (Path(__file__).parents[3] / "vectors" / "clocks.json").read_bytes(), type=list[Vector], strict=True
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_the_view_of_the_clocks_agrees_with_the_vectors(vector: Vector) -> None:
    """V5: a page that keeps the same vectors shows the clocks of the engine."""
    call = fold("c1", vector.facts)
    if vector.readings:
        note_number(call, Reading(vector.heard), vector.readings)
    assert to_builtins(clock_view(call, vector.heard)) == vector.clocks
    assert call.on_clock(vector.at) == vector.reading.used_s
    if not vector.reading.frozen:
        assert vector.at - max(call.heard, vector.heard) == vector.reading.silent_s
    if call.state is State.QUEUED and not call.open:
        return  # the queue has a clock of its own, which no page shows
    assert next_deadline(call, vector.heard) == (vector.fires.at if vector.fires else None)
    if vector.fires:
        ended = decide(call, Tick(vector.fires.at, vector.heard))[-1]
        assert to_builtins(ended)["failure"]["clock"] == vector.fires.clock
