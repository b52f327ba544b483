"""The official conformance suite against `afoot serve`: every required scenario of both eras, on HTTP."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.gateway_setup import START_S, STOP_S, Arrangement, serving
from tests.conformance.suite import BASELINE, RUN_S, judge, known, verdicts

NEW: Final = "2026-07-28"
OLD: Final = "2025-11-25"
TASKS: Final = (
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
    "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-status-notifications",
    "tasks-required-task-error", "tasks-mrtr-composition",
)  # fmt: skip
EMPTY: Final = "tasks-status-notifications"  # the suite has nothing in it yet

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(RUN_S + START_S + STOP_S)]


@pytest.mark.parametrize(
    ("revision", "arrangement"),
    [
        pytest.param(NEW, Arrangement(own=True), id="new-own"),
        pytest.param(OLD, Arrangement(own=True), id="old-own"),
        pytest.param(NEW, Arrangement(own=True, carrier="none"), id="new-alone"),
        pytest.param(OLD, Arrangement(own=True, carrier="none"), id="old-alone"),
        # A server of the handshake era cannot ask for input in the way that the new set wants, and where a
        # server speaks both eras, the first call of a tool that is not safe to repeat only finds that out.
        pytest.param(NEW, Arrangement(own=False, era=NEW), id="new-stdio-new"),
        pytest.param(OLD, Arrangement(own=False), id="old-stdio"),
        pytest.param(NEW, Arrangement(own=False, carrier="http", era=NEW), id="new-http-new"),
        pytest.param(OLD, Arrangement(own=False, carrier="http", era=OLD), id="old-http-old"),
        pytest.param(OLD, Arrangement(own=False, era=OLD), id="old-stdio-old"),
    ],
)
def test_every_required_scenario_passes(
    revision: str,
    arrangement: Arrangement,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """P6, T1, Q1, E4, U5, H3, F3: own tools, or everything our own, or an SDK server; and all of tasks."""
    with serving(arrangement, tmp_path) as address:
        summary = judge(["server", "--url", address, "--requirements", revision], tmp_path / "out")
    record_property(f"conformance {revision}", summary)
    print(f"\n{revision}\n{summary}")
    if revision == NEW:
        assert unfit(verdicts(tmp_path / "out")) == {}


def unfit(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """The scenarios about tasks that were not run, or found something; the set itself scores none (H3)."""
    judged = {name: found.get(name, ["not run"]) for name in TASKS}
    return {
        name: seen
        for name, seen in judged.items()
        if set(seen) != ({"SKIPPED"} if name == EMPTY else {"SUCCESS"})
    }


@pytest.mark.parametrize("side", ["server", "client"])
def test_the_baseline_names_only_what_the_suite_knows(side: str) -> None:
    """Q1: a scenario that was renamed or removed cannot stay in expected-failures.yml unseen."""
    _, _, rest = BASELINE.read_text().partition(f"\n{side}:")
    named = re.match(r"(?: \[\])?\n((?:  .*\n)*)", rest)
    assert named is not None, f"no list of gaps of the {side}"
    listed = re.findall(r"^  - (\S+)$", named[1], re.MULTILINE)
    assert listed == sorted(set(listed))
    assert set(listed) <= set(known(side))
