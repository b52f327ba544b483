"""`calls_table` lists calls as a table; `to_json_line` and `output_width` are for all that is listed."""

import json
import os
import sys
from collections.abc import Iterator
from shutil import get_terminal_size
from typing import Any

from afoot.cli.terminal import text as terminal

WIDE_COLUMNS = 120  # from this width on, tool names are not cut
_ANY_WIDTH = 10_000


def calls_table(found: list[dict[str, Any]], wide: int) -> Iterator[str]:
    """Calls as a table that fits a width."""
    if not found:
        yield "no calls"
        return
    rows = [("CALL", "TOOL", "STATE", "PROGRESS", "TIME", "OPENED", "MESSAGE")]
    rows += [_row(call) for call in found]
    limits = (terminal.SHORT_ID_CHARS, 16 if wide < WIDE_COLUMNS else 64, 10, 11, 9, 19)
    sizes = [min(limit, max(len(row[n]) for row in rows)) for n, limit in enumerate(limits)]
    for row in rows:
        row = (row[0], terminal.short_tool_name(row[1], sizes[1]), *row[2:])
        cells = [
            terminal.truncate(cell, size).ljust(size) for cell, size in zip(row[:-1], sizes, strict=True)
        ]
        left = max(8, wide - sum(sizes) - 2 * len(sizes))
        yield ("  ".join([*cells, terminal.truncate(row[-1], left)])).rstrip()


def output_width() -> int:
    """The width of an output line: that of the terminal; in a pipe nothing is cut."""
    return get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else _ANY_WIDTH


def to_json_line(thing: object) -> str:
    """One object as a line of JSON that is safe to show in a terminal."""
    return terminal.escape_json(json.dumps(thing, ensure_ascii=False))


def _row(call: dict[str, Any]) -> tuple[str, ...]:
    state = call["outcome"] or ("waiting" if call["waiting"] else call["state"])
    message = call["message"] or ""
    if call["questions"]:
        message = f"asks: {call['questions'][0]['message']}"
    return (
        terminal.short_id(call["id"]), call["tool"], state.replace("_", " "),
        terminal.format_progress(call["progress"], call["total"]),
        terminal.format_span(call["elapsed_s"]), terminal.format_time(call["opened"]), message,
    )  # fmt: skip
