"""`App`: the lifespan of a file of tools, from its opening to its close."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from afoot import Gateway
from afoot.config.settings import Settings
from afoot.core.call import Call
from afoot.core.facts import Admitted, Finished, Reading
from afoot.providers.functions.lifespans import App
from afoot.testing import run

SOURCE = """
import asyncio
import os
from pathlib import Path

import afoot
from afoot import Context

STORY = Path(__file__).with_suffix(".story")
WORD = "one"


def note(text):
    with STORY.open("a") as file:
        file.write(f"{text} {WORD}\\n")


async def lifespan():
    note("open")
    yield {"word": WORD, "loop": asyncio.get_running_loop(), "pid": os.getpid()}
    note("close")


app = afoot.App(lifespan=lifespan)


@afoot.tool
async def on_loop(ctx: Context) -> str:
    assert ctx.state["loop"] is asyncio.get_running_loop()
    return ctx.state["word"]


@afoot.tool
def in_thread(ctx: Context) -> str:
    return ctx.state["word"]


@afoot.tool
async def long(ctx: Context) -> str:
    ctx.report(1)
    await asyncio.sleep(0.5)
    note("long")
    return ctx.state["word"]
"""

CHILD = """
@afoot.tool(isolate=True)
def in_child(ctx: Context) -> list[object]:
    return [ctx.state["word"], ctx.state["pid"] == os.getpid()]


@afoot.tool(isolate=True)
async def in_child_async(ctx: Context) -> list[object]:
    return [ctx.state["word"], ctx.state["loop"] is asyncio.get_running_loop()]
"""


async def plain() -> AsyncIterator[dict[str, int]]:
    yield {"number": 7}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tools.py"
    path.write_text(SOURCE)
    return path


def rewrite(file: Path, source: str) -> None:
    """Save other code in the file."""
    file.write_text(source)


def story(file: Path) -> list[str]:
    """The events of the file's lifespan so far."""
    path = file.with_suffix(".story")
    return path.read_text().splitlines() if path.exists() else []


def result(call: Call) -> Any:
    """The text of a result."""
    assert call.end is not None and call.end.result is not None, call.end
    return bytes(call.end.result.content).decode()


@pytest.mark.parametrize("lifespan", [plain, asynccontextmanager(plain)], ids=["plain", "decorated"])
async def test_a_lifespan_is_a_context_manager_or_a_generator(lifespan: Callable[[], Any]) -> None:
    """F2: the decorator may be forgotten."""
    app = App(lifespan)
    assert app.lifespan is not None
    async with app.lifespan() as state:
        assert state == {"number": 7}


async def test_a_lifespan_is_open_once_for_all_calls_of_a_gateway(file: Path) -> None:
    """F2: its mapping is `ctx.state`, also in threads; it is closed at the end."""
    async with Gateway(str(file)) as gateway:
        calls = await asyncio.gather(*(gateway.call(one) for one in ("on_loop", "in_thread", "on_loop")))
        assert all("one" in result(call) for call in calls)
        assert story(file) == ["open one"]
    assert story(file) == ["open one", "close one"]


async def test_a_reload_opens_the_new_lifespan_before_the_old_one_closes(file: Path) -> None:
    """F2: a call that runs keeps its state, and the old lifespan is closed after it."""
    async with Gateway(str(file)) as gateway:
        long = gateway.submit("long")
        async for item in gateway.follow(long):
            if isinstance(item, Reading):
                rewrite(file, SOURCE.replace('"one"', '"two"'))
                gateway.reload()
                assert "two" in result(await gateway.call("on_loop"))
                assert story(file) == ["open one", "open two"]
        assert "one" in result(await gateway.result(long))
    assert story(file) == ["open one", "open two", "long one", "close one", "close two"]


async def test_a_reload_that_fails_keeps_the_old_lifespan(file: Path) -> None:
    """F2: its tools go on with it."""
    async with Gateway(str(file)) as gateway:
        await gateway.call("on_loop")
        rewrite(file, SOURCE.replace('"one"', '"two"') + "\n@afoot.tool\ndef odd(*args): ...\n")
        with pytest.raises(TypeError, match=r"\*args cannot be offered"):
            gateway.reload()
        assert "one" in result(await gateway.call("on_loop"))
    assert story(file)[0] == "open one" and story(file)[-1].startswith("close")


