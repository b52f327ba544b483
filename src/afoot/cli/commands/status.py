"""`afoot status` shows the gateway's health and live calls."""

import json as json_module
from collections.abc import Iterator
from typing import Any

from afoot.cli.client import connect
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import calls_table, output_width
from afoot.cli.terminal.text import clean, truncate


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
