"""Files that are followed: settings taken up while a gateway runs, and what stays as it was."""

import asyncio
import logging
from pathlib import Path

import pytest

from afoot import Context
from afoot.config.settings import Settings, load_settings
from afoot.errors import BadTool
from afoot.gateway import MEMORY, Gateway
from afoot.gateway.reload import ConfigSource, reload_config
from afoot.serve.gateway_state import GatewayState


def add(a: int, b: int, ctx: Context | None = None) -> int:
    """Add."""
    return a + b


async def changed(file: Path, text: str) -> tuple[Gateway, GatewayState]:
    """A gateway whose config was changed to this."""
    source = ConfigSource(file, {"store": MEMORY})
    async with Gateway(add, settings=load_settings(file, source.flags).settings) as gateway:
        site = GatewayState(gateway.engine, gateway.settings, "1")
        await asyncio.to_thread(file.write_text, text)
        reload_config(gateway, site, source)
        return gateway, site


def test_limits_and_approval_take_effect_for_new_calls(tmp_path: Path) -> None:
    """C3: without a new start."""
    file = tmp_path / "afoot.toml"
    file.write_text("idle_s = 5\n")
    gateway, site = asyncio.run(changed(file, 'idle_s = 6\napproval = "ask"\nmax_ceiling_s = 7\n'))
    (tool,) = gateway.tools()
    assert (tool.limits.idle_s, tool.limits.ceiling_s, tool.approval) == (6, 7, "ask")
    assert site.settings.idle_s == 6 and site.problems == []


def test_what_needs_a_new_start_is_said_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """U2: the address and the secret of a running gateway do not change under it."""
    file = tmp_path / "afoot.toml"
    file.write_text("")
    with caplog.at_level(logging.WARNING):
        gateway, site = asyncio.run(changed(file, 'http = "127.0.0.1:1"\nmcp_token = "x"\nidle_s = 6\n'))
    assert (gateway.settings.http, gateway.settings.mcp_token) == (Settings().http, "")
    assert gateway.settings.idle_s == 6
    assert [problem.split()[0] for problem in site.problems] == ["http", "mcp_token"]
    assert "http takes effect when the gateway is started again" in caplog.text


def test_an_error_keeps_the_old_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """U2: the log and /healthz name line and key."""
    file = tmp_path / "afoot.toml"
    file.write_text("idle_s = 5\n")
    gateway, site = asyncio.run(changed(file, "\nidel_s = 6\n"))
    assert gateway.settings.idle_s == 5
    assert "afoot.toml, line 2" in site.problems[0] and "'idel_s'" in site.problems[0]
    assert "kept the old settings" in caplog.text


def test_settings_that_are_read_again_as_they_were_change_nothing(tmp_path: Path) -> None:
    """U5: a host rewrites its own file all day; nobody's list changes by that, and nothing piles up."""
    file = tmp_path / "afoot.toml"
    file.write_text("idle_s = 5\n")

    async def told() -> tuple[int, bool]:
        source = ConfigSource(file, {"store": MEMORY})
        async with Gateway(add, settings=load_settings(file, source.flags).settings) as gateway:
            site = GatewayState(gateway.engine, gateway.settings, "1")
            heard: list[int] = []
            gateway.engine.catalog.listen(lambda: heard.append(1))
            before = [provider for provider, _ in gateway.engine.catalog.known.values()]
            for _ in range(5):
                reload_config(gateway, site, source)
            after = [provider for provider, _ in gateway.engine.catalog.known.values()]
            return len(heard), before == after

    assert asyncio.run(told()) == (0, True)


def test_a_failure_of_our_own_keeps_the_old_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """U2: the file is still followed afterwards."""
    file = tmp_path / "afoot.toml"
    file.write_text("idle_s = 5\n")

    def broken(*_: object) -> list[str]:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(Gateway, "adopt", broken)
    gateway, site = asyncio.run(changed(file, "idle_s = 6\n"))
    assert gateway.settings.idle_s == 5
    assert "a mistake of ours" in caplog.text and site.problems != []


def test_the_restart_limit_of_servers_follows_the_settings(tmp_path: Path) -> None:
    """U4: for connections to come."""
    file = tmp_path / "afoot.toml"
    file.write_text('[servers.one]\ncommand = "x"\n')
    gateway, _ = asyncio.run(changed(file, 'restart_limit = 7\n[servers.one]\ncommand = "x"\n'))
    assert gateway.servers.restart_limit == 7


def test_what_needs_a_new_start_stays_as_it_was_and_is_named(tmp_path: Path) -> None:
    """C3: and the rest of the same table counts."""
    file = tmp_path / "afoot.toml"
    file.write_text("linger_s = 60\n")
    text = "linger_s = 61\nidle_s = 6\n[access]\nrequired = true\n[isolation]\nspare = 0\nwarm = 3\n"
    gateway, site = asyncio.run(changed(file, text))
    now = gateway.settings
    assert (now.linger_s, now.access.required, now.isolation.spare) == (60, False, 1)
    assert (now.idle_s, now.isolation.warm) == (6, 3)
    assert [problem.split()[0] for problem in site.problems] == ["access", "linger_s", "isolation.spare"]


def test_settings_are_taken_after_a_file_of_tools_was_not(tmp_path: Path) -> None:
    """C8: the tools are those from before, on the limits of now."""
    file = tmp_path / "tools.py"
    one = "import afoot\n@afoot.tool\ndef add() -> None:\n    'Add.'\n"
    file.write_text(one)

    async def go() -> None:
        async with Gateway(file, settings=Settings(store=MEMORY)) as gateway:
            file.write_text(one + one.replace("def add", "def more").replace("tool", "tool(name='add')"))
            with pytest.raises(BadTool, match="two tools are named add"):
                gateway.reload()
            gateway.adopt(Settings(store=MEMORY, idle_s=7))
            assert [(tool.name, tool.limits.idle_s) for tool in gateway.tools()] == [("add", 7.0)]

    asyncio.run(go())
