"""Gateways for strangers: one with the usual bounds, and one whose clocks are short."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.loop_passes import MEASURED_LOOP
from tests.e2e.gateway import Gateway, serving

SHORT = """
[connections]
head_s = 1.0
unused_s = 1.0
per_peer = 8
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with the usual bounds, which measures its loop."""
    with serving(tmp_path_factory.mktemp("usual"), tools=[MEASURED_LOOP]) as started:
        yield started


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that waits a second, and takes 8 connections of a peer."""
    folder: Path = tmp_path_factory.mktemp("short")
    config = folder / "afoot.toml"
    config.write_text(SHORT)
    with serving(folder, {"config": config}) as started:
        yield started
