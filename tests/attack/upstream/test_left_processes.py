"""A server that starts processes which should outlive it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from afoot.config.tables import Server
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import until

SCRIPT = Path(__file__).with_name("leaving_server.py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are followed through /proc")


def is_alive(folder: Path) -> bool:
    """Whether the process that was left still runs."""
    try:
        state = Path(f"/proc/{(folder / 'left').read_text()}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def upstream(folder: Path, how: str) -> Upstream:
    """The server, not yet open."""
    server = Server(command=sys.executable, args=[str(SCRIPT), str(folder), how], era="2025-11-25")
    return Upstream("leaving", server, options=ServerOptions(restart_limit=0))


@pytest.mark.parametrize("how", ["child", "daemon", "bare"])
async def test_what_a_server_started_ends_with_it(tmp_path: Path, how: str) -> None:
    """U4: also in a session of its own, without its parent, or with an empty environment."""
    server = upstream(tmp_path, how)
    await server.open()
    assert is_alive(tmp_path)
    await server.close()
    await until(lambda: not is_alive(tmp_path))  # it was killed, and the system may take a moment for it


@pytest.mark.parametrize("how", ["child", "daemon"])
async def test_what_a_server_started_ends_when_it_is_killed(tmp_path: Path, how: str) -> None:
    """U4: its processes have no parent any more, and are known by the mark in their environment."""
    server = upstream(tmp_path, how)
    await server.open()
    assert server.pid is not None and is_alive(tmp_path)
    os.kill(server.pid, signal.SIGKILL)
    await until(lambda: not is_alive(tmp_path))
    await server.close()


async def test_other_processes_stay(tmp_path: Path) -> None:
    """U4: those of another server of this gateway, and of everybody else."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = upstream(tmp_path / "one", "daemon"), upstream(tmp_path / "two", "daemon")
    await asyncio.gather(one.open(), two.open())
    await one.close()
    assert not is_alive(tmp_path / "one") and is_alive(tmp_path / "two")
    await two.close()
