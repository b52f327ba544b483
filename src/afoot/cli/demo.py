"""`afoot demo`: a gateway with example tools and calls that run already; it ends without a trace."""

import asyncio
import logging
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter

from afoot.cli.console import HOW_LONG, NO_BROWSER, show
from afoot.cli.ending import USAGE, Stop
from afoot.cli.serve import link, myself

if TYPE_CHECKING:
    from afoot.engine.engine import Engine
    from afoot.serve.site import Site
    from afoot.state import Address

TOOLS = "afoot.cli.demo_tools"
ROUNDS = 100  # of each of its own calls, so that a demo that nobody ended does not fill the disk
# What runs: the tool, its arguments, and how long after its end it is called once more.
PLAN: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("export_pages", {"pages": 120}, 3.0),
    ("resize_photos", {"photos": 200}, 3.0),
    ("book_trip", {"city": "Lisbon"}, 20.0),
    ("delete_backups", {"older_than_days": 30}, 20.0),
    ("sync_mail", {"folders": 12}, 15.0),
    ("nightly_report", {"shops": 3}, 5.0),
)


def demo(
    *,
    http: Annotated[str, Parameter(help="HOST:PORT to listen on; else the usual one if it is free")] = "",
    open: Annotated[bool, Parameter(help="open the web console in the browser")] = False,
    json: Annotated[bool, Parameter(help="print one line of JSON with address and token")] = False,
) -> int:
    """Start a gateway with six example tools and calls of them, to look around in."""
    from afoot import app, state
    from afoot.config import Settings

    if (other := state.demo()) is not None:
        raise Stop(USAGE, f"a demo runs already, at {other.console} (pid {other.pid}); end it, or look at it")
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    address = http or os.environ.get("AFOOT_HTTP") or _usual(Settings().http)
    settings = Settings(http=address, drain_s=0, cancel_grace_s=1, unanswerable="wait")
    with _away() as me, Path(os.devnull).open("w") as nowhere:
        stage = _Stage(me, sys.stdout, opens=open, json=json)
        # What tools print is in their calls' history; here it would write over what a person reads.
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            app.run(app.Plan(settings, (TOOLS,)), stage.begin)
    return 0


class _Stage:
    """What is to be seen: the calls that run, and the words for the person."""

    def __init__(self, me: str, out: TextIO, *, opens: bool, json: bool) -> None:
        """Who is told what: `me` is how this program is started."""
        self._me, self._out = me, out
        self._opens, self._json = opens, json
        self._acts: list[asyncio.Task[None]] = []

    def begin(self, address: "Address", site: "Site") -> None:
        """Start the calls, and tell where all of it is."""
        from msgspec import json
        from msgspec.structs import replace

        self._acts += [asyncio.create_task(_act(site.engine, *one)) for one in PLAN]
        address = replace(address, console=link(address, site))
        told = json.encode(address).decode() if self._json else welcome(address, self._me)
        print(told, file=self._out, flush=True)
        if self._opens and not show(link(address, site), 0.0):
            print(NO_BROWSER, file=self._out, flush=True)


async def _act(engine: "Engine", tool: str, arguments: dict[str, Any], pause_s: float) -> None:
    """Call a tool again and again, each time after the last call of it has ended."""
    from msgspec import Raw, json

    from afoot.engine.bell import Bell
    from afoot.engine.engine import Submission

    want = Submission(tool, Raw(json.encode(arguments)), caller="demo")
    for _ in range(ROUNDS):
        if engine.closing is not None:
            return
        live, bell = engine.submit(want), Bell()
        with engine.follow(live, bell.ring, None):
            while not live.call.is_finished:
                await bell.wait()
        await asyncio.sleep(pause_s)


def welcome(address: "Address", me: str) -> str:
    """What a newcomer is told: where to look, and what to type."""
    tools = Path(__file__).with_name("demo_tools.py")
    lines = [
        "six example tools, and calls of them that run now; two of them wait for you",
        f"  console  {address.console}",
        f"           {HOW_LONG}",
        f"  MCP      {address.mcp}",
        f"  tools    {tools}",
        "type in another terminal:",
        f"  {me} watch                       # what runs; Ctrl-C leaves it running",
        f"  {me} call export_pages pages=20  # a call of your own",
        f"  {me} call delete_backups         # one that asks first",
        f"  {me} console                     # a link for another browser",
        "Ctrl-C ends it; nothing of it stays behind.",
    ]
    return "\n".join(lines)


@contextmanager
def _away() -> Iterator[str]:
    """A state folder for as long as this lasts; gives how a client command that finds it is started."""
    from afoot import state

    home = state.home()
    is_new, others = not home.exists(), state.running()
    plain = myself()
    folder = home / state.DEMO
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    before = os.environ.get("AFOOT_HOME")
    os.environ["AFOOT_HOME"] = str(folder.absolute())
    try:
        yield plain if others is None else myself()
    finally:
        os.environ.pop("AFOOT_HOME")
        if before is not None:
            os.environ["AFOOT_HOME"] = before
        shutil.rmtree(folder, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # somebody else has begun to use it
                home.rmdir()


def _usual(address: str) -> str:
    """The address that everybody knows, or one with any port where that is taken."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_server((host, int(port))):
            return address
    except OSError:
        return f"{host}:0"
