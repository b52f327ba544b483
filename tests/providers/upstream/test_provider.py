"""Servers as providers: what is offered, what is sent, and what is made of what comes back."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.core.facts import ChildSummary, Limits
from afoot.errors import ToolError
from afoot.providers.upstream.provider import ConnectionKey, ServerOptions, Upstream
from afoot.providers.upstream.server_lists import ServerLists
from afoot.wire.jsonrpc import Fault
from tests.providers.fake_run import ScriptedRun, accept, decoded, text_of, until
from tests.providers.upstream.started_servers import opened, raw, run_tool, sdk

BOTH = pytest.mark.parametrize("speaks", ["2025", "2026"])


@pytest.mark.parametrize(
    ("speaks", "era"), [("2025", "2025-11-25"), ("2026", "2026-07-28"), ("both", "2025-11-25")]
)
async def test_the_era_is_found_out(speaks: str, era: str) -> None:
    """U1, U10: the handshake if the server has it, else 2026-07-28; who the server is comes with it."""
    async with opened(raw(speaks)) as upstream:
        assert (upstream.state, upstream.era, upstream.info["name"]) == ("ready", era, "raw")
        assert upstream.pid is not None
        assert "tools" in upstream.capabilities
        assert len(upstream.tools()) > 20  # three pages


async def test_a_pinned_era_is_kept_to() -> None:
    """U1: a server that speaks both is spoken to as configured."""
    async with opened(raw("both", era="2026-07-28")) as upstream:
        assert upstream.era == "2026-07-28"


async def test_a_server_that_does_not_speak_the_pinned_era_says_so() -> None:
    """U1: and is not tried in vain."""
    upstream = Upstream("raw", raw("2025", era="2026-07-28"))
    with pytest.raises(ToolError, match="unknown method"):
        await upstream.open()
    assert upstream.state == "failed"
    await upstream.close()


async def test_a_handshake_without_an_answer_is_given_up() -> None:
    """U1: a server of 2026-07-28 may not answer what it does not know."""
    async with opened(raw("2026", "never"), options=ServerOptions(probe_s=0.05)) as upstream:
        assert upstream.era == "2026-07-28"
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"


async def test_a_handshake_that_is_answered_late_counts() -> None:
    """U1: the other question that was sent meanwhile stays without an answer, and that is no failure."""
    server = raw("2025", "silent", "slow-initialize")
    async with opened(server, options=ServerOptions(probe_s=0.05)) as upstream:
        assert upstream.era == "2025-11-25"
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"


async def test_nothing_runs_before_it_is_needed() -> None:
    """U1: one start for all who wait, and none for those who come later."""
    upstream = Upstream("raw", raw("2026"))
    assert (upstream.state, upstream.pid, list(upstream.tools())) == ("idle", None, [])
    starts = [upstream.start("echo", "a"), upstream.start("echo", "b")]
    assert [start.what for start in starts if start] == ["starting server raw"] * 2
    await asyncio.gather(*(start.done() for start in starts if start))
    assert upstream.state == "ready"
    assert upstream.start("echo", "a") is None
    await upstream.close()
    assert upstream.state == "stopped"


async def test_what_is_known_from_before_can_be_called_without_listing_first() -> None:
    """U1: a list that was kept is offered at once; the server's own replaces it, and listeners are told."""
    async with opened(raw("2026")) as first:
        kept = first.lists
    upstream = Upstream("raw", raw("2026"))
    told: list[tuple[str, str | None]] = []
    upstream.remember(ServerLists(kept.tools[:1]))
    upstream.listen(lambda kind, uri: told.append((kind, uri)))
    assert [tool.name for tool in upstream.tools()] == ["echo"]
    assert text_of(await run_tool(upstream, "echo", text="x")) == "x"
    await until(lambda: told)
    assert told == [("tools", None)]
    assert len(upstream.tools()) == len(kept.tools)
    await upstream.close()


async def test_a_tool_is_offered_as_its_server_describes_it() -> None:
    """A1, U4: definitions are passed on whole; hints are known, and believed only if the config says so."""
    async with opened(raw("2026")) as upstream:
        offered = {tool.name: tool for tool in upstream.tools()}
        echo, die = offered["echo"], offered["die"]
        assert decoded(echo.definition)["x-unknown"] == 1
        assert (echo.read_only, echo.idempotent, echo.trusted, echo.inner) == (True, True, False, "echo")
        assert (die.destructive, die.read_only) == (True, False)
        assert offered["count"].destructive is False  # a missing hint is no hint
        assert len({tool.digest for tool in offered.values()}) == len(offered)


