"""Tests of the extension's socket share a state folder of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of the test's own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    return tmp_path
