"""`afoot servers` lists the servers behind a gateway and manages them, with their OAuth logins.

`login` and `logout` also work without a running gateway, on the servers of the config.
"""

import asyncio
import logging
import os
import sys
from typing import Annotated, Any
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from afoot.cli.client import FAILED, USAGE, CliError, GatewayClient, connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.text import clean, format_time, truncate

LOGIN_START_S = 90.0  # the server may have to start, and its authorization server is asked
SERVER_OPEN_S = 90.0  # a server may take long to start
servers_app = App(default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")
servers_app.command(
    "afoot.cli.commands.servers:login", name="login", help="Log in to a server (OAuth) in the browser."
)
servers_app.command(
    "afoot.cli.commands.servers:logout", name="logout", help="Delete the tokens of a server, or of all."
)


@servers_app.default
def servers(name: str = "", /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """List all servers, or show one, and their problems.

    Args:
        name: the server to show
    """
    client = connect(at)
    if name:
        _print_server(client.get(f"/api/servers/{path_segment(name)}"), json)
        return 0
    found = client.get("/api/servers")
    if json:
        for one in found["servers"]:
            print(to_json_line(one))
        return 0
    for line in _server_table(found["servers"]):
        print(truncate(line, output_width()))
    for problem in found["problems"]:
        print(clean(problem), file=sys.stderr)
    return 0


@servers_app.command
def add(name: str, /, *command: str, url: str = "", at: AtOption = "", json: JsonOption = False) -> int:
    """Add a server until the gateway ends: `add NAME --url URL`, or `add NAME -- COMMAND ARGS…`.

    Args:
        name: the server's name in this gateway
        command: the program that speaks MCP on stdin and stdout, and its arguments
        url: the address of a server that speaks Streamable HTTP
    """
    if bool(url) == bool(command):
        raise CliError(USAGE, "name a server with --url URL, or with -- COMMAND ARGS…")
    body: dict[str, object] = {"name": name}
    body |= {"url": url} if url else {"command": command[0], "args": list(command[1:])}
    reply = connect(at).post("/api/servers", body, SERVER_OPEN_S)
    _print_server(reply, json)
    is_ready = reply["state"] == "ready"
    if not json:
        kept = f"it is there until the gateway ends; [servers.{name}] in afoot.toml keeps it"
        failed = f"it was added, but it cannot be used; `afoot servers remove {name}` removes it"
        print(kept if is_ready else failed, file=sys.stderr)
    return 0 if is_ready else FAILED


@servers_app.command
def reload(name: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Reconnect to a server and list its tools again. Running calls finish on the old connection.

    Args:
        name: the server's name
    """
    reply = connect(at).post(f"/api/servers/{path_segment(name)}/reload", {}, SERVER_OPEN_S)
    _print_server(reply, json)
    return 0 if reply["state"] == "ready" else FAILED


@servers_app.command
def remove(name: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Remove a server. Running calls finish.

    Args:
        name: the server's name
    """
    reply = connect(at).delete(f"/api/servers/{path_segment(name)}")
    print(to_json_line(reply) if json else f"removed {clean(reply['removed'])}")
    if reply["note"] and not json:
        print(clean(reply["note"]), file=sys.stderr)
    return 0


@servers_app.command
def logs(name: str, /, *, limit: int = 100, at: AtOption = "", json: JsonOption = False) -> int:
    """Print the stderr and log lines of a server, oldest first.

    Args:
        name: the server's name
        limit: the largest number of lines
    """
    for line in connect(at).get(f"/api/servers/{path_segment(name)}/logs", limit=limit)["lines"]:
        print(to_json_line(line) if json else f"{format_time(line['at'])}  {clean(line['text'])}")
    return 0


def login(
    name: str,
    /,
    *,
    no_browser: Annotated[bool, Parameter(help="only print the login address")] = False,
    port: Annotated[int, Parameter(help="the port to which the browser returns; default: a free port")] = 0,
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Log in to a server (OAuth) in the browser. The tokens are kept and renewed until you log out.

    Args:
        name: the server's name
    """
    client = _client(at)
    if client is None:
        reply = asyncio.run(_login_without_gateway(name, port, not no_browser))
    else:
        reply = client.post(f"/api/servers/{path_segment(name)}/login", {"port": port}, LOGIN_START_S)
        _show_address(reply["url"], not no_browser)
        while reply["state"] == "waiting":
            reply = client.get(f"/api/servers/{path_segment(name)}/login")
    if reply["state"] != "done":
        raise CliError(FAILED, reply["error"])
    print(to_json_line({"server": name, "login": "logged in"}) if json else f"logged in to {name}")
    return 0


def logout(
    name: str = "",
    /,
    *,
    all: Annotated[bool, Parameter(help="log out of every server, also of removed ones")] = False,
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Delete the tokens of a server, or of all, and afoot's client registration there.

    Args:
        name: the server's name
    """
    if bool(name) == all:
        raise CliError(USAGE, "name one server, or say --all")
    client = _client(at)
    if all:
        return _log_out_of_all(client, json)
    if client is None:
        from afoot.providers.upstream.oauth.logins import Logins

        reply: dict[str, Any] = {"server": name, "had_login": Logins().clear(name)}
    else:
        reply = client.post(f"/api/servers/{path_segment(name)}/logout", {})
    text = f"logged out of {name}" if reply["had_login"] else f"nobody was logged in to {name}"
    print(to_json_line(reply) if json else text)
    return 0


def _log_out_of_all(client: GatewayClient | None, json: bool) -> int:
    if client is None:
        from afoot.providers.upstream.oauth.logins import Logins

        names = Logins().clear_all()
    else:
        names = client.post("/api/logout", {}, SERVER_OPEN_S)["servers"]
    for name in names:
        reply = {"server": name, "had_login": True}
        print(to_json_line(reply) if json else f"logged out of {clean(name)}")
    if not names and not json:
        print("nobody was logged in to any server")
    return 0


def _client(at: str) -> GatewayClient | None:
    """A client of the gateway; None if none is named and none runs, because a login works without one."""
    from afoot.config.state_folder import running_gateway

    if not at and not os.environ.get("AFOOT_URL") and running_gateway() is None:
        return None
    return connect(at)


async def _login_without_gateway(name: str, port: int, browser: bool) -> dict[str, Any]:
    """Log in to a server of the config without a gateway; raises AfootError."""
    from afoot.config.settings import load_settings
    from afoot.core.facts import Limits
    from afoot.engine.catalog import Catalog
    from afoot.errors import UnknownName
    from afoot.providers.upstream.configured_servers import KnownServers, Roster, gather_servers
    from afoot.providers.upstream.servers import Servers

    settings = load_settings().settings
    wanted = gather_servers(settings, settings.targets, own_address=settings.http).entries
    if name not in wanted:
        raise UnknownName("server", name, wanted)
    logging.getLogger("afoot").addHandler(logging.NullHandler())  # the attempt itself reports errors
    async with Servers(Catalog(), Limits(start_s=settings.start_limit_s), KnownServers(None)) as servers:
        servers.logins.require_tokens(name, wanted[name].server)
        servers.follow(Roster({name: wanted[name]}))
        attempt = await servers.login(name, port)
        if attempt.url:
            # A text browser runs until its user leaves it, and the redirect must be answered meanwhile.
            await asyncio.to_thread(_show_address, attempt.url, browser)
        await attempt.ended()
        return {"state": attempt.state, "error": attempt.error}


def _show_address(url: str, browser: bool) -> None:
    """Print the login address and open it. It comes from a server, so only http and https are opened."""
    print(f"Log in here:\n  {clean(url)}", file=sys.stderr, flush=True)
    if browser and urlsplit(url).scheme in ("http", "https"):
        import webbrowser

        webbrowser.open(url)


def _server_table(found: list[dict[str, Any]]) -> list[str]:
    """Servers as a table."""
    if not found:
        return ["no servers"]
    rows = [("SERVER", "STATE", "TOOLS", "ERA", "REACHED", "")]
    rows += [
        (one["name"], _state_text(one), str(one["tools"]), one["era"], one["target"], one["error"])
        for one in found
    ]
    sizes = [min(32, max(len(row[n]) for row in rows)) for n in range(5)]
    return [
        "  ".join(
            [*(truncate(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=False)), row[5]]
        ).rstrip()
        for row in rows
    ]


def _state_text(one: dict[str, Any]) -> str:
    """The state of a server; a login that it needs comes first."""
    if one["login"] == "needed":
        return "needs login"
    return f"{one['state']}, logged in" if one["login"] else one["state"]


def _print_server(one: dict[str, Any], json: bool) -> None:
    if json:
        print(to_json_line(one))
        return
    pid = f", pid {one['pid']}" if one["pid"] else ""
    print(clean(f"{one['name']}: {_state_text(one)}{pid}"))
    if one["error"]:
        print(f"  {clean(one['error'])}")
    lines = {
        "reached": f"{one['target']} ({one['transport']})" if one["target"] else "",
        "speaks": one["era"],
        "is": one["version"],
        "offers": f"{one['tools']} tools, {one['resources']} resources, {one['prompts']} prompts",
        "in use": f"{one['in_use']} calls" if one["in_use"] else "",
        "from": one["origin"],
    }
    for word, text in {**lines, **{what: str(times) for what, times in one["counted"].items()}}.items():
        if text:
            print(clean(f"  {word}: {text}"))
