"""The servers behind a gateway: opened lazily, replaced and removed while calls go on, and found by name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Raw

from afoot.config.tables import Server
from afoot.core.facts import Limits
from afoot.engine.catalog import Catalog
from afoot.errors import CallerError, ToolError, UnknownName
from afoot.providers.upstream.configured_servers import KnownServers, Roster, ServerEntry
from afoot.providers.upstream.managed_server import ManagedServer
from afoot.providers.upstream.servers import AT_RUN_TIME, Servers
from tests.providers.fake_run import ScriptedRun
from tests.providers.upstream.fake_connection import Pretend

SOON_S = 5.0


class House:
    """Servers on lines that a test has in hand."""

    def __init__(self, folder: Path | None = None) -> None:
        self.lines: list[Pretend] = []
        self.catalog = Catalog()
        self.servers = Servers(self.catalog, Limits(start_s=0.2), KnownServers(folder), self._make)

    def _make(self, listed: ManagedServer, wanted: ServerEntry, limits: Limits) -> Pretend:
        self.lines.append(Pretend(listed.name, wanted.server, limits))
        return self.lines[-1]

    def want(self, **servers: Server) -> None:
        """Have these servers."""
        self.servers.follow(Roster({name: ServerEntry(one, "a file") for name, one in servers.items()}))

    def names(self) -> list[str]:
        """The tools on offer."""
        return [tool.name for tool in self.catalog]

    def work(self, tool: str) -> "asyncio.Task[str]":
        """Begin a call as the engine would."""
        provider, found = self.catalog.get(tool)
        work = provider.prepare(found.inner or found.name, Raw(b"{}"))

        async def run() -> str:
            return bytes((await work(ScriptedRun())).content).decode()

        return asyncio.create_task(run())


@asynccontextmanager
async def house(folder: Path | None = None) -> AsyncIterator[House]:
    """A house that is closed with the block."""
    made = House(folder)
    async with made.servers:
        yield made


def spoil(folder: Path) -> None:
    """Write nonsense over what is kept."""
    for file in folder.iterdir():
        file.write_bytes(b"\xff{")


async def soon(line: Pretend) -> None:
    """Wait until a line is closed."""
    await asyncio.wait_for(line.gone.wait(), SOON_S)


async def test_a_server_that_is_not_known_is_opened_in_the_background() -> None:
    """U1: its tools come when it is up; a server that does not start hurts no other."""
    async with house() as made:
        made.want(good=Server(command="x", args=["a", "b"]), bad=Server(command="broken"))
        assert made.names() == []
        await made.servers.wait_until_opened(SOON_S)
        assert sorted(made.names()) == ["a", "b"]
        assert (made.servers.get("bad").state, made.servers.get("bad").error) == ("failed", "it is broken")
    assert all(line.closed == 1 for line in made.lines)


async def test_a_known_server_is_opened_only_when_it_is_used(tmp_path: Path) -> None:
    """U1: what it offered is kept in the state folder, for its owner's eyes."""
    async with house(tmp_path / "servers") as made:
        made.want(good=Server(command="x", args=["a"]))
        await made.servers.wait_until_opened(SOON_S)
    (file,) = (tmp_path / "servers").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    async with house(tmp_path / "servers") as again:
        again.want(good=Server(command="x", args=["a"], approval="ask"))
        await again.servers.wait_until_opened(SOON_S)
        assert again.names() == ["a"] and again.lines[0].opened == 0
    async with house(tmp_path / "servers") as other:
        other.want(good=Server(command="y", args=["a"]))
        assert other.names() == []
        await other.servers.wait_until_opened(SOON_S)
        assert other.lines[0].opened == 1
        other.want()
    assert list((tmp_path / "servers").iterdir()) == []


async def test_what_is_kept_follows_what_a_server_offers(tmp_path: Path) -> None:
    """U5: a changed list is offered at once, and is there after the next start."""
    async with house(tmp_path) as made:
        made.want(good=Server(command="x"))
        await made.servers.wait_until_opened(SOON_S)
        made.lines[0].names = ["later"]
        made.lines[0].heard("tools")
        assert made.names() == ["later"]
    async with house(tmp_path) as again:
        again.want(good=Server(command="x"))
        assert again.names() == ["later"]


async def test_a_broken_note_is_no_note(tmp_path: Path) -> None:
    """U1: nothing depends on what was kept."""
    async with house(tmp_path) as made:
        made.want(good=Server(command="x"))
        await made.servers.wait_until_opened(SOON_S)
    spoil(tmp_path)
    async with house(tmp_path) as again:
        again.want(good=Server(command="x"))
        await again.servers.wait_until_opened(SOON_S)
        assert again.names() == ["one"]


async def test_calls_in_flight_finish_on_the_old_connection() -> None:
    """U1: reloaded, changed or removed; the old connection is closed after its last call."""
    async with house() as made:
        made.want(good=Server(command="old", args=["waits", "quick"]))
        await made.servers.wait_until_opened(SOON_S)
        calls = [made.work("waits"), made.work("waits")]
        await asyncio.sleep(0)
        made.want(good=Server(command="new", args=["waits", "quick"]))
        await made.servers.wait_until_opened(SOON_S)
        assert "on new" in await made.work("quick")
        old = made.lines[0]
        assert not old.closed
        old.gate.set()
        assert all("on old" in told for told in await asyncio.gather(*calls))
        await soon(old)
        last = made.work("waits")
        await asyncio.sleep(0)
        await made.servers.remove("good")
        assert made.names() == []
        made.lines[1].gate.set()
        assert "on new" in await last
        await soon(made.lines[1])


