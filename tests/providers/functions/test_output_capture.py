"""Prints and logs of a tool."""

import asyncio
import logging
import sys
from typing import Any

import pytest

from afoot.providers.functions import output_capture
from afoot.providers.functions.context import Context
from tests.providers.fake_run import ScriptedRun, call

log = logging.getLogger("their.module")


async def test_prints_go_to_the_history_and_where_they_went_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """H1: line by line, from the loop and from threads."""

    async def on_loop() -> None:
        print("one", 1)
        print("two", file=sys.stderr)
        print("no end", end="")

    def in_thread() -> None:
        print("three")

    run = ScriptedRun()
    await call(on_loop, run=run)
    await call(in_thread, run=run)
    assert run.logs == [
        ("one 1", "info", "stdout"),
        ("two", "info", "stderr"),
        ("no end", "info", "stdout"),
        ("three", "info", "stdout"),
    ]
    assert capsys.readouterr() == ("one 1\nno endthree\n", "two\n")


async def test_log_records_go_to_the_history_with_their_level() -> None:
    """H1: with the trace, and without afoot's own."""

    async def logs() -> None:
        log.warning("careful %s", 1)
        logging.getLogger("afoot.providers").warning("ours")
        try:
            raise ValueError("x")
        except ValueError:
            log.exception("failed")

    run = ScriptedRun()
    await call(logs, run=run)
    assert run.logs[0] == ("careful 1", "warning", "their.module")
    assert run.logs[1][1] == "error"
    assert "ValueError: x" in run.logs[1][0]
    assert len(run.logs) == 2


async def test_a_record_that_a_handler_prints_is_heard_once() -> None:
    """H1: a tool that logs to stderr says a thing once."""

    async def logs() -> None:
        handler = logging.StreamHandler(sys.stderr)
        log.addHandler(handler)
        log.warning("once")
        log.removeHandler(handler)

    run = ScriptedRun()
    await call(logs, run=run)
    assert [text for text, _, _ in run.logs] == ["once"]


async def test_output_is_capped_and_the_cut_is_said() -> None:
    """G3: 200 lines or 64 KB a call."""

    async def many() -> None:
        for n in range(1000):
            print(n)

    async def much() -> None:
        for _ in range(100):
            print("x" * 1000)

    for function, kept in ((many, 200), (much, 65)):
        run = ScriptedRun()
        await call(function, run=run)
        assert len(run.logs) == kept + 1
        assert run.logs[-1] == ("output is cut here: over 200 lines or 64 KB", "warning", "afoot")


async def test_of_a_line_written_over_only_the_last_state_is_kept() -> None:
    """P10: a bar in a terminal is one line."""

    async def bar() -> None:
        for n in range(1, 4):
            sys.stdout.write(f"\r{n}/3")
        sys.stdout.write("\nafter\r\n")

    run = ScriptedRun()
    await call(bar, run=run)
    assert [text for text, _, _ in run.logs] == ["3/3", "after"]


async def test_calls_at_the_same_time_keep_their_own_lines() -> None:
    """C8: by the context variable."""

    async def say(word: str, ctx: Context) -> None:
        print(word, end=" ")
        await asyncio.sleep(0)
        print(ctx.id)

    runs = [ScriptedRun("a"), ScriptedRun("b")]
    await asyncio.gather(*(call(say, {"word": f"from {run.id}"}, run) for run in runs))
    assert [[text for text, _, _ in run.logs] for run in runs] == [["from a a"], ["from b b"]]


def test_outside_of_a_call_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    """P10: the stream is the one it was, in all it can do."""
    before: Any = sys.stdout
    output_capture.install()
    output_capture.install()
    assert type(sys.stdout) is output_capture.CapturingStream
    print("hello")
    sys.stdout.writelines(["a", "b\n"])
    assert sys.stdout.encoding == before.encoding
    assert not sys.stdout.isatty()
    output_capture.uninstall()
    assert sys.stdout is before
    assert capsys.readouterr().out == "hello\nab\n"


def test_a_tools_own_logging_configuration_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: listening adds no handler, which would make basicConfig do nothing."""
    monkeypatch.setattr(logging.root, "handlers", [])
    output_capture.install()
    assert logging.root.handlers == []
