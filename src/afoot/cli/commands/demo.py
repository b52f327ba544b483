"""`afoot demo` starts a gateway with six example tools, and calls them again and again.

Its state folder is temporary: nothing stays behind when it ends.
"""

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

from afoot.cli.client import USAGE, CliError
from afoot.cli.commands.console import LOGIN_LINK_NOTE, NO_BROWSER, open_in_browser
from afoot.cli.commands.serve import login_link
from afoot.cli.shell_commands import own_command

if TYPE_CHECKING:
    from afoot.config.state_folder import GatewayAddress
    from afoot.engine.engine import Engine
    from afoot.serve.gateway_state import GatewayState

TOOLS_MODULE = "afoot.cli.demo_tools"
MAX_ROUNDS = 100  # of each demo call, so that a forgotten demo does not fill the disk
# The calls of the demo: the tool, its arguments, and the pause before it is called again.
DEMO_CALLS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("export_pages", {"pages": 120}, 3.0),
    ("resize_photos", {"photos": 200}, 3.0),
    ("book_trip", {"city": "Lisbon"}, 20.0),
    ("delete_backups", {"older_than_days": 30}, 20.0),
    ("sync_mail", {"folders": 12}, 15.0),
    ("nightly_report", {"shops": 3}, 5.0),
)


def demo(
    *,
    http: Annotated[
        str, Parameter(help="HOST:PORT to listen on; default: 127.0.0.1:23668 if it is free")
    ] = "",
    open: Annotated[bool, Parameter(help="open the web console in the browser")] = False,
    json: Annotated[bool, Parameter(help="print one line of JSON with address and token")] = False,
) -> int:
    """Start a gateway with six example tools, and call them."""
    from afoot.cli.terminal.log_output import log_to_stderr
    from afoot.config import state_folder
    from afoot.config.settings import Settings
    from afoot.gateway import app

    if (other := state_folder.running_demo()) is not None:
        raise CliError(
            USAGE, f"a demo runs already, at {other.console} (pid {other.pid}); end it, or look at it"
        )
    log_to_stderr(sys.stderr, logging.ERROR)
    address = http or os.environ.get("AFOOT_HTTP") or _free_address(Settings().http)
    settings = Settings(http=address, drain_s=0, cancel_grace_s=1, unanswerable="wait")
    with _temporary_state_folder() as command, Path(os.devnull).open("w") as nowhere:
        demo_run = _DemoRun(command, sys.stdout, opens=open, json=json)
        # The output of tools is in their calls' history; here it would overwrite the welcome text.
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            app.run(app.ServePlan(settings, (TOOLS_MODULE,)), demo_run.start)
    return 0


class _DemoRun:
    """The calls of the demo, and the welcome text for the person."""

    def __init__(self, command: str, out: TextIO, *, opens: bool, json: bool) -> None:
        """`command` is how this program is started; the welcome text goes to `out`."""
        self._own_command = command
        self._out = out
        self._opens = opens
        self._json = json
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, address: "GatewayAddress", gateway: "GatewayState") -> None:
        """Start the calls and print the welcome text."""
        from msgspec import json
        from msgspec.structs import replace

        self._tasks += [asyncio.create_task(_repeat_call(gateway.engine, *one)) for one in DEMO_CALLS]
        address = replace(address, console=login_link(address, gateway), born="")
        text = json.encode(address).decode() if self._json else welcome_text(address, self._own_command)
        print(text, file=self._out, flush=True)
        if self._opens and not open_in_browser(login_link(address, gateway), 0.0):
            print(NO_BROWSER, file=self._out, flush=True)


async def _repeat_call(engine: "Engine", tool: str, arguments: dict[str, Any], pause_s: float) -> None:
    """Call a tool again and again, `pause_s` after the last call has ended."""
    from msgspec import Raw, json

    from afoot.engine.engine import Submission

    want = Submission(tool, Raw(json.encode(arguments)), caller="demo")
    for _ in range(MAX_ROUNDS):
        if engine.closing is not None:
            return
        await engine.wait_for_end(engine.submit(want))
        await asyncio.sleep(pause_s)


def welcome_text(address: "GatewayAddress", command: str) -> str:
    """The welcome text: the addresses, and commands to try."""
    tools = Path(__file__).parents[1] / "demo_tools.py"
    lines = [
        "six example tools, and calls of them that run now; two of them wait for you",
        f"  console  {address.console}",
        f"           {LOGIN_LINK_NOTE}",
        f"  MCP      {address.mcp}",
        f"  tools    {tools}",
        "type in another terminal:",
        f"  {command} watch                       # what runs; Ctrl-C leaves it running",
        f"  {command} call export_pages pages=20  # a call of your own",
        f"  {command} call delete_backups         # one that asks first",
        f"  {command} console                     # a link for another browser",
        "Ctrl-C ends it; nothing of it stays behind.",
    ]
    return "\n".join(lines)


@contextmanager
def _temporary_state_folder() -> Iterator[str]:
    """Use a temporary state folder; yields the command line with which other commands find this demo."""
    from afoot.config import state_folder

    home = state_folder.home()
    is_new, others = not home.exists(), state_folder.running_gateway()
    plain = own_command()
    folder = home / state_folder.DEMO
    shutil.rmtree(folder, ignore_errors=True)  # left by a demo that was killed
    before = os.environ.get("AFOOT_HOME")
    os.environ["AFOOT_HOME"] = str(folder.absolute())
    try:
        yield plain if others is None else own_command()
    finally:
        os.environ.pop("AFOOT_HOME")
        if before is not None:
            os.environ["AFOOT_HOME"] = before
        shutil.rmtree(folder, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # another process has begun to use it
                home.rmdir()


def _free_address(address: str) -> str:
    """The default address, or any free port if that one is taken."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_server((host, int(port))):
            return address
    except OSError:
        return f"{host}:0"