async def test_a_call_that_still_waits_runs_on_the_new_connection() -> None:
    """U1: it is not lost with the old one; on a server that is gone it fails as unavailable."""
    async with house() as made:
        made.want(good=Server(command="old"))
        await made.servers.wait_until_opened(SOON_S)
        provider, _ = made.catalog.get("one")
        works = [provider.prepare("one", Raw(b"{}")) for _ in range(2)]
        await made.servers.reload("good")
        assert made.lines[1].opened == 1
        await soon(made.lines[0])
        assert b"on old" in bytes((await works[0](ScriptedRun())).content)
        await made.servers.remove("good")
        with pytest.raises(ToolError, match="server good was removed"):
            await works[1](ScriptedRun())


async def test_other_terms_need_no_other_connection() -> None:
    """C3: limits and approval of a server are in force for new calls, and nothing is restarted."""
    async with house() as made:
        made.want(good=Server(command="x"))
        await made.servers.wait_until_opened(SOON_S)
        assert made.catalog.get("one")[1].approval == "auto"
        made.want(good=Server(command="x", approval="ask", ceiling_s=7.0))
        tool = made.catalog.get("one")[1]
        assert (tool.approval, tool.limits.ceiling_s, len(made.lines)) == ("ask", 7.0, 1)
        made.servers.limits = Limits(ceiling_s=3.0, idle_s=2.0)
        made.want(good=Server(command="x", ceiling_s=7.0))
        limits = made.catalog.get("one")[1].limits
        assert (limits.ceiling_s, limits.idle_s, len(made.lines)) == (7.0, 2.0, 1)
        made.want(good=Server(command="x", era="2025-11-25"))
        assert len(made.lines) == 2


async def test_a_server_can_be_added_and_removed_while_it_runs() -> None:
    """U1: it stays when the config file is read again, and its name is its own."""
    async with house() as made:
        made.want(filed=Server(command="x", args=["f"]))
        listed = await made.servers.add("mine", Server(command="x", args=["m"]))
        assert (listed.state, listed.entry.origin) == ("ready", AT_RUN_TIME)
        await made.servers.wait_until_opened(SOON_S)
        assert sorted(made.names()) == ["f", "m"]
        for name in ("mine", "filed", "local", " ", "a\nb"):
            with pytest.raises(CallerError):
                await made.servers.add(name, Server(command="x"))
        with pytest.raises(CallerError, match="needs one of command, url, module"):
            await made.servers.add("none", Server())
        made.want()
        assert [one.name for one in made.servers.list()] == ["mine"]
        await made.servers.remove("mine")
        assert made.servers.list() == [] and made.names() == []


async def test_an_unknown_server_lists_the_nearest() -> None:
    """E5: shown, reloaded or removed."""
    async with house() as made:
        made.want(files=Server(command="x"), mail=Server(command="x"))
        with pytest.raises(UnknownName, match="unknown server 'file'; nearest: files"):
            made.servers.get("file")
        with pytest.raises(UnknownName):
            await made.servers.reload("mial")
        with pytest.raises(UnknownName):
            await made.servers.remove("mial")


async def test_a_server_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """U2: disabled, unusable, a variable that is not set; that server alone."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path))
    monkeypatch.setenv("B_SET", "here")
    async with house() as made:
        made.want(
            off=Server(command="x", disabled=True),
            lacks=Server(command="x", env={"A": "${B_UNSET_HERE}"}),
            has=Server(command="${B_SET}", args=["${B_UNSET:-word}"]),
        )
        await made.servers.wait_until_opened(SOON_S)
        told = {one.name: (one.state, one.error) for one in made.servers.list()}
        assert told["off"] == ("disabled", "")
        assert told["lacks"] == ("unusable", "B_UNSET_HERE is not set, and its settings use it")
        assert made.names() == ["word"] and made.lines[0].server.command == "here"
        with pytest.raises(ToolError, match="server lacks is unusable: B_UNSET_HERE"):
            await made.servers.get("lacks").request("x", {})
        assert (await made.servers.reload("off")).state == "disabled"


async def test_a_server_that_hangs_on_start_is_told_and_given_up() -> None:
    """C1: its start has a limit of its own."""
    async with house() as made:
        made.want(stuck=Server(command="stuck", start_s=0.01))
        await made.servers.wait_until_opened(SOON_S)
        assert "did not start within 0.01 s (start_s)" in made.servers.get("stuck").error


async def test_listeners_and_subscriptions_outlive_a_connection() -> None:
    """U5: whoever listens to a server hears the new connection, too."""
    async with house() as made:
        made.want(good=Server(command="x"))
        await made.servers.wait_until_opened(SOON_S)
        listed, heard = made.servers.get("good"), list[tuple[str, str | None]]()
        forget = listed.listen(lambda kind, uri: heard.append((kind, uri)))
        await listed.subscribe("file:///a")
        await listed.subscribe("file:///b")
        await listed.unsubscribe("file:///b")
        await made.servers.reload("good")
        assert made.lines[1].asked == [("subscribe", "file:///a")]
        assert {kind for kind, _ in heard} == {"tools", "resources", "prompts"}
        made.lines[0].heard("resource", "file:///old")
        made.lines[1].heard("resource", "file:///a")
        assert heard[-1] == ("resource", "file:///a") and ("resource", "file:///old") not in heard
        forget()
        made.lines[1].heard("prompts")
        assert heard[-1] == ("resource", "file:///a")
        assert await listed.request("resources/read", {}) == {"by": "x"}
