"""`afoot connect`: the running gateway on stdin and stdout, for hosts that start a process."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from afoot.cli.ending import LOST, Stop


def connect(
    *,
    config: Annotated[
        Path | None, Parameter(help="the config file for a gateway that has to be started")
    ] = None,
    at: Annotated[str, Parameter(help="the gateway's URL; else the one that runs here")] = "",
) -> int:
    """Bridge stdin and stdout to the running gateway; starts one if none runs."""
    from afoot.errors import CallerError

    try:
        asyncio.run(_bridge(config, at or os.environ.get("AFOOT_URL", "")))
    except CallerError as error:
        raise Stop(LOST, str(error)) from None
    return 0


async def _bridge(config: Path | None, at: str) -> None:
    from afoot.bridge.finding import Finder
    from afoot.bridge.relay import Relay
    from afoot.pipes import pipes

    limit = _longest(config)
    wire = await pipes(limit)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await Relay(Finder(f"connect-{os.urandom(16).hex()}", at, config), wire, limit).run(stop)
    finally:
        wire[1].close()  # a thread that carries it to a file ends only then
        await asyncio.sleep(0)


def _longest(config: Path | None) -> int:
    """The longest line that is taken; a config with errors is told of when a gateway has to be started."""
    from afoot.config import ConfigError, Settings, load

    try:
        return load(config, upward=False).settings.max_body_bytes
    except ConfigError:
        return Settings().max_body_bytes
