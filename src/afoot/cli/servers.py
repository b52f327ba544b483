"""`afoot servers`: the servers behind a gateway: how they are, and what can be done with them."""

import sys
from typing import Any

from cyclopts import App, Parameter

from afoot.cli.calls import At, Json, dumped, width
from afoot.cli.client import connect, part
from afoot.cli.ending import USAGE, Stop
from afoot.observe.terminal import at as moment
from afoot.observe.terminal import clean, cut

OPEN_S = 90.0  # a server may take its time to start

app = App(default_parameter=Parameter(negative=(), show_default=False), help_format="plaintext")
app.command("afoot.cli.login:login", name="login", help="Log in to a server (OAuth) in the browser.")
app.command("afoot.cli.login:logout", name="logout", help="Forget the tokens of a server.")


@app.default
def servers(name: str = "", /, *, at: At = "", json: Json = False) -> int:
    """List the servers, or show one; and what is wrong with them.

    Args:
        name: the server to show
    """
    client = connect(at)
    if name:
        _told(client.get(f"/api/servers/{part(name)}"), json)
        return 0
    found = client.get("/api/servers")
    if json:
        for one in found["servers"]:
            print(dumped(one))
        return 0
    for line in _table(found["servers"]):
        print(cut(line, width()))
    for problem in found["problems"]:
        print(clean(problem), file=sys.stderr)
    return 0


@app.command
def add(name: str, /, *command: str, url: str = "", at: At = "", json: Json = False) -> int:
    """Add a server until the gateway ends: `add NAME --url URL`, or `add NAME -- COMMAND ARGS…`.

    Args:
        name: how it is called here
        command: the program that speaks MCP on stdin and stdout, and its arguments
        url: the address of a server that speaks Streamable HTTP
    """
    if bool(url) == bool(command):
        raise Stop(USAGE, "name a server with --url URL, or with -- COMMAND ARGS…")
    body: dict[str, object] = {"name": name}
    body |= {"url": url} if url else {"command": command[0], "args": list(command[1:])}
    _told(connect(at).post("/api/servers", body, OPEN_S), json)
    if not json:
        print(f"it is there until the gateway ends; [servers.{name}] in afoot.toml keeps it", file=sys.stderr)
    return 0


@app.command
def reload(name: str, /, *, at: At = "", json: Json = False) -> int:
    """Connect to a server anew and list what it offers; calls in flight finish on the old connection.

    Args:
        name: which server
    """
    told = connect(at).post(f"/api/servers/{part(name)}/reload", {}, OPEN_S)
    _told(told, json)
    return 0 if told["state"] == "ready" else 1


@app.command
def remove(name: str, /, *, at: At = "", json: Json = False) -> int:
    """Take a server away; calls in flight finish.

    Args:
        name: which server
    """
    told = connect(at).delete(f"/api/servers/{part(name)}")
    print(dumped(told) if json else f"removed {clean(told['removed'])}")
    if told["note"] and not json:
        print(clean(told["note"]), file=sys.stderr)
    return 0


@app.command
def logs(name: str, /, *, limit: int = 100, at: At = "", json: Json = False) -> int:
    """Print what a server wrote to stderr or logged, the oldest line first.

    Args:
        name: which server
        limit: at most so many lines
    """
    for line in connect(at).get(f"/api/servers/{part(name)}/logs", limit=limit)["lines"]:
        print(dumped(line) if json else f"{moment(line['at'])}  {clean(line['text'])}")
    return 0


def _table(found: list[dict[str, Any]]) -> list[str]:
    """Servers as a table."""
    if not found:
        return ["no servers"]
    rows = [("SERVER", "STATE", "TOOLS", "ERA", "REACHED", "")]
    rows += [
        (one["name"], _state(one), str(one["tools"]), one["era"], one["target"], one["error"])
        for one in found
    ]
    sizes = [min(32, max(len(row[n]) for row in rows)) for n in range(5)]
    return [
        "  ".join(
            [*(cut(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=False)), row[5]]
        ).rstrip()
        for row in rows
    ]


def _state(one: dict[str, Any]) -> str:
    """How it is; what a person can do about it comes first."""
    if one["login"] == "needed":
        return "needs login"
    return f"{one['state']}, logged in" if one["login"] else one["state"]


def _told(one: dict[str, Any], json: bool) -> None:
    if json:
        print(dumped(one))
        return
    pid = f", pid {one['pid']}" if one["pid"] else ""
    print(clean(f"{one['name']}: {_state(one)}{pid}"))
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
