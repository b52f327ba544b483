"""Tasks of 2025-11-25: asked for by the caller, who polls, lists, waits for results and cancels (H3)."""

import asyncio
from typing import Any

import mcp_types
import pytest

from afoot.core.ports import Run
from afoot.engine.live_call import Submission
from afoot.serve.gateway_state import GatewayState
from afoot.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, Fault
from afoot.wire.results import Capabilities
from afoot.wire.tasks import RELATED_TASK
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import YES, Client, Message, Tape, faked, nap, only, question, said, site_of
from tests.serve.raw_transports import cancelled, hello, request
from tests.serve.task_client import ask_late, walk

ASKED: Message = {"name": "tool", "task": {"ttl": 60_000}}


async def shaken(gateway: GatewayState, version: str = "2025-11-25", **capabilities: object) -> Client:
    """A client of the handshake era."""
    client = Client(gateway)
    opening = hello(**capabilities)
    opening["params"]["protocolVersion"] = version
    await client.ask(opening)
    return client


async def start(client: Client, id: int = 1) -> str:
    """A task, by its id."""
    made = (await client.ask(request("tools/call", ASKED, id))).result
    return mcp_types.CreateTaskResult.model_validate(made).task.task_id


async def get(client: Client, task: str) -> Message:
    """The task as it is."""
    return (await client.ask(request("tasks/get", {"taskId": task}, "get"))).result


def wait(client: Client, task: str, id: int | str = "wait", **meta: Any) -> Tape:
    """Ask for a result, and do not wait."""
    return client.put(request("tasks/result", {"taskId": task, "_meta": meta}, id))


@faked
async def test_a_task_is_created_polled_and_its_result_waited_for() -> None:
    """H3: with live numbers; the result says its task."""
    async with site_of(walk) as gateway:
        client = await shaken(gateway)
        task = await start(client)
        assert task == only(gateway).call.id
        await asyncio.sleep(3.5)
        half = await get(client, task)
        assert half["status"] == "working" and half["statusMessage"] == "3/10 · step 3, ~6 s left"
        assert half["_meta"]["dev.afoot/progress"] == {"progress": 3, "total": 10, "eta_s": 6.5}
        tape = wait(client, task, progressToken="t")
        await client.done()
        assert (await get(client, task))["status"] == "completed"
    assert tape.result["content"][0]["text"] == "there"
    assert tape.result["_meta"][RELATED_TASK] == {"taskId": task}
    assert tape.numbers[-1] == (10, 10) and tape.ended[0][0] == 10


@faked
async def test_even_what_is_over_at_once_is_a_task_if_that_was_asked_for() -> None:
    """H3: in this era the caller decides."""

    async def quick(run: Run) -> str:
        return "here"

    async with site_of(quick) as gateway:
        client = await shaken(gateway)
        task = await start(client)
        tape = wait(client, task)
        await client.done()
    assert tape.result["content"][0]["text"] == "here"


@faked
async def test_a_question_is_put_to_whoever_waits_for_the_result() -> None:
    """H3, Q1: input_required, then a nested request that says its task."""
    async with site_of(ask_late) as gateway:
        client = await shaken(gateway, elicitation={})
        task = await start(client)
        await asyncio.sleep(2)
        assert (await get(client, task))["status"] == "input_required"
        tape = wait(client, task)
        await asyncio.sleep(1)
        [(_, asked)] = tape.of("elicitation/create")
        assert asked["params"]["_meta"][RELATED_TASK] == {"taskId": task}
        client.answer(asked, **YES)
        await client.done()
    assert tape.result["content"][0]["text"] == "accept {} by session:1"


@faked
async def test_a_cancel_of_a_wait_leaves_the_task_and_one_of_the_task_ends_it() -> None:
    """X1, H3: and what is over cannot be cancelled."""
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        task = await start(client)
        wait(client, task, 5)
        await asyncio.sleep(1)
        client.tell(cancelled(5))
        await client.done()
        assert (await get(client, task))["status"] == "working"
        stopped = await client.ask(request("tasks/cancel", {"taskId": task}, 6))
        assert stopped.result["status"] == "cancelled"
        await asyncio.sleep(1)
        with pytest.raises(Fault, match="over already") as late:
            await client.ask(request("tasks/cancel", {"taskId": task}, 7))
    assert late.value.code == INVALID_PARAMS


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@faked
async def test_a_task_of_another_session_is_as_unknown_as_one_that_there_is_not(method: str) -> None:
    """S3: word for word."""
    async with site_of(nap) as gateway:
        theirs = gateway.engine.submit(Submission("tool", caller="session:2")).call.id
        client = await shaken(gateway)
        told: list[str] = []
        for task in (theirs, "none"):
            with pytest.raises(Fault) as refused:
                await client.ask(request(method, {"taskId": task}))
            assert refused.value.code == INVALID_PARAMS
            told.append(refused.value.message.replace(task, ""))
        assert told[0] == told[1] and only(gateway).call.cancel is None


@pytest.mark.parametrize("task", [[], "x", {"ttl": -1}, {"ttl": "long"}])
@faked
async def test_a_task_that_is_asked_for_wrongly_is_told_which_field(task: object) -> None:
    """E4: before anything runs."""
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        with pytest.raises(Fault, match=r"^params\.task") as refused:
            await client.ask(request("tools/call", {"name": "tool", "task": task}))
        assert refused.value.code == INVALID_PARAMS and gateway.engine.calls() == []


