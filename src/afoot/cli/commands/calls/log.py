"""`afoot log` prints the state or outcome of one call, and its events in order."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from afoot.cli.client import GatewayClient, connect, path_segment, read_events
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.call_log import StoredReading, log_lines
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.core.facts import Entry

SHOWN_CHILDREN = 10  # child calls that `afoot log` lists


def log(call: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Print the state or outcome of a call, and its events with the seconds since it was opened.

    Args:
        call: the call's id, or its last characters
    """
    client = connect(at)
    if json:
        for one, _ in _read_history(client, call):
            print(to_json_line(one))
        return 0
    items = [item for _, item in _read_history(client, call)]
    found = client.get(f"/api/calls/{path_segment(call)}")
    made = (
        client.get("/api/calls", parent=found["id"], limit=SHOWN_CHILDREN)["calls"]
        if found.get("children")
        else []
    )
    is_summary = True  # up to the empty line; an error is told there alone, so it is told whole
    for line in log_lines(items, found, made):
        is_summary = is_summary and bool(line)
        print(line if is_summary else terminal.truncate(line, output_width()))
    return 0


def _read_history(client: GatewayClient, call: str) -> Iterator[tuple[dict[str, Any], Entry | StoredReading]]:
    """The events of a call so far, each as JSON and decoded."""
    for event in read_events(client.open_stream("GET", f"/api/calls/{path_segment(call)}/events?follow=no")):
        if event.event == "fact":
            yield {"event": "fact", **json.loads(event.data)}, msgspec.json.decode(event.data, type=Entry)
        elif event.event == "reading":
            yield (
                {"event": "reading", **json.loads(event.data)},
                msgspec.json.decode(event.data, type=StoredReading),
            )
