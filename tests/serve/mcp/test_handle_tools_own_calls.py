"""Calls that were handed over: which of them a caller sees, how it stops one, and what it gets wrong."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.ports import CallQuery, Run
from tests.engine.fake_engine import Bench
from tests.serve.fake_gateway import Message, call_request, faked, nap, only, site_of, wanted
from tests.serve.mcp.handle_requests import BRIEF, MUTE, handed, tool_request, wait, words


@faked
@pytest.mark.parametrize("name", ["afoot_wait", "afoot_cancel"])
async def test_only_ones_own_calls_are_there(name: str) -> None:
    """S3, H5: whose call it is is not said, nor that there is one."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        theirs = await call_request(gateway, tool_request(name, {"call": call_id}), caller="session:2")
        nobodys = await call_request(gateway, tool_request(name, {"call": "nothing"}))
        assert only(gateway).call.cancel is None
    assert words(theirs).replace(call_id, "ID") == words(nobodys).replace("nothing", "ID")
    assert theirs.result["isError"] and theirs.result["_meta"]["dev.afoot/error"]["category"] == "not_found"


@faked
@pytest.mark.parametrize(
    "name, arguments, told",
    [
        ("afoot_wait", {}, "arguments.call: missing"),
        ("afoot_wait", {"call": 7}, "arguments.call: expected str"),
        ("afoot_wait", {"call": "x", "seconds": -1}, "arguments.seconds: expected float >= 0"),
        ("afoot_wait", {"call": "x", "second": 1}, "unknown field second"),
        ("afoot_calls", {"all": True}, "unknown field all"),
        ("afoot_cancel", {"call": "x", "reason": 1}, "arguments.reason: expected str"),
    ],
)
async def test_wrong_arguments_are_named(name: str, arguments: Message, told: str) -> None:
    """E4: as of any tool, as a result that a model can read."""
    async with site_of(nap) as gateway:
        tape = await call_request(gateway, tool_request(name, arguments))
    assert tape.result["isError"] and told in words(tape)
    assert tape.result["_meta"]["dev.afoot/error"]["category"] == "validation"


@faked
async def test_a_call_can_be_stopped() -> None:
    """H5, X1: with a reason; who waits is told how it ended."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        stopped = await call_request(
            gateway, tool_request("afoot_cancel", {"call": call_id, "reason": "too slow"})
        )
        assert "was told to stop" in words(stopped)
        tape = await call_request(gateway, wait(call_id))
        assert tape.result["isError"] and "cancelled: too slow" in words(tape)
        again = await call_request(gateway, tool_request("afoot_cancel", {"call": call_id}))
    assert "is over already: cancelled" in words(again) and not again.result.get("isError")


@faked
async def test_the_shared_caller_has_no_list() -> None:
    """S3, H5: whoever asks may be somebody else; it says so."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        tape = await call_request(gateway, tool_request("afoot_calls"))
    assert call_id not in str(tape.result) and "Use the id" in words(tape)


@faked
async def test_a_caller_lists_its_own_calls() -> None:
    """H5: those that run, and those that ended lately and were long enough to be handed over."""

    async def tool(run: Run) -> str:
        run.report(1, 2, "half way")
        await asyncio.sleep(10 if b"long" in bytes(gateway.engine[run.id].call.opened.arguments) else 1)
        return "done"

    async with site_of(tool) as gateway:
        usual: dict[str, Any] = {"budget": BRIEF, "capabilities": MUTE}
        mine = {"caller": "session:1"}
        await call_request(gateway, wanted(**usual), **mine)
        long = wanted(arguments=Raw(b'{"long":1}'), **usual)
        first = await call_request(gateway, long, **mine)
        await call_request(gateway, long, caller="session:2")
        call_id = first.result["structuredContent"]["afoot_call"]
        running = await call_request(gateway, tool_request("afoot_calls"), **mine)
        await asyncio.sleep(10)
        ended = await call_request(gateway, tool_request("afoot_calls"), **mine)
        await asyncio.sleep(3600)
        gone = await call_request(gateway, tool_request("afoot_calls"), **mine)
    assert words(running) == f"{call_id}: tool, running, 6 s, at 1/2: half way"
    assert running.result["structuredContent"] == {"calls": [call_id], "text": words(running)}
    assert words(ended) == f"{call_id}: tool, ended: ok"
    assert "None of your calls" in words(gone) and gone.result["structuredContent"]["calls"] == []


@faked
async def test_none_of_it_is_a_call() -> None:
    """H5: the history has what was done, and not who asked for it."""
    async with site_of(nap) as gateway:
        call_id = await handed(gateway)
        await call_request(gateway, wait(call_id))
        await call_request(gateway, tool_request("afoot_calls"))
        await call_request(gateway, tool_request("afoot_cancel", {"call": call_id}))
        await asyncio.sleep(10)
        rows = await gateway.engine.journal.find(CallQuery())
    assert [row.id for row in rows] == [call_id]


@faked
async def test_a_server_offers_a_tool_of_that_name_under_its_own() -> None:
    """H5, U12: the name stays the gateway's, and the tool can be called."""

    async def own(run: Run) -> str:
        return "mine"

    async with site_of(nap) as gateway:
        bench = Bench()
        bench.add(own, "afoot_wait")
        gateway.engine.catalog.put(bench)
        assert words(await call_request(gateway, tool_request("bench__afoot_wait"))) == "mine"
        assert words(await call_request(gateway, tool_request("afoot_wait"))) == "arguments.call: missing"
