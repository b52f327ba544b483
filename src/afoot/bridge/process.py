"""`run_bridge` is the process of `afoot connect`: it relays between stdin, stdout and the gateway.

Hosts wait for its first answer, so nothing is imported here that a bridge does not need.
"""

import asyncio
import os
import signal
from pathlib import Path

from afoot.bridge.discovery import GatewayFinder
from afoot.bridge.relay import Relay
from afoot.bridge.stdio import open_stdio
from afoot.config.settings import ConfigError, Settings, load_settings


def run_bridge(config: Path | None, at: str, version: str) -> None:
    """Carry messages until the client closes its end; raises CallerError if there is no gateway.

    `config`: for a gateway that must be started. `at`: the URL of a gateway; empty: the one on this machine.
    `version`: of this program.
    """
    name = f"connect-{os.urandom(16).hex()}"
    asyncio.run(_bridge(GatewayFinder(name, at or os.environ.get("AFOOT_URL", ""), config, version)))


async def _bridge(finder: GatewayFinder) -> None:
    limit = _max_line_bytes(finder.config)
    wire = await open_stdio(limit)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await Relay(finder, wire, limit).run(stop)
    finally:
        wire[1].close()  # a thread that copies it to a file ends only then
        await asyncio.sleep(0)


def _max_line_bytes(config: Path | None) -> int:
    """The longest input line. An invalid config is reported later, if a gateway must be started."""
    try:
        return load_settings(config, upward=False).settings.max_body_bytes
    except ConfigError:
        return Settings().max_body_bytes