async def test_isolated_tools_have_a_lifespan_in_each_child(file: Path) -> None:
    """F2: and none in the gateway, if no tool there needs it; async tools share its loop."""
    head = SOURCE[: SOURCE.index("@afoot.tool")]
    rewrite(file, head + CHILD)
    settings = Settings(store=":memory:")
    async with Gateway(str(file), settings=settings) as gateway:
        for tool in ("in_child", "in_child_async"):
            assert '[\\"one\\",true]' in result(await gateway.call(tool))
        opened = story(file).count("open one")
        assert opened >= 1
    told = story(file)
    assert told.count("close one") == told.count("open one") >= 1


FAILING = """
import asyncio, afoot

async def lifespan():
    {body}
    yield {state}
    {end}

app = afoot.App(lifespan=lifespan)

@afoot.tool{options}
def broken() -> str:
    return "never"
"""


@pytest.mark.parametrize(
    ("body", "state", "message"),
    [
        ("raise RuntimeError('no database')", "{}", "RuntimeError: no database"),
        ("raise SystemExit(3)", "{}", "SystemExit: 3"),
        ("await asyncio.sleep(10_000)", "{}", r"it did not open in 60 s (raise start_limit_s)"),
        ("pass", "7", "TypeError: it yields int, and must yield a mapping or None"),
    ],
    ids=["raises", "exits", "hangs", "odd"],
)
def test_a_lifespan_that_fails_refuses_the_tools_of_its_file_alone(
    tmp_path: Path, body: str, state: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """F2: every call says why, and the rest is served at once."""
    (tmp_path / "bad.py").write_text(FAILING.format(body=body, state=state, end="", options=""))
    (tmp_path / "good.py").write_text("import afoot\n@afoot.tool\ndef good() -> str:\n    return 'good'\n")

    async def main() -> None:
        async with Gateway(str(tmp_path / "bad.py"), str(tmp_path / "good.py")) as gateway:
            broken = gateway.submit("broken")
            assert "good" in result(await gateway.call("good"))
            first, second = await gateway.result(broken), await gateway.call("broken")
            for call in (first, second) if "sleep" not in body else (second,):
                assert call.end and call.end.failure and message in call.end.failure.message
                assert call.end.failure.code == "lifespan_failed" and "bad.py:" in call.end.failure.message
            if "sleep" in body:  # its own limit, or that of the call: both are 60 s
                assert first.end and first.end.outcome == "failed"

    run(main())
    assert message in caplog.text


async def test_a_lifespan_that_fails_in_a_child_is_told_too(tmp_path: Path) -> None:
    """F2: with the same words."""
    file = tmp_path / "bad.py"
    file.write_text(
        FAILING.format(body="raise ValueError('no')", state="{}", end="", options="(isolate=True)")
    )
    async with Gateway(str(file)) as gateway:
        call = await gateway.call("broken")
        assert call.end and call.end.failure and "ValueError: no" in call.end.failure.message


async def test_a_call_waits_for_a_lifespan_that_opens(tmp_path: Path) -> None:
    """F2, C1: that is a start, with its own limit, and off the clocks of the tool."""
    file = tmp_path / "slow.py"
    file.write_text(FAILING.format(body="await asyncio.sleep(0.1)", state="{}", end="", options=""))
    async with Gateway(str(file)) as gateway:
        items = [item async for item in gateway.follow(gateway.submit("broken"))]
    assert [one.what for one in items if isinstance(one, Admitted)] == ["opening the lifespan of its file"]
    assert isinstance(items[-1], Finished) and items[-1].outcome == "ok"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("raise OSError('it is stuck')", "failed to close"),
        ("await asyncio.sleep(1000)", "did not close in 5 s"),
    ],
)
def test_a_lifespan_that_fails_to_close_is_logged(
    tmp_path: Path, end: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    """F2: the gateway ends all the same."""
    caplog.set_level(logging.ERROR)
    file = tmp_path / "stuck.py"
    file.write_text(FAILING.format(body="pass", state="{}", end=end, options=""))

    async def main() -> str | None:
        async with Gateway(str(file)) as gateway:
            call = await gateway.call("broken")
            return None if call.end is None else call.end.outcome

    assert run(main()) == "ok"
    assert message in caplog.text and "stuck.py:4" in caplog.text
