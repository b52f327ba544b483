"""`afoot doctor`: whether everything is in place, one line a check, with what to do where it is not."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from afoot.cli.finding import Finding
    from afoot.config import Loaded

Json = Annotated[bool, Parameter(help="print one JSON object a line")]


def doctor(
    *,
    config: Annotated[Path | None, Parameter(help="the config file; else the nearest afoot.toml")] = None,
    json: Json = False,
) -> int:
    """Check that everything is in place; exits 1 if anything fails."""
    import msgspec

    from afoot.observe.terminal import escaped

    worst = 0
    for one in check_up(config):
        worst = max(worst, int(one.state == "fail"))
        print(escaped(msgspec.json.encode(one).decode()) if json else line(one), flush=True)
    return worst


def check_up(config: Path | None) -> Iterator["Finding"]:
    """Every check, as it is made."""
    from afoot.cli import checks

    yield checks.python()
    yield from checks.packages()
    found, loaded = checks.config(config)
    yield found
    yield checks.folder()
    yield checks.clock()
    if loaded is not None:
        yield checks.store(loaded.settings.store)
        yield checks.port(loaded.settings.http)
        yield from checks.targets(loaded)
    yield from asyncio.run(_real(loaded))
    yield from checks.hosts()
    yield from checks.browser()


async def _real(loaded: "Loaded | None") -> list["Finding"]:
    """What takes a while, all at once: a real call, and every server's handshake."""
    from afoot.cli.handshakes import handshakes
    from afoot.cli.probe import probe

    logging.disable(logging.CRITICAL)  # what servers say at their end is part of their line
    calls, servers = await asyncio.gather(probe(), handshakes(loaded))
    return [*calls, *servers]


def line(one: "Finding") -> str:
    """A finding for a person."""
    from afoot.observe.terminal import clean

    fix = f"; {one.fix}" if one.fix else ""
    return clean(f"{one.state:<5} {one.check}: {one.text}{fix}")  # servers' words may be in it
