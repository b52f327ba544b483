"""`afoot tools` lists the tools of a gateway; `afoot status` shows the gateway's health and live calls."""

import json as json_module
from collections.abc import Iterator
from typing import Any

from afoot.cli.client import connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import calls_table, output_width, to_json_line
from afoot.cli.terminal.questions.forms import describe_schema
from afoot.cli.terminal.text import clean, truncate
from afoot.core.notices import format_size


def tools(name: str = "", /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """List all tools, or show one tool with its arguments.

    Args:
        name: the tool to show
    """
    client = connect(at)
    found = [client.get(f"/api/tools/{path_segment(name)}")] if name else client.get("/api/tools")["tools"]
    for tool in found:
        if json:
            print(to_json_line(tool))
        elif name:
            _print_tool(tool)
        else:
            first = (tool["description"] or "").split("\n")[0]
            print(truncate(f"{_usage(tool)}  {first}", output_width()))
    if not found and not json:
        print("no tools")
    return 0


def status(*, at: AtOption = "", json: JsonOption = False) -> int:
    """Show whether a gateway runs, its address, its health, and its live calls."""
    client = connect(at)
    health = client.get("/healthz")
    behind, tabs = client.get("/api/servers"), client.get("/api/tabs")
    living: list[dict[str, Any]] = client.get("/api/calls", state="live", limit=500)["calls"]
    asks = sum(len(call["questions"]) for call in living)
    if json:
        status_view = {
            "url": client.url, "mcp": f"{client.url}/mcp", **health, "live": len(living), "questions": asks,
            "servers": behind["servers"], "browsers": tabs["browsers"],
        }  # fmt: skip
        print(json_module.dumps(status_view))
        return 0
    print(f"afoot {health['version']} at {client.url}: {health['status']}")
    if health.get("public"):
        print(f"  for others at {clean(health['public'])}")
    if health.get("why"):
        print(f"  history: {clean(health['why'])}")
    print(f"  {_count(len(living), 'live call')}, {_count(asks, 'open question')}")
    for line in (*_server_lines(behind, health.get("problems", [])), *_browser_lines(tabs)):
        print(truncate(f"  {line}", output_width()))
    for what, times in health.get("counted", {}).items():
        print(f"  {clean(what)}: {times}")
    for line in calls_table(living, output_width() - 2) if living else ():
        print(f"  {line}")
    return 0


def _server_lines(behind: dict[str, Any], problems: list[str]) -> Iterator[str]:
    """The number of servers, and the problems of servers and settings."""
    servers: list[dict[str, Any]] = behind["servers"]
    if servers:
        ready = sum(one["state"] == "ready" for one in servers)
        yield f"{_count(len(servers), 'server')}, {ready} of them running"
    yield from (f"{one['name']}: {one['error']}" for one in servers if one["error"])
    yield from (*behind["problems"], *problems)


def _browser_lines(known: dict[str, Any]) -> Iterator[str]:
    """The number of browsers, and of tabs with tools."""
    there = [one for one in known["browsers"] if one["state"] == "connected"]
    if there:
        ready = sum(tab["state"] == "ready" for tab in known["tabs"])
        yield f"{_count(len(there), 'browser')}, {_count(ready, 'tab')} with tools"


def _count(number: int, thing: str) -> str:
    return f"{number or 'no'} {thing}{'s' * (number != 1)}"


def _usage(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    required = set(schema.get("required") or ())
    words = [f"{key}=…" if key in required else f"[{key}=…]" for key in schema.get("properties") or ()]
    return clean(" ".join([tool["name"], *words]))


def _print_tool(tool: dict[str, Any]) -> None:
    print(_usage(tool))
    for line in (tool["description"] or "").split("\n"):
        print(f"  {clean(line)}".rstrip())
    schema = tool["inputSchema"]
    required = set(schema.get("required") or ())
    for key, one in (schema.get("properties") or {}).items():
        notes = [describe_schema(one, schema)]
        if "default" in one:
            notes.append(f"default {json_module.dumps(one['default'])}")
        elif key not in required:
            notes.append("optional")
        text = f": {one['description']}" if one.get("description") else ""
        print(truncate(f"  {key} ({'; '.join(notes)}){text}", output_width()))
    limits = tool["limits"]
    idle = f"{limits['idle_s']:g} s" if limits["idle_s"] is not None else "none"
    idle += " (once it has reported)" * tool["patient"]
    print(f"  limits: idle {idle}, ceiling {limits['ceiling_s']:g} s, answer {limits['answer_s']:g} s")
    print(f"  server: {clean(tool['server'])}; approval: {tool['approval']}")
    if (uses := tool.get("isolation")) is not None:
        print(f"  isolated, in a child process: {', '.join(_isolation_limits(uses)) or 'no limits'}")


def _isolation_limits(limits: dict[str, Any]) -> Iterator[str]:
    """The limits of an isolated call, by the names of their options."""
    if limits["cpu_s"]:
        yield f"cpu {limits['cpu_s']:g} s"
    if limits["memory_bytes"]:
        yield f"memory {format_size(limits['memory_bytes'])}"
    yield from (f"{key} {limits[key]}" for key in ("open_files", "processes") if limits[key])