@pytest.mark.parametrize(
    ("config", "echo", "count"),
    [
        ({"trust_annotations": True}, (True, True, True), (False, False, True)),
        ({"read_only": ["count"]}, (True, True, False), (True, False, True)),
        ({"idempotent": ["echo"]}, (False, True, True), (False, False, False)),
    ],
)
async def test_what_is_safe_to_repeat_is_said_by_the_config(
    config: dict[str, Any], echo: tuple[bool, ...], count: tuple[bool, ...]
) -> None:
    """U4: silence means no; a listed tool is trusted in what the list says, and in nothing else."""
    async with opened(raw("2026", **config)) as upstream:
        offered = {tool.name: tool for tool in upstream.tools()}
        assert [
            (tool.read_only, tool.idempotent, tool.trusted) for tool in (offered["echo"], offered["count"])
        ] == [echo, count]


async def test_limits_come_from_the_server_and_silence_counts_only_where_it_was_set() -> None:
    """C1: an upstream has no idle limit until it has reported, unless the config gives it one."""
    async with opened(raw("2026", ceiling_s=7.0), Limits(idle_s=9.0)) as upstream:
        assert upstream.tools()[0].limits == Limits(idle_s=9.0, ceiling_s=7.0, patient=True)
    async with opened(raw("2026", idle_s=3.0)) as upstream:
        assert upstream.tools()[0].limits == Limits(idle_s=3.0, patient=False)


@BOTH
async def test_a_call_has_a_token_of_its_own_and_what_time_is_left(speaks: str) -> None:
    """T2, C3, P8: fresh for each request, with a margin off the budget."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun("call-9")
        run.left = (5.0, 20.0)
        sent = [json.decode(text_of(await run_tool(upstream, "meta", run))) for _ in range(2)]
        assert sent[0]["dev.afoot/budget"] == {"idle_s": 5.0, "left_s": 19.0}
        assert sent[0]["dev.afoot/parent"] == {"call": "call-9", "weight": 1}
        assert sent[0]["progressToken"] != sent[1]["progressToken"]
        assert ("io.modelcontextprotocol/logLevel" in sent[0]) == (speaks == "2026")


@pytest.mark.parametrize("trusted", [False, True])
async def test_what_an_afoot_behind_us_says_beside_the_numbers_is_understood(trusted: bool) -> None:
    """C3, T5, P7, P8, P11: notices are signs of life, a person waited for stops the clocks, data travels."""
    async with opened(raw("2026", trust_annotations=trusted)) as upstream:
        run = ScriptedRun()
        await run_tool(upstream, "meta", run)
    assert run.beats == 3
    assert run.waits == ["ask", None]
    assert run.events.index("waiting") < run.events.index("content")
    assert [(part.progress, decoded(part.data), decoded(part.partial)) for part in run.contents[:2]] == [
        (3, {"phase": "one"}, None),
        (4, None, [{"type": "text", "text": "half"}]),
    ]
    children = [part.children for part in run.contents[2:]]
    assert [len(part) for part in children] == ([49, 1] if trusted else [])
    if trusted:
        assert children[0][0] == ChildSummary("x", "inner", "running", progress=1, total=4)
        assert children[1] == (ChildSummary("x", "inner", "finished", "ok"),)
    told = [(2, 8, None), *([] if trusted else [(6, None, None)]), (7, None, None), (None, None, "words")]
    assert run.readings == told


async def test_an_error_of_an_afoot_behind_us_is_told_once() -> None:
    """E2, P11: without the sentences that are added here again; with its clock, and parts told only now."""
    async with opened(raw("2026")) as upstream:
        run = ScriptedRun()
        with pytest.raises(ToolError) as caught:
            await run_tool(upstream, "spoiled", run)
    error = caught.value
    assert (error.message, error.category, error.clock) == ("timed out: no report for 5 s", "timeout", "idle")
    assert [decoded(part.partial)[0]["text"] for part in run.contents] == ["half", "rest"]


@BOTH
async def test_log_lines_of_a_call_are_its_own(speaks: str) -> None:
    """U5: also a level that nobody knows, and data that is no text."""
    async with opened(raw(speaks)) as upstream:
        run = ScriptedRun()
        await run_tool(upstream, "log", run)
        assert run.logs == [("a line", "warning", "me"), ('{"a": 1}', "info", "raw")]


async def test_errors_of_the_protocol_become_errors_of_the_tool() -> None:
    """E1: with a category."""
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match="server raw: no") as caught:
            await run_tool(upstream, "refuse", n=-32601)
        assert (caught.value.category, caught.value.code) == ("not_found", "-32601")
        with pytest.raises(ToolError, match="no such thing") as caught:
            await run_tool(upstream, "missing")
        assert (caught.value.code, caught.value.retry_after) == ("gone", 3)


async def test_a_missing_argument_is_named() -> None:
    """E4: like a wrong one."""
    async with opened(raw("2026")) as upstream:
        with pytest.raises(ToolError, match=r"arguments\.n: missing"):
            upstream.prepare("count", Raw(b"{}"))


async def test_arguments_may_be_written_over_several_lines() -> None:
    """U1: a line break in somebody's JSON does not break the line it is sent in."""
    async with opened(raw("2026")) as upstream:
        result = await upstream.prepare("newline", Raw(b'{\n  "a": [1,\r\n 2]\n}'))(ScriptedRun())
        assert text_of(result) == '{"a": [1, 2]}'