@pytest.mark.parametrize(("support", "params"), [("required", {"name": "tool"}), ("forbidden", ASKED)])
@faked
async def test_a_tool_that_does_not_run_that_way_says_so(support: str, params: Message) -> None:
    """H3: -32601, before anything runs."""
    async with site_of(nap, task=support) as gateway:
        client = await shaken(gateway)
        with pytest.raises(Fault, match="task") as refused:
            await client.ask(request("tools/call", params))
        assert refused.value.code == METHOD_NOT_FOUND and gateway.engine.calls() == []


@faked
async def test_the_list_of_tools_says_what_may_be_a_task_and_the_welcome_that_there_are_some() -> None:
    """H3: from 2025-11-25 on; older versions hear nothing of it, and `task` means nothing to them."""
    async with site_of(nap, task="required") as gateway:
        client = Client(gateway)
        welcome = (await client.ask(hello())).result
        assert welcome["capabilities"]["tasks"]["requests"] == {"tools": {"call": {}}}
        [tool] = (await client.ask(request("tools/list"))).result["tools"]
        assert tool["execution"] == {"taskSupport": "required"}
    async with site_of(nap) as gateway:
        older = await shaken(gateway, "2025-06-18")
        [tool] = (await older.ask(request("tools/list"))).result["tools"]
        assert "execution" not in tool
        assert (await older.ask(request("tools/call", ASKED))).result["content"][0]["text"] == "slept"
        with pytest.raises(Fault) as unknown:
            await older.ask(request("tasks/list"))
    assert unknown.value.code == METHOD_NOT_FOUND


@faked
async def test_a_task_that_failed_gives_its_error_as_the_result() -> None:
    """E2, H3: what the request would have been answered with."""

    async def fail(run: Run) -> str:
        await asyncio.sleep(1)
        raise RuntimeError("oh")

    async with site_of(fail) as gateway:
        client = await shaken(gateway)
        task = await start(client)
        tape = wait(client, task)
        await client.done()
        assert (await get(client, task))["status"] == "failed"
    assert tape.result["isError"] and "crashed" in tape.result["content"][0]["text"]


@faked
async def test_an_impatient_client_gets_its_result_and_no_handle() -> None:
    """H3, H5: whoever asks for a task's result waits for it."""
    async with site_of(nap, settings={"caller_limits": {"test": 4}}) as gateway:
        client = await shaken(gateway)
        tape = wait(client, await start(client))
        await client.done()
    assert tape.result["content"][0]["text"] == "slept"


@faked
async def test_an_approval_of_a_task_is_put_to_whoever_waits_for_its_result() -> None:
    """A5, H3: as any other question."""

    async def ask(run: Run) -> str:
        return said(await run.ask(form("sure")))

    async with site_of(ask, approval="ask") as gateway:
        client = await shaken(gateway, elicitation={})
        task = await start(client)
        await asyncio.sleep(1)
        assert (await get(client, task))["status"] == "input_required"
        tape = wait(client, task)
        await asyncio.sleep(1)
        client.answer(tape.of("elicitation/create")[0][1], action="accept", content={"decision": "run"})
        await asyncio.sleep(1)
        client.answer(tape.of("elicitation/create")[1][1], **YES)
        await client.done()
    assert tape.result["content"][0]["text"] == "accept {} by session:1"


@pytest.mark.parametrize("meta", [{}, {"dev.afoot/idempotency": "k"}])
@faked
async def test_a_tool_that_waits_for_a_call_is_no_task_itself(meta: Message) -> None:
    """H3, H5: -32601, as its definition declares nothing; the call it means is left alone."""
    async with site_of(nap) as gateway:
        client = await shaken(gateway)
        task = await start(client)
        for name, given in (("afoot_wait", {"call": task}), ("afoot_cancel", {"call": task})):
            params: Message = {"name": name, "arguments": given, "task": {}, "_meta": meta}
            with pytest.raises(Fault, match="does not run as a task") as refused:
                await client.ask(request("tools/call", params, 2))
            assert refused.value.code == METHOD_NOT_FOUND
        assert only(gateway).call.cancel is None


async def stubborn(run: Run) -> str:
    """A tool that asks the caller's model, and takes its time to stop."""
    try:
        await run.ask(question("sample"))
    except asyncio.CancelledError:
        await asyncio.sleep(2)
        raise
    return "never"


@faked
async def test_a_task_that_is_being_cancelled_is_cancelled_already_and_still_has_its_result() -> None:
    """X1, H3: its status is one that stays, so a second cancel is refused; what it asked troubles nobody."""
    async with site_of(stubborn) as gateway:
        client = await shaken(gateway, sampling={})
        task = await start(client)
        await asyncio.sleep(1)
        stopped = await client.ask(request("tasks/cancel", {"taskId": task}, 6))
        assert stopped.result["status"] == "cancelled" and only(gateway).call.open
        with pytest.raises(Fault, match="over already") as late:
            await client.ask(request("tasks/cancel", {"taskId": task}, 7))
        assert late.value.code == INVALID_PARAMS
        client.session.capabilities = Capabilities()
        tape = wait(client, task)
        await client.done()
        assert (await get(client, task))["status"] == "cancelled"
    assert tape.result["isError"] and "cancelled" in tape.result["content"][0]["text"]
