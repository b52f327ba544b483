"""Servers for the tests of upstreams: where they are, and how one is started and stopped."""

import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw, json

from afoot.config.settings import Server
from afoot.core.facts import Limits, Result
from afoot.providers.upstream.provider import ServerOptions, Upstream
from tests.providers.fake_run import ScriptedRun

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RAW = "tests.providers.upstream.raw_server"


def raw(speaks: str, *habits: str, **more: Any) -> Server:
    """The small server of our own, as a child."""
    return Server(command=sys.executable, args=["-m", RAW, speaks, *habits], cwd=str(ROOT), **more)


def sdk(**more: Any) -> Server:
    """The SDK's server, as a child."""
    return Server(command=sys.executable, args=[str(HERE / "sdk_server.py")], **more)


@contextmanager
def sdk_on_http() -> Iterator[str]:
    """The SDK's server on a port of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(HERE / "sdk_server.py"), str(port)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            assert child.poll() is None, "the server did not start"
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.terminate()
        child.wait()


@asynccontextmanager
async def opened(
    server: Server, limits: Limits | None = None, options: ServerOptions | None = None
) -> AsyncIterator[Upstream]:
    """An upstream that is up, and is closed in the end."""
    upstream = Upstream("raw", server, limits or Limits(), options or ServerOptions())
    try:
        await upstream.open()
        yield upstream
    finally:
        await upstream.close()


async def run_tool(upstream: Upstream, tool: str, run: ScriptedRun | None = None, **arguments: Any) -> Result:
    """Prepare and run."""
    return await upstream.prepare(tool, Raw(json.encode(arguments)))(run or ScriptedRun())
