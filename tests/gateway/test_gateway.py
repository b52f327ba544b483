"""The gateway as a Python program uses it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from msgspec.structs import replace

import afoot
from afoot import Context, Gateway
from afoot.config.settings import Settings, ToolSettings
from afoot.core.facts import Asked, Fact, Finished, Logged, Opened, Reading, Started
from afoot.errors import CallerError, Refused, StoreError, UnknownName
from afoot.gateway import MEMORY
from afoot.testing import run, scripted, try_tool
from tests.engine.fake_engine import Journalist, kinds
from tests.serve.fake_gateway import faked

TOOLS = '''
"""Tools."""
import afoot

@afoot.tool
async def hello(name: str) -> str:
    """Say hello."""
    return f"hello {name}"
'''


@afoot.tool
async def count(n: int, ctx: Context | None = None) -> int:
    """Count, once a second."""
    for i in range(n):
        await asyncio.sleep(1)
        if ctx:
            ctx.report(i + 1, n)
    return n


async def followed(gateway: Gateway, call: str, hz: float | None = None) -> list[Fact | Reading]:
    """Everything that following this call brings."""
    return [item async for item in gateway.follow(call, hz)]


@faked
async def test_a_call_is_made_and_waited_for() -> None:
    """Design 5: functions in, calls out."""
    async with Gateway(count) as gateway:
        assert [tool.name for tool in gateway.tools()] == ["count"]
        call = await gateway.call("count", {"n": 3})
    assert (
        call.end
        and call.end.outcome == "ok"
        and b"3" in bytes(call.end.result.content if call.end.result else b"")
    )


@faked
async def test_following_from_the_beginning_brings_facts_and_readings_in_order() -> None:
    """H2: to the end, and no further."""
    async with Gateway(count) as gateway:
        items = await followed(gateway, gateway.submit("count", {"n": 3}))
    kinds = [type(item) for item in items]
    assert kinds == [Opened, Started, Reading, Reading, Reading, Finished]


@faked
async def test_a_last_reading_of_the_last_instant_is_not_lost_on_a_follower() -> None:
    """P4: the final value is always flushed."""
    async with Gateway(scripted(("sleep", 1), ("report", 10, 10), ("return", "done"))) as gateway:
        for hz in (0, 20):
            items = await followed(gateway, gateway.submit("script"), hz)
            assert isinstance(items[-1], Finished) and isinstance(items[-2], Reading)


@faked
async def test_a_late_follower_gets_the_past_then_the_present() -> None:
    """H2: without a gap or a repeat of any fact."""
    script = scripted(
        *[("log", f"line {n}") if n % 2 else ("sleep", 1) for n in range(20)], ("return", "done")
    )
    async with Gateway(script) as gateway:
        call = gateway.submit("script")
        await asyncio.sleep(5.5)
        late = await followed(gateway, call)
        after = await followed(gateway, call)
    assert late == after and [item.text for item in late if isinstance(item, Logged)] == [
        f"line {n}" for n in range(1, 20, 2)
    ]


@faked
async def test_a_question_is_seen_and_answered() -> None:
    """Q4: from a program."""
    async with Gateway(scripted(("ask", "sure?", bool))) as gateway:
        call = gateway.submit("script")
        async for item in gateway.follow(call):
            if isinstance(item, Asked):
                gateway.answer(item.question.id, {"value": True})
        done = await gateway.result(call)
    assert done.end and done.end.outcome == "ok"


@faked
async def test_a_call_is_cancelled_with_a_reason() -> None:
    """X1: and one that is over cannot be."""
    async with Gateway(count) as gateway:
        call = gateway.submit("count", {"n": 100})
        await asyncio.sleep(2.5)
        gateway.cancel(call, "enough")
        done = await gateway.result(call)
        assert done.end and done.end.failure and done.end.failure.message == "cancelled: enough"
        with pytest.raises(UnknownName):
            gateway.cancel(call)


@faked
async def test_unknown_tools_and_calls_are_told() -> None:
    """E5: with the nearest names."""
    async with Gateway(count) as gateway:
        with pytest.raises(UnknownName, match="nearest: count"):
            gateway.submit("cuont")
        with pytest.raises(UnknownName, match="unknown call"):
            await gateway.result("nothing")


@faked
async def test_the_settings_are_in_force() -> None:
    """C1, C3: the limits of the gateway, of a tool, and the maximum."""
    script = scripted(("sleep", 1000))
    plain = Settings(store=MEMORY, idle_s=7.0)
    for settings, at in (
        (plain, 7.0),
        (replace(plain, tools={"script": ToolSettings(idle_s=9.0)}), 9.0),
        (replace(plain, max_idle_s=2.0), 2.0),
    ):
        async with Gateway(script, settings=settings) as gateway:
            done = await gateway.call("script")
        assert done.end and round(done.end.at - done.opened.at, 3) == at


@faked
async def test_a_call_may_lower_its_limits() -> None:
    """C3: per call."""
    async with Gateway(scripted(("sleep", 1000))) as gateway:
        done = await gateway.call("script", idle_s=2.5)
    assert done.end and round(done.end.at - done.opened.at, 3) == 2.5


@faked
async def test_files_are_loaded_and_loaded_again(tmp_path: Path) -> None:
    """Deliver 8: reload; the new tools are there, the old are gone."""
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    async with Gateway(file) as gateway:
        assert b"hello you" in bytes(_content(await gateway.call("hello", {"name": "you"})))
        file.write_text(TOOLS.replace("hello", "goodbye"))
        gateway.reload()
        assert [tool.name for tool in gateway.tools()] == ["goodbye"]


def _content(call: Any) -> Any:
    assert call.end and call.end.result
    return call.end.result.content


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        ((), "nothing to serve"),
        (("no.such.module",), "cannot load no.such.module"),
        (("json",), "no tools in json"),
        (("missing.py",), "missing.py"),
    ],
)
def test_a_target_that_brings_no_tools_is_told(
    targets: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad input: before anything is served; a browser of whoever runs this would be something to serve."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    with pytest.raises(CallerError, match=told):
        run(Gateway(*targets).__aenter__())


@faked
async def test_a_store_is_kept_and_has_one_gateway(tmp_path: Path) -> None:
    """H1, design 5: the history outlives the gateway; a second one is refused."""
    settings = Settings(store=str(tmp_path / "calls.db"))
    async with Gateway(count, settings=settings) as gateway:
        call = gateway.submit("count", {"n": 2})
        await gateway.result(call)
        with pytest.raises((CallerError, StoreError)):
            async with Gateway(count, settings=settings):
                pass
    async with Gateway(count, settings=settings) as gateway:
        again = await gateway.result(call)
    assert again.end and again.end.outcome == "ok"


@faked
async def test_a_closed_gateway_takes_no_calls() -> None:
    """X1: it says why."""
    async with Gateway(count) as gateway:
        pass
    with pytest.raises(Refused, match="shutting down"):
        gateway.submit("count", {"n": 1})


@faked
async def test_a_result_can_be_had_while_the_history_is_away() -> None:
    """H1: calls go on; the caller gets its answer from memory."""
    async with Gateway(count) as gateway:
        await gateway.engine.journal.close()
        call = await gateway.call("count", {"n": 1})
        assert call.end and call.end.outcome == "ok"


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_result_is_given_out_only_once_it_is_recorded(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """H1: nothing acknowledged is lost when the process is killed."""
    journal = Journalist()
    journal.delay_s = 1.5
    monkeypatch.setattr("afoot.gateway.MemoryJournal", lambda: journal)

    async def main() -> None:
        async with Gateway(count) as gateway:
            call = await gateway.call("count", {"n": n})
            assert "Finished" in await kinds(journal, call.id)

    run(main())


def test_a_closed_gateway_leaves_no_thread_behind() -> None:
    """G4: a tool's own loop ends with its gateway."""

    @afoot.tool(own_loop=True)
    async def apart() -> str:
        """Does nothing, on a loop of its own."""
        return "done"

    before = set(threading.enumerate())
    assert try_tool(apart).outcome == "ok"
    for thread in set(threading.enumerate()) - before:
        thread.join(0.2)
        assert not thread.is_alive(), thread.name


