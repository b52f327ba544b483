"""Servers on their bad days: what they do wrong ends or goes on by the rules, and hurts nobody else."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.config.settings import Server
from afoot.core.facts import Limits
from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream import reconnect
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import ScriptedRun, decoded, text_of, until
from tests.providers.upstream.started_servers import RAW, ROOT, opened, raw, run_tool

BOTH = pytest.mark.parametrize("speaks", ["2025", "2026"])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between attempts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.02))


def is_alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@BOTH
async def test_a_server_that_dies_in_a_call_is_noticed_at_once_and_started_again(speaks: str) -> None:
    """U4: how it died and its last words are told; the next call has a new one."""
    async with opened(raw(speaks)) as upstream:
        first, run = upstream.pid, ScriptedRun()
        with pytest.raises(
            RunnerDied, match=r"ended by SIGKILL \(Killed\); its last words: my last words"
        ) as caught:
            await asyncio.wait_for(run_tool(upstream, "die", run), 5)
        assert caught.value.began and run.readings == [(1, None, None)]
        assert (upstream.state, upstream.pid) == ("idle", None)
        start = upstream.start("echo", "a")
        assert start is not None
        await start.done()
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        assert upstream.pid not in (None, first)


async def test_all_calls_on_a_dead_server_are_told_and_those_on_others_are_not() -> None:
    """U4: other servers are untouched."""
    async with opened(raw("2026")) as dying, opened(raw("2026")) as living:
        run = ScriptedRun()
        hanging = [asyncio.create_task(run_tool(dying, "hang")) for _ in range(3)]
        other = asyncio.create_task(run_tool(living, "hang", run))
        await until(lambda: run.readings)
        with pytest.raises(RunnerDied):
            await run_tool(dying, "die")
        assert [type(error) for error in await asyncio.gather(*hanging, return_exceptions=True)] == [
            RunnerDied
        ] * 3
        assert not other.done()
        other.cancel()


async def test_a_server_that_dies_of_a_signal_without_a_name_ends_its_calls_too() -> None:
    """U4: real-time signals have numbers alone."""
    async with opened(raw("2026")) as upstream:
        run = ScriptedRun()
        hanging = asyncio.create_task(run_tool(upstream, "hang", run))
        await until(lambda: run.readings)
        assert upstream.pid is not None
        os.kill(upstream.pid, signal.SIGRTMIN + 3)
        with pytest.raises(RunnerDied, match=f"was ended by signal {signal.SIGRTMIN + 3}"):
            await asyncio.wait_for(hanging, 5)


async def test_a_server_whose_child_holds_its_pipes_open_is_dead_all_the_same() -> None:
    """U4: what started it died, and nothing of its group stays behind."""
    script = f'"$0" -m {RAW} 2026; wait'
    upstream = Upstream("raw", Server(command="/bin/sh", args=["-c", script, sys.executable], cwd=str(ROOT)))
    await upstream.open()
    shell = upstream.pid
    assert shell is not None and len(members(shell)) == 2
    os.kill(shell, signal.SIGKILL)
    await until(lambda: upstream.state == "idle")
    await until(lambda: not members(shell))
    await upstream.close()


def members(group: int) -> list[str]:
    """The processes of a group that still live."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    fields = [stat.rpartition(")")[2].split() for stat in stats]
    return [field[0] for field in fields if field[2] == str(group) and field[0] not in "ZX"]


async def test_a_server_that_cannot_be_found_says_so_and_is_not_tried_again() -> None:
    """U4: no back-off for what cannot get better."""
    upstream = Upstream("raw", Server(command="no-such-command-anywhere"))
    with pytest.raises(ToolError, match="'no-such-command-anywhere' was not found"):
        await upstream.open()
    assert upstream.state == "failed" and "not found" in upstream.error
    await upstream.close()


async def test_a_server_that_ends_as_it_starts_is_tried_a_few_times_and_then_only_when_asked() -> None:
    """U4: back-off, a bound, and the reason in its own words."""
    upstream = Upstream("raw", raw("2026", "exit"), options=ServerOptions(restart_limit=3))
    with pytest.raises(ToolError, match="exit code 3; its last words: cannot start today") as caught:
        await upstream.open()
    assert (caught.value.category, upstream.state) == ("unavailable", "failed")
    assert _starts(upstream) == 3
    with pytest.raises(ToolError):
        await upstream.open()
    assert _starts(upstream) == 4
    await upstream.close()


def _starts(upstream: Upstream) -> int:
    return sum("cannot start today" == line for _, line in upstream.logs)


@pytest.mark.parametrize("speaks", ["2025", "2026"])
async def test_a_server_that_never_answers_the_handshake_is_given_up_in_time(speaks: str) -> None:
    """C1: starting has a limit of its own, and the text names it; the child is gone."""
    server = Server(command=sys.executable, args=["-c", "import sys; [0 for _ in sys.stdin]"])
    server = raw("2025", "silent", "never") if speaks == "2025" else server
    upstream = Upstream("raw", server, Limits(start_s=0.5), ServerOptions(probe_s=0.05))
    with pytest.raises(ToolError, match=r"within 0.5 s \(raise start_s\)") as caught:
        await upstream.open()
    assert caught.value.category == "unavailable"
    assert upstream.state == "failed"
    await upstream.close()


async def test_who_gives_up_waiting_for_a_start_does_not_stop_it_for_others() -> None:
    """C1: one start is shared."""
    upstream = Upstream("raw", raw("2026", "slow-discover"))
    impatient, patient = asyncio.create_task(upstream.open()), asyncio.create_task(upstream.open())
    await until(lambda: upstream.state == "starting")
    impatient.cancel()
    await patient
    assert upstream.state == "ready"
    await upstream.close()


