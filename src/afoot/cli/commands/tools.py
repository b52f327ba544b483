"""`afoot tools` lists the tools of a gateway, or shows one with its arguments."""

import json as json_module
from collections.abc import Iterator
from typing import Any

from afoot.cli.client import connect, path_segment
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import output_width, to_json_line
from afoot.cli.terminal.questions.forms import describe_schema
from afoot.cli.terminal.text import clean, truncate
from afoot.core.number_format import format_size


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