@faked
async def test_tools_come_and_go_while_a_gateway_runs() -> None:
    """F5, U5: listeners are told; calls of a removed tool finish, also one that waits in its queue."""
    heard: list[list[str]] = []
    async with Gateway(count) as gateway:
        gateway.engine.catalog.listen(lambda: heard.append(sorted(tool.name for tool in gateway.tools())))
        gateway.add_tool(scripted(("sleep", 5), ("return", "done"), name="wait", concurrency=1))
        running, waiting = gateway.submit("wait"), gateway.submit("wait")
        await asyncio.sleep(1)
        gateway.remove_tool("wait")
        with pytest.raises(UnknownName, match="unknown tool"):
            gateway.submit("wait")
        ends = [(await gateway.result(call)).end for call in (running, waiting)]
        gateway.remove_tool("count")
    assert [end and end.outcome for end in ends] == ["ok", "ok"]
    assert heard == [["count", "wait"], ["count"], []]


@faked
async def test_a_tool_that_is_there_is_not_added_again() -> None:
    """F5: and none of the functions beside it."""
    async with Gateway(count) as gateway:
        other = scripted(("return", 1), name="other")
        for functions in ((other, count), (other, scripted(("return", 2), name="other"))):
            with pytest.raises(CallerError, match="there is a tool of that name already; remove it first"):
                gateway.add_tool(*functions)
        with pytest.raises(CallerError, match="is no tool name"):
            gateway.add_tool(lambda: None)
        with pytest.raises(UnknownName, match="nearest: count"):
            gateway.remove_tool("cuont")
        assert [tool.name for tool in gateway.tools()] == ["count"]
        gateway.add_tool(other)
        gateway.reload()
        assert [tool.name for tool in gateway.tools()] == ["count", "other"]


