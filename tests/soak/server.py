"""An MCP server behind the gateway of a soak, with the same marks as the gateway's own tools.

Run as `python -m tests.soak.server NAME` on stdio, or with a port as second argument on HTTP.
"""

import os
import sys
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

from tests.chaos.tools import mark

LINES = 2000


class Who(BaseModel):
    """The form of a tool that asks."""

    name: str


async def work(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Report each step."""
    mark(tag, "begun")
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
        await anyio.sleep(step_s)
    mark(tag, "done")
    return tag


async def flood(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Write to stderr and report as fast as it can."""
    mark(tag, "begun")
    for number in range(LINES):
        print(f"line {number} {'w' * 100}", file=sys.stderr)
        if number % 10 == 0:
            await ctx.report_progress(number, LINES, "v" * 100)
    mark(tag, "done")
    return tag


async def dies(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """End the process in the middle of a call."""
    mark(tag, "begun")
    await ctx.report_progress(1, 2)
    await anyio.sleep(step_s)
    os._exit(4)


async def ask_in_call(tag: str, ctx: Context, steps: int = 5, step_s: float = 0.02) -> str:
    """Ask while the call runs, which only the handshake era has."""
    mark(tag, "begun")
    told = await ctx.elicit("Who?", Who)
    mark(tag, "done")
    return f"{tag} {told.action}"


async def which() -> Elicit[Who]:
    """Ask for a name."""
    return Elicit("Who?", Who)


async def ask_in_round(
    tag: str, who: Annotated[Who, Resolve(which)], steps: int = 5, step_s: float = 0.02
) -> str:
    """Ask before it begins, in a round of 2026-07-28."""
    mark(tag, "begun")
    mark(tag, "done")
    return f"{tag} {who.name}"


def main(name: str, port: int | None) -> None:
    """Serve on stdio or on a port of loopback."""
    server = MCPServer(name)
    asking = ask_in_call if name == "older" else ask_in_round
    tools = {"work": work, "safe": work, "flood": flood, "dies": dies, "ask": asking}
    for tool, function in tools.items():
        server.tool(name=f"{name}_{tool}", description=str(function.__doc__))(function)
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
