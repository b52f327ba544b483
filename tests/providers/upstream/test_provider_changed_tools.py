"""Servers that come up with other tools than they had: a call is judged by what will really run."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from afoot.config.tables import Server
from afoot.core.facts import Limits, Redefined, Started
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import RunnerDied
from afoot.providers.upstream import reconnect
from afoot.providers.upstream.configured_servers import KnownServers, Roster, ServerEntry
from afoot.providers.upstream.servers import Servers
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import asked, says, told
from tests.engine.fake_engine import facts, over
from tests.providers.fake_run import ScriptedRun, until
from tests.providers.upstream.started_servers import opened

SERVER = Path(__file__).with_name("changing_server.py")
PLAIN: dict[str, Any] = {}
READ_ONLY = {"readOnlyHint": True}
DESTRUCTIVE = {"destructiveHint": True}
WIPE = Submission("wipe", Raw(b"{}"), "session:1", can_ask=True)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between starts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.02))


def listed(title: str, hints: dict[str, Any]) -> str:
    """A list of one tool, which says what it is."""
    schema = {"type": "object"}
    return json.encode(
        [{"name": "wipe", "title": title, "inputSchema": schema, "annotations": hints}]
    ).decode()


def write(folder: Path, title: str, hints: dict[str, Any]) -> None:
    """The server has this tool from its next listing on."""
    (folder / "tools.json").write_text(listed(title, hints))


def ran(folder: Path) -> list[str]:
    """What has run, in its order."""
    return (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []


@asynccontextmanager
async def gateway(folder: Path, **settings: Any) -> AsyncIterator[Engine]:
    """An engine with the server of this folder, whose lists are kept there."""
    catalog = Catalog()
    server = Server(command=sys.executable, args=[str(SERVER), str(folder)], era="2025-11-25", **settings)
    async with (
        Servers(catalog, Limits(), KnownServers(folder / "known")) as servers,
        Engine(MemoryJournal(), catalog) as engine,
    ):
        engine.policy.seen = engine.clock.now()
        servers.follow(Roster({"files": ServerEntry(server, "a file")}))
        await servers.wait_until_opened(10.0)
        yield engine


async def known_as(folder: Path, title: str, hints: dict[str, Any]) -> None:
    """A gateway has seen the server with this tool, and is gone."""
    write(folder, title, hints)
    async with gateway(folder) as engine:
        assert [tool.name for tool in engine.catalog] == ["wipe"]


async def run_to_end(engine: Engine, live: LiveCall) -> LiveCall:
    return await asyncio.wait_for(over(engine, live), 20)


async def test_a_tool_that_became_destructive_while_the_gateway_was_away_is_asked_about(
    tmp_path: Path,
) -> None:
    """A7: its server is started by the call, which was judged by what the gateway remembers."""
    await known_as(tmp_path, "harmless", PLAIN)
    write(tmp_path, "destructive", DESTRUCTIVE)
    async with gateway(tmp_path) as engine:
        live = engine.submit(WIPE)
        name = await asyncio.wait_for(asked(live), 10)
        assert ran(tmp_path) == [] and live.call.started is None
        engine.answer(name, says("run"))
        assert told(await run_to_end(engine, live))[0] == "ok"
    assert ran(tmp_path) == ["destructive"]


async def test_a_tool_that_was_allowed_and_has_changed_is_asked_about(tmp_path: Path) -> None:
    """A4, A7: the server died between two calls, and was replaced meanwhile."""
    write(tmp_path, "before", DESTRUCTIVE)
    async with gateway(tmp_path) as engine:
        live = engine.submit(WIPE)
        engine.answer(await asyncio.wait_for(asked(live), 10), says("always", "operator", for_="ever"))
        assert told(await run_to_end(engine, live))[0] == "ok"
        write(tmp_path, "after", DESTRUCTIVE)
        await kill(engine)
        live = engine.submit(WIPE)
        assert live.call.opened.approval == "allowlist"
        engine.answer(await asyncio.wait_for(asked(live), 10), says("skip"))
        assert told(await run_to_end(engine, live))[0] == "refused"
    assert ran(tmp_path) == ["before"]


async def kill(engine: Engine) -> None:
    """End the server's process."""
    provider: Any = engine.catalog.get("wipe")[0]
    os.kill(provider.connection.pid, signal.SIGKILL)
    await until(lambda: provider.connection.pid is None)