def test_a_call_waits_for_a_server_that_is_starting() -> None:
    """F5: a notebook calls at once; who submits without waiting is told."""
    server = MCPServer("shelf")

    @server.tool()
    def greet(name: str) -> str:
        """Greets."""
        return f"hello {name}"

    async def main() -> None:
        async with Gateway(server) as gateway:
            with pytest.raises(UnknownName):
                gateway.submit("greet", {"name": "Ann"})
            assert b"hello Ann" in bytes(_content(await gateway.call("greet", {"name": "Ann"})))

    asyncio.run(main())


def test_what_a_server_offers_besides_tools_can_be_had_from_python() -> None:
    """U5, E5: resources and prompts, and the nearest names of what there is not."""
    server = MCPServer("shelf")

    @server.resource("note://one")
    def one() -> str:
        return "the first note"

    @server.prompt("greet")
    def greet(name: str) -> str:
        return f"Greet {name}."

    asyncio.run(look_around(server))


async def look_around(server: MCPServer) -> None:
    async with Gateway(server) as gateway:
        await gateway.servers.wait_until_opened(20)
        read = await gateway.read_resource("note://one")
        assert read["contents"][0]["text"] == "the first note"
        prompt = await gateway.get_prompt("greet", {"name": "Ann"})
        assert prompt["messages"][0]["content"]["text"] == "Greet Ann."
        with pytest.raises(CallerError, match="nearest: greet"):
            await gateway.get_prompt("great")
        with pytest.raises(CallerError, match="two"):
            await gateway.read_resource("note://two")


@faked
async def test_tools_that_reported_before_are_expected_to(tmp_path: Path) -> None:
    """C1: an upstream's tool is known to report from the history."""
    settings = Settings(store=str(tmp_path / "calls.db"))
    tool = scripted(("report", 1, 2), name="step")
    async with Gateway(tool, settings=settings) as gateway:
        await gateway.call("step")
    async with Gateway(tool, settings=settings) as gateway:
        assert gateway.engine.reporters == {"local/step"}


@faked
async def test_own_resources_and_prompts_are_read_from_python() -> None:
    """F3: as calls of the engine; an error says what is wrong."""

    @afoot.resource("note://{number}")
    async def note(number: int) -> dict[str, int]:
        return {"number": number}

    @afoot.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    async with Gateway(note, greet) as gateway:
        assert gateway.tools() == []
        read = await gateway.read_resource("note://7")
        assert read["contents"] == [
            {"uri": "note://7", "mimeType": "application/json", "text": '{"number":7}'}
        ]
        prompt = await gateway.get_prompt("greet", {"name": "Ann"})
        assert prompt["messages"][0]["content"]["text"] == "Greet Ann."
        with pytest.raises(CallerError, match="uri: number: Input should be a valid integer"):
            await gateway.read_resource("note://x")
        with pytest.raises(CallerError, match="nearest: greet"):
            await gateway.get_prompt("great")


@faked
async def test_a_changed_file_changes_the_lists_and_one_bad_resource_spoils_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F3: on reload; the mistake is in the log once, and the rest is served."""
    file = tmp_path / "served.py"
    head = "import afoot\n\n@afoot.resource('a://1')\ndef one() -> str:\n    return 'one'\n"
    file.write_text(head)
    changed: list[tuple[str, str | None]] = []
    async with Gateway(file) as gateway:
        gateway.function_offers.listen(lambda kind, uri: changed.append((kind, uri)))
        file.write_text(head + "\n@afoot.resource('a://1')\ndef two() -> str:\n    return 'two'\n")
        gateway.reload()
        gateway.reload()
        assert caplog.text.count("two resources are a://1") == 1 and changed == []
        assert (await gateway.read_resource("a://1"))["contents"][0]["text"] == "one"
        file.write_text(head + "\n@afoot.prompt\ndef p() -> str:\n    return ''\n")
        gateway.reload()
        gateway.resource_changed("a://1")
        assert (
            changed == [("prompts", None), ("resource", "a://1")] and gateway.function_offers.problems == []
        )


@faked
async def test_resources_come_and_go_while_a_gateway_runs() -> None:
    """F3, F5: as tools do; those who listen are told which list has changed."""

    @afoot.resource("late://one")
    def late() -> str:
        return "late"

    changed: list[str] = []
    async with Gateway(scripted(("return", 1), name="step")) as gateway:
        gateway.function_offers.listen(lambda kind, uri: changed.append(kind))
        gateway.add_tool(late)
        assert (await gateway.read_resource("late://one"))["contents"][0]["text"] == "late"
        assert [tool.name for tool in gateway.tools()] == ["step"]
        gateway.remove_tool("late")
        with pytest.raises(CallerError, match="unknown resource"):
            await gateway.read_resource("late://one")
    assert changed == ["resources", "resources"]
