"""tqdm and rich inside a tool."""

import asyncio
import inspect
import io
import logging
import sys
import threading
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress, track
from tqdm import tqdm
from tqdm.asyncio import tqdm as async_tqdm
from tqdm.notebook import tqdm as notebook_tqdm

from afoot.providers.functions.progress import bars
from tests.providers.fake_run import ScriptedRun, call, decoded, text_of


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between reports, so that a test sees each."""
    monkeypatch.setattr(bars, "_REPORT_INTERVAL_S", 0.0)
    monkeypatch.setattr(bars, "_DATA_INTERVAL_S", 0.0)


def quiet() -> io.StringIO:
    return io.StringIO()


async def readings(function: Any) -> list[Any]:
    run = ScriptedRun()
    await call(function, run=run)
    return run.readings


async def test_a_tqdm_loop_is_the_progress() -> None:
    """P10: imported before us, unchanged tool, on the loop and in a thread."""

    async def on_loop() -> None:
        for _ in tqdm(range(3), desc="pages", file=quiet()):
            await asyncio.sleep(0)

    def in_thread() -> None:
        for _ in tqdm(range(3), desc="pages", file=quiet()):
            pass

    for function in (on_loop, in_thread):
        assert (await readings(function))[0] == (0, 3, "pages")
        assert (await readings(function))[-1] == (3, 3, "pages")
        assert {reading[0] for reading in await readings(function)} == {0, 1, 2, 3}


@pytest.mark.parametrize("disable", [False, True])
async def test_manual_updates_are_progress(disable: bool) -> None:
    """P10: also of a bar that prints nothing."""

    def manual() -> None:
        with tqdm(total=10, file=quiet(), disable=disable, desc="d") as bar:
            bar.update(4)
            bar.update(6)

    seen = await readings(manual)
    assert (4, 10, "d") in seen
    assert seen[-1] == (10, 10, "d")


async def test_a_bar_set_by_hand_is_progress() -> None:
    """P10: `bar.n = …; bar.refresh()` is common."""

    def by_hand() -> None:
        bar = tqdm(total=10, file=quiet())
        bar.n = 7
        bar.refresh()
        bar.close()

    assert (7, 10, None) in await readings(by_hand)


async def test_a_bar_moved_by_a_thread_of_the_tools_own_counts() -> None:
    """P10: a bar belongs to the call in which it was made."""

    def threaded() -> None:
        bar = tqdm(total=2, file=quiet())
        worker = threading.Thread(target=lambda: bar.update(2))
        worker.start()
        worker.join()
        bar.close()

    assert (await readings(threaded))[-1] == (2, 2, None)


async def test_inner_bars_are_data() -> None:
    """P10: the outermost is the progress."""

    async def nested() -> None:
        for _ in tqdm(range(2), desc="outer", file=quiet()):
            for _ in tqdm(range(2), desc="inner", file=quiet()):
                await asyncio.sleep(0)

    run = ScriptedRun()
    await call(nested, run=run)
    inner = [decoded(report.data)["bars"] for report in run.contents]
    assert {"label": "inner", "progress": 1, "total": 2} in [bar for one in inner for bar in one]
    assert {report.message for report in run.contents} == {"outer"}
    assert [report.progress for report in run.contents] == sorted(
        report.progress or 0 for report in run.contents
    )
    assert run.readings[-1] == (2, 2, "outer")


async def test_one_bar_after_another_is_each_the_progress() -> None:
    """P10: also when the first was never closed."""

    def two() -> None:
        first = tqdm(total=1, desc="first", file=quiet())
        first.update()
        for _ in tqdm(range(2), desc="second", file=quiet()):
            pass
        first.close()

    seen = await readings(two)
    assert (1, 1, "first") in seen
    assert (2, 2, "second") in seen


async def test_async_tqdm_is_progress() -> None:
    """P10: a subclass has what its class has."""

    async def items() -> Any:
        for n in range(3):
            yield n

    async def loop() -> None:
        async for _ in async_tqdm(items(), total=3, file=quiet()):
            await asyncio.sleep(0)

    assert (await readings(loop))[-1] == (3, 3, None)


async def test_breaking_out_of_a_loop_closes_its_bar() -> None:
    """P10: what follows is the outermost again."""

    def broken() -> None:
        for n in tqdm(range(9), desc="first", file=quiet()):
            if n == 2:
                break
        for _ in tqdm(range(2), desc="second", file=quiet()):
            pass

    run = ScriptedRun()
    await call(broken, run=run)
    assert run.readings[-1] == (2, 2, "second")
    assert run.contents == []


async def test_the_output_stays_the_tools() -> None:
    """P10: the same characters as without us."""

    def draw() -> str:
        out = quiet()
        for _ in tqdm(range(3), file=out, bar_format="{n}/{total}", mininterval=0, ncols=20):
            pass
        return out.getvalue()

    assert text_of(await call(draw)) == draw()


async def test_rich_tasks_are_progress_and_data() -> None:
    """P10: the first is the progress, further ones are data, markup is left out."""

    def rich_tool() -> None:
        with Progress(console=Console(file=quiet()), auto_refresh=False) as progress:
            one = progress.add_task("[red]One[/red]", total=4)
            two = progress.add_task("Two", total=2)
            progress.update(one, advance=2)
            progress.advance(two)
            progress.update(one, completed=4)

    run = ScriptedRun()
    await call(rich_tool, run=run)
    assert run.readings[0] == (0, 4, "One")
    last = run.contents[-1]
    assert (last.progress, last.total) == (4, 4)
    assert decoded(last.data) == {"bars": [{"label": "Two", "progress": 1, "total": 2}]}


async def test_rich_track_is_progress_though_it_moves_in_a_thread() -> None:
    """P10: rich's own thread knows no call; its bar does."""

    def tracked() -> None:
        for _ in track(range(3), description="Work", console=Console(file=quiet())):
            pass

    assert (await readings(tracked))[-1] == (3, 3, "Work")