@BOTH
async def test_a_cancel_is_told_to_the_server(speaks: str) -> None:
    """X1: in the protocol's way, and nobody waits for it."""
    async with opened(raw(speaks, "tell-cancel")) as upstream:
        run = ScriptedRun()
        task = asyncio.create_task(run_tool(upstream, "hang", run))
        await until(lambda: run.readings)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: any("cancelled" in line for _, line in upstream.logs))
        assert text_of(await run_tool(upstream, "echo", text="x")) == "x"


@BOTH
async def test_a_changed_list_is_asked_for_and_told(speaks: str) -> None:
    """U5: the call that is under way is not touched by it."""
    async with opened(raw(speaks)) as upstream:
        told: list[str] = []
        forget = upstream.listen(lambda kind, uri: told.append(kind))
        assert text_of(await run_tool(upstream, "change")) == "changed"
        await until(lambda: told)
        assert told == ["tools"]
        assert "another" in {tool.name for tool in upstream.tools()}
        forget()


async def test_resources_and_prompts_are_listed_read_and_subscribed_to() -> None:
    """U5: everything else goes through `request`; an unknown method is the server's own error."""
    async with opened(raw("2025")) as upstream:
        told: list[tuple[str, str | None]] = []
        upstream.listen(lambda kind, uri: told.append((kind, uri)))
        assert (upstream.lists.resources, upstream.lists.prompts) == (
            [{"uri": "test://a", "name": "a"}],
            [{"name": "p"}],
        )
        read = await upstream.request("resources/read", {"uri": "test://a"})
        assert read["contents"][0]["text"] == "hello"
        await upstream.subscribe("test://a")
        await until(lambda: told)
        assert told == [("resource", "test://a")]
        with pytest.raises(Fault) as caught:
            await upstream.request("magic/do")
        assert caught.value.code == -32601


async def test_each_caller_has_a_server_of_its_own_where_the_config_says_so() -> None:
    """U1: for servers that keep state."""
    async with opened(raw("2026", per_caller=True)) as upstream:
        runs = [ScriptedRun(), ScriptedRun()]
        runs[1].caller = "another"
        pids = set()
        for run in runs:
            assert upstream.start("echo", run.caller) is not None
            assert text_of(await run_tool(upstream, "echo", run, text="x")) == "x"
            assert upstream.start("echo", run.caller) is None
            connection = upstream._reconnecting(ConnectionKey(run.caller, b"")).connection
            assert connection is not None
            pids.add(connection.transport.pid)
        assert len({*pids, upstream.pid}) == 3
        await upstream.forget("another")
        assert upstream.start("echo", "another") is not None


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28", "auto"])
async def test_a_server_of_the_sdk_is_spoken_to_on_its_pipes(era: str) -> None:
    """U1: a real one, in each era."""
    async with opened(sdk(era=era)) as upstream:
        run = ScriptedRun(answers=[accept({"sure": True})])
        assert text_of(await run_tool(upstream, "count", run, n=5)) == "5"
        assert [reading[0] for reading in run.readings] == [1, 2, 3, 4, 5]
        assert text_of(await run_tool(upstream, "confirm", run)) == "yes"
        read = await upstream.request("resources/read", {"uri": "test://static"})
        assert read["contents"][0]["text"] == "text of a resource"
        assert upstream.counted == {}


async def test_null_for_an_argument_that_may_be_left_out_is_let_through() -> None:
    """E4: as models write it; it is sent as it came, and a required one is still missed."""
    async with opened(raw("2026")) as upstream:
        upstream.prepare("count", Raw(b'{"n": 1, "more": null}'))
        with pytest.raises(ToolError, match=r"arguments\.n: missing"):
            upstream.prepare("count", Raw(b'{"n": null}'))
