"""A child process that is used again: each call finds it as the first one did, or is given another."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from afoot import Gateway
from afoot.providers.isolation import processes
from tests.providers.fake_run import decoded, text_of
from tests.providers.isolation.isolated_provider import PATIENCE_S, happens
from tests.providers.isolation.test_unusual_tools import odd, told

TOOLS = Path(__file__).with_name("reused_child_tools.py")


async def given(gateway: Gateway, tool: str, **arguments: object) -> Any:
    """What a call gave."""
    call = await asyncio.wait_for(gateway.call(tool, arguments), PATIENCE_S)
    assert call.end is not None and call.end.result is not None, told(call)
    return decoded(call.end.result.structured)["result"]


async def test_a_child_that_was_sent_a_signal_serves_no_other_call() -> None:
    """G1, X1: a loop that an earlier call had left at rest there would run nothing any more."""
    async with odd(TOOLS, cancel_grace_s=1) as gateway:
        pid = await given(gateway, "where")
        call_id = gateway.submit("insists")
        await happens(lambda: gateway.engine[call_id].call.latest)
        gateway.cancel(call_id, "enough")
        call = await asyncio.wait_for(gateway.result(call_id), PATIENCE_S)
        assert call.end is not None and call.end.result is not None and text_of(call.end.result) == str(pid)
        assert await given(gateway, "where") != pid


async def test_a_task_that_a_call_left_behind_ends_with_its_child(tmp_path: Path) -> None:
    """C8, G1: as a thread does; a loop on which nothing is left keeps its child."""
    async with odd(TOOLS) as gateway:
        pid = await given(gateway, "leaves_a_task", file=str(tmp_path))
        await happens(lambda: pid not in processes.descendants(os.getpid()))
        other = await given(gateway, "where")
        assert other != pid and await given(gateway, "where") == other


async def test_each_call_begins_in_the_same_folder(tmp_path: Path) -> None:
    """C8, G1: with the same mask for what it writes, whatever a call before it has set."""
    async with odd(TOOLS) as gateway:
        before = await given(gateway, "place")
        assert await given(gateway, "moves", folder=str(tmp_path)) == [str(tmp_path), before[-1]]
        assert await given(gateway, "place") == before


@pytest.mark.parametrize("what", ["RLIMIT_NOFILE", "RLIMIT_FSIZE"])
async def test_what_a_call_gave_up_for_good_no_other_has_to_miss(what: str) -> None:
    """C8, G1: a limit of the system, whether it can be raised again or not."""
    async with odd(TOOLS) as gateway:
        pid = await given(gateway, "gives_up", what=what)
        assert await given(gateway, "where") != pid


async def test_a_call_goes_on_when_everything_is_told_to_stop_but_the_gateway(tmp_path: Path) -> None:
    """G1, X1: as who stops a service tells all of its processes; the gateway sees to its calls itself."""
    mark = tmp_path / "mark"
    async with odd(TOOLS) as gateway:
        call_id = gateway.submit("waits", {"mark": str(mark)})
        await happens(lambda: gateway.engine[call_id].call.latest)
        fork_client = gateway.children._fork_client
        assert fork_client is not None and fork_client._process is not None
        reaper = fork_client._process.pid
        for pid in (reaper, *processes.descendants(reaper)):
            os.kill(pid, signal.SIGTERM)
        pid = await given(gateway, "where")  # which the fork server does after it has had its signal
        assert pid
        mark.touch()
        assert told(await asyncio.wait_for(gateway.result(call_id), PATIENCE_S)) == "done"


async def test_a_child_that_is_over_leaves_no_file_behind(tmp_path: Path) -> None:
    """G1: there is one for each, and a gateway may run for months."""
    async with odd(TOOLS) as gateway:
        await given(gateway, "where")
        fork_client = gateway.children._fork_client
        assert fork_client is not None
        first = f"s.{min(gateway.children._all)}"
        assert first in os.listdir(fork_client._folder)
        await given(gateway, "leaves_a_task", file=str(tmp_path))
        await happens(lambda: first not in os.listdir(fork_client._folder))