async def test_the_last_step_of_a_rich_bar_in_an_async_tool_arrives() -> None:
    """P4, P10: rich's thread tells it at the very end, when the tool has nothing to wait for any more."""

    async def tracked() -> None:
        for _ in track(range(30), description="Work", console=Console(file=quiet())):
            await asyncio.sleep(0)

    assert (await readings(tracked))[-1] == (30, 30, "Work")


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_last_step_of_a_bar_that_is_never_closed_arrives(
    is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4, P10: it came too soon behind the one before."""
    monkeypatch.setattr(bars, "_REPORT_INTERVAL_S", 3600.0)
    kept: list[Any] = []

    def moves() -> None:
        kept.append(tqdm(total=30, file=quiet()))
        for _ in range(30):
            kept[0].update(1)

    async def moves_on_loop() -> None:
        moves()

    assert (await readings(moves_on_loop if is_async else moves))[-1][:2] == (30, 30)
    kept[0].close()


async def test_outside_of_a_call_bars_are_as_before() -> None:
    """P10: nothing is reported, nothing is kept."""

    async def nothing() -> None: ...

    run = ScriptedRun()
    await call(nothing, run=run)
    bar = tqdm(range(3), file=quiet())
    assert list(bar) == [0, 1, 2]
    assert "_afoot_bar" not in vars(bar)
    progress = Progress(console=Console(file=quiet()), auto_refresh=False)
    progress.advance(progress.add_task("x"))
    assert "_afoot_bars" not in vars(progress)
    assert run.events == []


def test_patching_twice_changes_nothing() -> None:
    """P10: idempotent."""
    bars.patch()
    update = tqdm.update
    bars.patch()
    assert tqdm.update is update


@pytest.mark.parametrize("library", ["tqdm", "rich", "alive_progress"])
async def test_bars_that_a_tool_imports_itself_are_progress_from_its_first_call_on(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: a large library is often imported only where it is needed."""

    async def nothing() -> None: ...

    def counts() -> None:
        if library == "tqdm":
            from tqdm import tqdm

            for _ in tqdm(range(3), file=quiet()):
                pass
        elif library == "alive_progress":
            from alive_progress import alive_bar

            with alive_bar(3, file=quiet()) as found:
                bar: Any = found  # the library annotates it as a dict
                bar(3)
        else:
            from rich.progress import Progress

            with Progress(console=Console(file=quiet()), auto_refresh=False) as progress:
                progress.advance(progress.add_task("x", total=3), 3)

    await readings(nothing)
    module_name = {"tqdm": "tqdm.std", "rich": "rich.progress"}.get(library, "alive_progress.core.progress")
    gone = ("tqdm", "alive_progress")
    for name in [one for one in sys.modules if one.split(".")[0] in gone or one == module_name]:
        monkeypatch.delitem(sys.modules, name)
    assert (await readings(counts))[-1][:2] == (3, 3)
    module = sys.modules[module_name]
    assert module.__spec__ is not None and module.__loader__ is module.__spec__.loader
    assert inspect.getsource(module).startswith(('"""', "from __future__", "import "))


async def test_alive_bars_are_progress() -> None:
    """P10: counted, by hand, and around an iterable; one after the other is each the progress."""
    alive = pytest.importorskip("alive_progress")

    def counts() -> None:
        with alive.alive_bar(4, title="first", file=quiet()) as bar:
            bar()
            bar(2)
        with alive.alive_bar(manual=True, title="by hand", file=quiet()) as bar:
            bar(0.5)
        for _ in alive.alive_it([7, 8, 9], title="items", file=quiet()):
            pass

    async def on_the_loop() -> None:
        counts()

    for tool in (counts, on_the_loop):
        seen = await readings(tool)
        assert [one for one in seen if one[2] == "first"] == [
            (0, 4, "first"),
            (1, 4, "first"),
            (3, 4, "first"),
        ]
        assert (0.5, 1.0, "by hand") in seen and seen[-1] == (3, 3, "items")


async def test_a_bar_of_a_notebook_is_progress() -> None:
    """P10: `tqdm.notebook` draws a widget, and `tqdm.auto` chooses it in a notebook."""

    def loops() -> None:
        for _ in notebook_tqdm(range(3), desc="cells", display=False):
            pass

    seen = await readings(loops)
    assert seen[0] == (0, 3, "cells") and seen[-1] == (3, 3, "cells")


async def test_gathered_and_completed_tasks_are_progress() -> None:
    """P10: the helpers of `tqdm.asyncio`."""

    async def one(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def gathers() -> None:
        await async_tqdm.gather(*(one(n) for n in range(3)), file=quiet(), desc="gather")
        for task in async_tqdm.as_completed([one(n) for n in range(2)], file=quiet(), desc="completed"):
            await task

    seen = await readings(gathers)
    assert (3, 3, "gather") in seen and seen[-1] == (2, 2, "completed")


async def test_percentages_in_log_lines_are_no_progress() -> None:
    """P10: a log line may say anything."""

    def logs() -> None:
        for percent in (10, 50):
            logging.getLogger("mine").warning("%d%% done, 5/10", percent)

    assert await readings(logs) == []


async def test_a_fast_loop_reports_at_the_pace_of_eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: a bar of a hundred thousand steps is a handful of reports, the last among them."""
    monkeypatch.setattr(bars, "_REPORT_INTERVAL_S", 10.0)

    def fast() -> None:
        for _ in tqdm(range(100_000), file=quiet()):
            pass

    seen = await readings(fast)
    assert len(seen) <= 3
    assert seen[-1] == (100_000, 100_000, None)
