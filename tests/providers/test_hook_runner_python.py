"""Hooks that are Python functions: sync and async, what they return and raise, and where they are found."""

import asyncio
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from afoot.config.settings import Hook
from afoot.errors import ToolError
from afoot.providers import hook_runner
from afoot.providers.hook_runner import ActiveHook, HookAnswer, HookFailed
from tests.providers.test_hook_runner import EVENT, fails, function, until


async def test_a_function_may_be_sync_or_async(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: a sync one runs in a thread of its own."""
    threads = list[threading.Thread]()

    def plain(event: dict[str, Any]) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return {"arguments": {"n": event["arguments"]["n"] + 1}}

    async def later(event: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return plain(event)

    for body in (plain, later, partial(later)):
        said = await function(body, monkeypatch).run(EVENT)
        assert bytes(said.changed) == b'{"n":2}'
    assert threads[0] is not threading.main_thread() and threads[1] is threading.main_thread()


async def test_a_function_may_raise_its_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: as a tool would."""

    def refuses(event: object) -> None:
        raise ToolError.refused("not on Sundays")

    assert (await function(refuses, monkeypatch).run(EVENT)).refusal == "not on Sundays"


@pytest.mark.parametrize("error", [ValueError("boom"), ToolError.internal("boom"), TimeoutError("boom")])
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_that_raises_has_failed(
    error: Exception, is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K1: whatever it raises."""

    def raises(event: object) -> None:
        raise error

    async def raises_later(event: object) -> None:
        raise error

    assert "boom" in await fails(function(raises_later if is_async else raises, monkeypatch))


@pytest.mark.parametrize("error", [SystemExit(1), StopIteration(), KeyboardInterrupt()])
async def test_a_thread_may_raise_anything(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: it is a failure of the hook, and nothing else."""

    def raises(event: object) -> None:
        raise error

    assert type(error).__name__ in await fails(function(raises, monkeypatch))


async def test_what_a_function_does_to_its_event_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """K1: what counts is what it returns."""

    def spoils(event: dict[str, Any]) -> None:
        event["arguments"]["n"] = 99

    event = {"arguments": {"n": 1}}
    assert await function(spoils, monkeypatch).run(event) == HookAnswer()
    assert event == {"arguments": {"n": 1}}


async def test_a_function_that_hangs_is_left_alone_and_after_eight_not_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K1, G4: threads cannot be killed, so their number is bounded; they come back, and so does the hook."""
    release, ran = threading.Event(), list[int]()

    def hangs(event: object) -> None:
        ran.append(1)
        release.wait()

    one = function(hangs, monkeypatch, timeout_s=0.01)
    for _ in range(hook_runner.MAX_STUCK_THREADS):
        assert "took longer" in await fails(one)
    assert await fails(one) == "is not run any more: 8 of its threads never came back"
    assert len(ran) == hook_runner.MAX_STUCK_THREADS
    release.set()
    await asyncio.to_thread(until, lambda: one.stuck == 0)


async def test_a_function_is_found_in_a_module_and_in_a_file(tmp_path: Path) -> None:
    """K1: package.module:function, file.py:function; and a file may import what lies beside it."""
    (tmp_path / "beside_hooks.py").write_text("REASON = 'from beside'")
    (tmp_path / "my_hooks.py").write_text(
        "from beside_hooks import REASON\nclass Of:\n    def check(event):\n        return {'refuse': REASON}"
    )
    one = ActiveHook(Hook("before_call", python=f"{tmp_path}/my_hooks.py:Of.check"))
    one.load()
    assert (await one.run(EVENT)).refusal == "from beside"
    sys.path.remove(str(tmp_path))
    module = ActiveHook(Hook("on_end", python="json:dumps"))
    module.load()
    assert await module.run(EVENT) == HookAnswer()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("no.such.module:check", "ModuleNotFoundError"),
        ("json:no_such", "no_such"),
        ("json:__name__", "is no function"),
        ("no_such_file.py:check", "FileNotFoundError"),
    ],
)
async def test_a_function_that_cannot_be_found_fails_each_time(named: str, told: str) -> None:
    """K1: it says why, at the start and whenever it should have run."""
    one = ActiveHook(Hook("before_call", python=named))
    with pytest.raises(HookFailed, match=told):
        one.load()
    assert told in await fails(one)
