"""A call whose gateway died, until it begins again: what its clocks say."""

import pytest

from afoot.core.call import spent_until_last_sign
from afoot.core.facts import Admitted, Finished, Interrupted, Limits, Started
from afoot.core.rules import Tick, decide, next_deadline
from tests.core.calls_by_state import answered, asked, commit, lived, opened


@pytest.mark.parametrize(("admits", "clock"), [(False, "queue"), (True, "start")])
def test_a_call_whose_gateway_died_has_the_clocks_of_a_first_start(admits: bool, clock: str) -> None:
    """C1, H4: also once a question is answered that was open then; what it had run counts on."""
    call = lived(opened(0.0, Limits(idle_s=5, ceiling_s=10), idempotent=True), Started(0.0))
    commit(call, asked(4.0, "1"))
    commit(call, Interrupted(100.0, spent_until_last_sign(call)))
    commit(call, answered(110.0, "1"))
    if admits:
        commit(call, Admitted(110.0, "server x"))
    assert next_deadline(call, 0.0) == 170.0
    [end] = decide(call, Tick(170.0, 0.0))
    assert isinstance(end, Finished) and end.failure and end.failure.clock == clock
    commit(call, Started(120.0, 2))
    assert (call.spent_s, next_deadline(call, 120.0)) == (4.0, 125.0)
