"""The demo's tools: plain functions that need no gateway, and what each shows within one."""

import asyncio
import sys

import pytest

from afoot import ToolError
from afoot.cli import demo_tools
from afoot.cli.commands.demo import DEMO_CALLS
from afoot.providers.functions.loading import load_file, tools_in
from afoot.testing import try_tool


def run(work: object) -> object:
    """What an async tool gives."""
    assert asyncio.iscoroutine(work)
    return asyncio.run(work)


def test_each_works_without_a_gateway() -> None:
    """P2: a newcomer's first example is a function that can be called."""
    assert run(demo_tools.export_pages(3, 0)) == {"pages": 3}
    assert run(demo_tools.resize_photos(3, 0)) == "3 photos are smaller now"
    assert run(demo_tools.book_trip("Rome")) == "booked Rome for 1, window seat"
    assert run(demo_tools.delete_backups(7)) == "deleted what was older than 7 days"
    assert run(demo_tools.nightly_report(2, 0)) == "60 pages of 2 shops"
    with pytest.raises(ToolError, match="hung up"):
        run(demo_tools.sync_mail(3, 0))


def test_there_are_six_and_each_is_called() -> None:
    """V2: what is offered is what is shown."""
    assert [tool.__name__ for tool in tools_in(demo_tools)] == [name for name, *_ in DEMO_CALLS]


def test_it_reports_page_by_page() -> None:
    """P1: the steady one."""
    tried = try_tool(demo_tools.export_pages, pages=3)
    assert [(one.progress, one.total, one.message) for one in tried.readings][-1] == (3, 3, "page 3")


def test_a_bar_is_all_that_it_takes() -> None:
    """P10: the one that knows nothing of afoot."""
    tried = try_tool(demo_tools.resize_photos, photos=20)
    last = tried.readings[-1]
    assert (last.progress, last.total, last.message) == (20, 20, "resizing")


def test_without_tqdm_another_bar_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: the base package has rich alone."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    resize = {tool.__name__: tool for tool in load_file(demo_tools.__file__).tools}["resize_photos"]
    last = try_tool(resize, photos=20).readings[-1]
    assert (last.total, last.message) == (
        20,
        "resizing",
    )  # it moves in real time, which a fake clock has none of


def test_a_form_is_answered_and_declined() -> None:
    """Q1, Q2: the one that asks."""
    said = {"seat": "aisle", "people": 2, "insured": True}
    assert try_tool(demo_tools.book_trip, answers={"q1": said}).result == (
        "booked Lisbon for 2, aisle seat, insured"
    )
    assert try_tool(demo_tools.book_trip, answers={"q1": "decline"}).result == "nothing was booked"


def test_the_error_tells_how_far_it_got() -> None:
    """E2: the one that fails."""
    tried = try_tool(demo_tools.sync_mail, folders=12)
    assert tried.outcome == "failed" and tried.readings[-1].progress == 8
