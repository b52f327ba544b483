"""`afoot calls`, `log` and `cancel`: calls found, read back, and stopped."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from afoot.cli.client import Client, connect, events, part
from afoot.core.facts import Entry
from afoot.observe import terminal
from afoot.observe.story import Read, story

At = Annotated[str, Parameter(help="the gateway's URL; else the one that runs here")]
Json = Annotated[bool, Parameter(help="print one JSON object a line")]

BELOW = 10  # calls that one made, in its story
WIDE = 120  # columns in which whole names have room
_ANY_WIDTH = 10_000


@dataclass(frozen=True)
class Filter:
    """Which calls."""

    tool: Annotated[str, Parameter(help="only calls of this tool")] = ""
    server: Annotated[str, Parameter(help="only calls on this server")] = ""
    state: Annotated[str, Parameter(help="live, waiting, queued, running, cancelling or finished")] = ""
    outcome: Annotated[str, Parameter(help="ok, failed, cancelled, timed_out, …")] = ""
    before: Annotated[float | None, Parameter(help="only calls opened before this time (seconds)")] = None
    limit: Annotated[int, Parameter(help="at most so many")] = 20


def calls(
    text: str = "",
    /,
    *,
    which: Annotated[Filter, Parameter(name="*")] = Filter(),  # noqa: B008
    at: At = "",
    json: Json = False,
) -> int:
    """List calls, the newest first.

    Args:
        text: only calls with this in their id, tool, message or arguments
    """
    page = connect(at).get(
        "/api/calls", q=text, tool=which.tool, server=which.server, state=which.state,
        outcome=which.outcome, before=which.before, limit=which.limit,
    )  # fmt: skip
    if json:
        for call in page["calls"]:
            print(dumped(call))
        return 0
    for line in table(page["calls"], width()):
        print(line)
    if page["next"] is not None:
        print(f"… older ones: --before {page['next']!r}", file=sys.stderr)
    return 0


def log(call: str, /, *, at: At = "", json: Json = False) -> int:
    """Print a call's story: how it ended or stands, then what happened, with the seconds since it was opened.

    Args:
        call: the call's id, or its end
    """
    client = connect(at)
    if json:
        for one, _ in _history(client, call):
            print(dumped(one))
        return 0
    items = [item for _, item in _history(client, call)]
    found = client.get(f"/api/calls/{part(call)}")
    made = client.get("/api/calls", parent=found["id"], limit=BELOW)["calls"] if found.get("children") else []
    for line in story(items, found, made):
        print(terminal.cut(line, width()))
    return 0


def cancel(call: str, /, *, reason: str = "", at: At = "", json: Json = False) -> int:
    """Ask a call to stop.

    Args:
        call: the call's id, or its end
        reason: why; the tool and its caller are told
    """
    body = {"reason": reason} if reason else {}
    told = connect(at).post(f"/api/calls/{part(call)}/cancel", body)
    print(
        dumped(told)
        if json
        else f"{terminal.clean(told['tool'])} {terminal.short(told['id'])}: {told['state']}"
    )
    return 0


def table(found: list[dict[str, Any]], wide: int) -> Iterator[str]:
    """Calls as a table that fits a width."""
    if not found:
        yield "no calls"
        return
    rows = [("CALL", "TOOL", "STATE", "PROGRESS", "TIME", "OPENED", "MESSAGE")]
    rows += [_row(call) for call in found]
    limits = (terminal.SHORT, 16 if wide < WIDE else 64, 10, 11, 9, 19)
    sizes = [min(limit, max(len(row[n]) for row in rows)) for n, limit in enumerate(limits)]
    for row in rows:
        row = (row[0], terminal.name(row[1], sizes[1]), *row[2:])
        cells = [terminal.cut(cell, size).ljust(size) for cell, size in zip(row[:-1], sizes, strict=True)]
        left = max(8, wide - sum(sizes) - 2 * len(sizes))
        yield ("  ".join([*cells, terminal.cut(row[-1], left)])).rstrip()


def width() -> int:
    """How wide a line may be: as the terminal is; in a pipe nothing is cut off."""
    return get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else _ANY_WIDTH


def _row(call: dict[str, Any]) -> tuple[str, ...]:
    state = call["outcome"] or ("waiting" if call["waiting"] else call["state"])
    message = call["message"] or ""
    if call["questions"]:
        message = f"asks: {call['questions'][0]['message']}"
    return (
        terminal.short(call["id"]), call["tool"], state.replace("_", " "),
        terminal.amount(call["progress"], call["total"]),
        terminal.lasting(call["elapsed_s"]), terminal.at(call["opened"]), message,
    )  # fmt: skip


def _history(client: Client, call: str) -> Iterator[tuple[dict[str, Any], Entry | Read]]:
    """The past of a call: each event as it came, and as what it is."""
    for event in events(client.open("GET", f"/api/calls/{part(call)}/events?follow=no")):
        if event.event == "fact":
            yield {"event": "fact", **json.loads(event.data)}, msgspec.json.decode(event.data, type=Entry)
        elif event.event == "reading":
            yield {"event": "reading", **json.loads(event.data)}, msgspec.json.decode(event.data, type=Read)


def dumped(thing: object) -> str:
    """One object on one line; a terminal may show it, too."""
    return terminal.escaped(json.dumps(thing, ensure_ascii=False))
