"""Every code block of every page does what the page says."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page import blocks, pages
from tests.docs.page_runner import Desk

pytestmark = pytest.mark.timeout(240)  # a page starts many programs; each block has a limit of its own


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A folder to run a page in."""
    desk = Desk(tmp_path)
    monkeypatch.syspath_prepend(desk.folder)
    monkeypatch.chdir(desk.folder)
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))  # the official client keeps AFOOT_HOME from what it starts
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    yield desk
    desk.close()


@pytest.mark.parametrize("page", [page for page in pages() if blocks(page)])
def test_every_block_of_a_page_works_in_its_order(page: str, desk: Desk) -> None:
    """House: what a reader copies works; other languages than those that can be checked are refused."""
    for block in blocks(page):
        desk.run(block)
