"""`afoot serve` serves tools over MCP until Ctrl-C."""

import logging
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from afoot.cli.shell_commands import example_call, own_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from afoot.config.state_folder import GatewayAddress
    from afoot.core.ports import Tool
    from afoot.providers.upstream.servers import Servers
    from afoot.serve.gateway_state import GatewayState

SETTING_FLAGS = ("http", "store", "approval")


@dataclass(frozen=True)
class ServeOptions:
    """The options of `afoot serve`."""

    config: Annotated[Path | None, Parameter(help="the config file; default: the nearest afoot.toml")] = None
    http: Annotated[str | None, Parameter(help="HOST:PORT to listen on; port 0 picks a free port")] = None
    stdio: Annotated[bool, Parameter(help="use MCP on stdin and stdout instead of HTTP")] = False
    store: Annotated[str | None, Parameter(help="the file of the history")] = None
    approval: Annotated[str | None, Parameter(help="auto or ask: whether calls need approval")] = None
    cdp: Annotated[str | None, Parameter(help="http://127.0.0.1:PORT, a browser's debugging port")] = None
    reload: Annotated[bool, Parameter(help="read tool files again when they change")] = False
    open: Annotated[bool, Parameter(help="open the web console in the browser")] = False
    json: Annotated[bool, Parameter(help="print one line of JSON with address and token")] = False
    linger: Annotated[bool, Parameter(show=False)] = False  # set by `afoot connect`
    bare: Annotated[bool, Parameter(show=False)] = False  # set by `afoot browser --try`


def serve(*targets: str, options: Annotated[ServeOptions, Parameter(name="*")] = ServeOptions()) -> int:  # noqa: B008
    """Serve tools over MCP and keep the history of their calls.

    Args:
        targets: files or modules with tools or a FastMCP or SDK server, file.py:server, URLs, mcp.json files
    """
    from afoot.cli.terminal.log_output import log_of_server
    from afoot.config.settings import load_settings
    from afoot.gateway import app

    log_of_server()
    flags: dict[str, object] = {
        name: value for name in SETTING_FLAGS if (value := getattr(options, name)) is not None
    }
    if targets:
        flags["targets"] = list(targets)
    if options.cdp is not None:
        flags["browser"] = {"cdp": options.cdp}
    loaded = load_settings(options.config, flags, upward=not options.linger)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules are imported from this folder
    plan = app.ServePlan(
        loaded.settings, tuple(loaded.settings.targets), options.stdio, options.reload,
        linger=options.linger, bare=options.bare, source=app.ConfigSource(loaded.file, flags),
    )  # fmt: skip

    app.run(plan, partial(_on_started, options))
    return 0


def _on_started(options: ServeOptions, address: "GatewayAddress", gateway: "GatewayState") -> None:
    from msgspec import json
    from msgspec.structs import replace

    from afoot.cli.terminal.text import clean

    # The link has a one-time code instead of the token: others may see a URL.
    address = replace(address, console=login_link(address, gateway), born="")
    text = json.encode(address).decode() if options.json else welcome_text(address, gateway)
    print(clean(text, keep="\n"), flush=True)  # names of servers, and their errors, are in it
    if options.open:
        _open_console(login_link(address, gateway))


def welcome_text(address: "GatewayAddress", gateway: "GatewayState") -> str:
    """The text at the start: the addresses, the problems, and commands to type next."""
    tools = list(gateway.engine.catalog)
    names = ", ".join(tool.name for tool in tools)
    if len(names) > 60:
        names = f"{names[:60].rpartition(', ')[0]}, …"
    lines = [
        f"afoot serves {len(tools)} tool{'s' * (len(tools) != 1)}{': ' * bool(names)}{names}",
        *(_server_lines(gateway.servers) if gateway.servers is not None else ()),
        f"  MCP      {address.mcp}",
        f"  console  {address.console}",
        f"  pid      {address.pid}",
        *([f"  others   {gateway.public}/mcp"] if gateway.public not in ("", gateway.url) else []),
        "type in another terminal:",
        *(
            f"  {own_command()} {line}"
            for line in ("tools", _example_call_of_tool(tools[0]) if tools else "status", "watch")
        ),
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def login_link(address: "GatewayAddress", gateway: "GatewayState") -> str:
    """A new login link to the console; it works once, for one browser."""
    from afoot.serve.access.principal import OPERATOR_PRINCIPAL

    assert gateway.browser_sessions is not None
    code, _ = gateway.browser_sessions.code(OPERATOR_PRINCIPAL)
    return f"{address.console.partition('#')[0]}#login={code}"


def _open_console(url: str) -> None:
    from afoot.cli.commands.console import NO_BROWSER, open_in_browser

    if not open_in_browser(url, 0.0):
        logging.getLogger("afoot").warning(NO_BROWSER)


def _server_lines(servers: "Servers") -> "Iterator[str]":
    listed = servers.list()
    if listed:
        starting = [one.name for one in listed if one.state == "starting"]
        more = f" (starting: {', '.join(starting)})" if starting else ""
        names = ", ".join(one.name for one in listed)
        yield f"  from {len(listed)} server{'s' * (len(listed) != 1)}: {names}{more}"
    yield from (f"  {one.name}: {one.error}" for one in listed if one.error)
    yield from (f"  {problem}" for problem in servers.problems)


def _example_call_of_tool(tool: "Tool") -> str:
    import msgspec

    return example_call(tool.name, msgspec.json.decode(tool.definition).get("inputSchema") or {})
