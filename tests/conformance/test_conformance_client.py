"""The official conformance suite against the gateway as a client: every required scenario of both eras."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.suite import HERE, RUN_S, judge

CLIENT_MS = 60_000

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(RUN_S + 30)]


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_every_required_client_scenario_passes_or_is_a_named_gap(
    revision: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """U1, U5, Q3: the suite finds nothing but what expected-failures.yml names."""
    words = ["client", "--command", f"{sys.executable} {HERE / 'client.py'}", "--timeout", str(CLIENT_MS)]
    home = {"AFOOT_HOME": str(tmp_path / "home")}
    summary = judge([*words, "--requirements", revision], tmp_path / "out", home)
    record_property(f"conformance of the client {revision}", summary)
    print(f"\n{revision}\n{summary}")