@BOTH
async def test_a_flood_of_progress_arrives_whole_and_in_order(speaks: str) -> None:
    """U6: 100,000 reports, and the result behind them."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun()
        assert text_of(await run_tool(upstream, "flood", run, n=100_000)) == "done"
        assert [reading[0] for reading in run.readings] == list(range(1, 100_001))


async def test_progress_that_goes_back_is_passed_on_and_what_is_no_number_is_dropped() -> None:
    """P4: the history keeps what the tool said; negative numbers count as none."""
    async with opened(raw("2026")) as upstream:
        run = ScriptedRun()
        await run_tool(upstream, "backwards", run)
        assert [reading[0] for reading in run.readings] == [5, 3, 9, None, 9]
        assert upstream.counted == {"repaired_progress": 1, "bad_progress": 2}


async def test_progress_for_unknown_tokens_reaches_nobody() -> None:
    """B7, U6: it is counted and dropped."""
    async with opened(raw("2026")) as upstream:
        run, other = ScriptedRun(), ScriptedRun()
        hanging = asyncio.create_task(run_tool(upstream, "hang", other))
        await until(lambda: other.readings)
        await run_tool(upstream, "strangers", run)
        assert (run.readings, len(other.readings)) == ([], 1)
        assert upstream.counted == {"unknown_token": 2, "bad_progress": 2}
        hanging.cancel()


async def test_nothing_counts_after_the_end() -> None:
    """P4: neither progress nor a second answer."""
    async with opened(raw("2026")) as upstream:
        run = ScriptedRun()
        assert text_of(await run_tool(upstream, "after", run)) == "done"
        assert text_of(await run_tool(upstream, "twice", run)) == "first"
        assert text_of(await run_tool(upstream, "echo", run, text="x")) == "x"
        assert run.readings == []
        assert upstream.counted == {"late_progress": 1, "stray_answer": 1}


@BOTH
async def test_fifty_megabytes_arrive(speaks: str) -> None:
    """G3: large, but under the limit."""
    async with opened(raw(speaks)) as upstream:
        assert len(text_of(await run_tool(upstream, "large", n=50_000_000))) == 50_000_000


async def test_a_message_over_the_limit_is_dropped_and_the_server_goes_on() -> None:
    """G3: whose answer it was cannot be known; its call is ended by its clocks."""
    async with opened(raw("2026"), options=ServerOptions(max_bytes=100_000)) as upstream:
        lost = asyncio.create_task(run_tool(upstream, "large", n=1_000_000))
        await until(lambda: upstream.counted)
        assert upstream.counted == {"message_too_long": 1}
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        assert not lost.done()
        lost.cancel()
        with suppress(asyncio.CancelledError):
            await lost


@BOTH
async def test_garbage_on_stdout_is_counted_and_nothing_else(speaks: str) -> None:
    """U1: a banner, half a message, binary, deep nesting."""
    async with opened(raw(speaks, "banner")) as upstream:
        assert text_of(await run_tool(upstream, "garbage")) == "done"
        assert upstream.counted["garbage"] >= 7
        assert any("Welcome" in line for _, line in upstream.logs)


async def test_an_answer_with_a_number_that_is_none_arrives() -> None:
    """U1: Python writes NaN, which no JSON knows."""
    async with opened(raw("2026")) as upstream:
        result = await run_tool(upstream, "nan")
        assert decoded(result.structured) == {"value": None}


async def test_a_schema_that_is_none_lets_the_server_judge() -> None:
    """E4: also one that would have to be fetched."""
    async with opened(raw("2026")) as upstream:
        upstream.remember(type(upstream.lists)([
            Raw(b'{"name":"echo","inputSchema":{"type":"nonsense"}}'),
            Raw(b'{"name":"count","inputSchema":{"$ref":"http://127.0.0.1:9/x"}}'),
            Raw(b'{"name":"echo","inputSchema":{}}'), Raw(b'{"name":5}'), Raw(b"[]"),
        ]))  # fmt: skip
        assert [tool.name for tool in upstream.tools()] == ["echo", "count"]
        assert upstream._last_connection is not None
        # As if the server had listed them.
        upstream._last_connection.digests = {tool.name: tool.digest for tool in upstream.tools()}
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
        assert upstream.counted == {"tool_named_twice": 1, "bad_tool": 2}


async def test_a_server_that_ignores_everything_is_killed_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """X1: closed stdin, then SIGTERM, then SIGKILL."""
    monkeypatch.setattr("afoot.providers.upstream.transport.stdio.EXIT_STEP_S", 0.05)
    wrapper = "import signal, sys, time, runpy; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    code = wrapper + f"runpy.run_module({RAW!r}, run_name='__main__'); time.sleep(60)"
    upstream = Upstream("raw", Server(command=sys.executable, args=["-c", code, "2026"], cwd=str(ROOT)))
    await upstream.open()
    pid = upstream.pid
    await upstream.close()
    assert not is_alive(pid)


async def test_a_child_gets_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """S4: only what it needs to find its way, and what its configuration adds."""
    monkeypatch.setenv("MY_SECRET", "x")
    code = "import os,sys; print(sorted(os.environ), file=sys.stderr); sys.exit(1)"
    server = Server(command=sys.executable, args=["-c", code], env={"GIVEN": "1"})
    upstream = Upstream("raw", server, options=ServerOptions(restart_limit=1))
    with pytest.raises(ToolError, match="GIVEN") as caught:
        await upstream.open()
    assert "PATH" in caught.value.message and "MY_SECRET" not in caught.value.message
    await upstream.close()