@pytest.mark.parametrize("per_caller", [False, True])
async def test_the_second_attempt_as_a_destructive_tool_is_asked_about(
    tmp_path: Path, per_caller: bool
) -> None:
    """A7, U4: a trusted server dies under a read-only call, and comes back with another tool."""
    write(tmp_path, "reads", READ_ONLY)
    async with gateway(tmp_path, trust_annotations=True, per_caller=per_caller) as engine:
        (tmp_path / "dies").write_text(listed("wipes", DESTRUCTIVE))
        live = engine.submit(WIPE)
        name = await asyncio.wait_for(asked(live), 10)
        assert ran(tmp_path) == ["reads"] and live.call.attempt == 1
        engine.answer(name, says("run"))
        assert told(await run_to_end(engine, live))[0] == "ok"
    assert ran(tmp_path) == ["reads", "wipes"]
    assert [type(one) for one in (*facts(live, Redefined), *facts(live, Started))] == [
        Redefined, Started, Started,
    ]  # fmt: skip


async def test_the_second_attempt_as_a_tool_that_is_not_read_only_any_more_is_not_made(
    tmp_path: Path,
) -> None:
    """A7, U4: nobody has to be asked about it, and it is not safe to repeat."""
    write(tmp_path, "reads", READ_ONLY)
    async with gateway(tmp_path, trust_annotations=True) as engine:
        (tmp_path / "dies").write_text(listed("writes", PLAIN))
        live = await run_to_end(engine, engine.submit(WIPE))
    assert told(live)[0] == "lost" and "its tool has changed since" in told(live)[1]
    assert ran(tmp_path) == ["reads"]


async def test_each_caller_is_asked_about_the_tool_that_its_own_connection_has(tmp_path: Path) -> None:
    """A7, U1: an older process of the server still serves one caller, a newer one the other."""
    write(tmp_path, "newer", DESTRUCTIVE)
    async with gateway(tmp_path, per_caller=True) as engine:
        live = engine.submit(WIPE)
        engine.answer(await asyncio.wait_for(asked(live), 10), says("run"))
        assert told(await run_to_end(engine, live))[0] == "ok"
        write(tmp_path, "older", PLAIN)
        other = engine.submit(replace(WIPE, caller="session:2"))
        engine.answer(await asyncio.wait_for(asked(other), 10), says("run"))
        assert told(await run_to_end(engine, other))[0] == "ok"
        write(tmp_path, "newer", DESTRUCTIVE)  # as the first process has had it all the time
        live = engine.submit(WIPE)
        assert live.call.opened.approval == "auto", "by what the other connection has"
        engine.answer(await asyncio.wait_for(asked(live), 10), says("skip"))
        assert told(await run_to_end(engine, live))[0] == "refused"
    assert ran(tmp_path) == ["newer", "older"]


async def test_a_call_of_a_tool_that_is_gone_does_not_start(tmp_path: Path) -> None:
    """A7, E5: what was remembered is not there any more once the server is up."""
    await known_as(tmp_path, "before", PLAIN)
    (tmp_path / "tools.json").write_text("[]")
    async with gateway(tmp_path) as engine:
        live = await run_to_end(engine, engine.submit(WIPE))
    assert live.call.end and live.call.end.failure and not facts(live, Started)
    assert live.call.end.failure.category == "not_found" and "no tool wipe any more" in told(live)[1]


async def test_work_that_was_prepared_for_another_definition_is_never_sent(tmp_path: Path) -> None:
    """A7: also where the server was replaced after the call was judged; nothing had begun."""
    write(tmp_path, "before", PLAIN)
    server = Server(command=sys.executable, args=[str(SERVER), str(tmp_path)], era="2025-11-25")
    async with opened(server) as upstream:
        work = upstream.prepare("wipe", Raw(b"{}"))
        write(tmp_path, "after", PLAIN)
        await upstream.open()  # its tools are read again
        with pytest.raises(RunnerDied, match="has changed its tool wipe") as caught:
            await work(ScriptedRun())
        assert not caught.value.began and ran(tmp_path) == []
