"""An MCP server on stdio whose tools leave the same marks.

Run as `python -m tests.chaos.marking_server far|asking|slow`.
"""

import sys
import time
from collections.abc import Awaitable, Callable

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from tests.chaos.tools import MARKS, STAY_S, is_let_go, mark, stay_put


class Name(BaseModel):
    """What is asked for."""

    name: str


async def stay(tag: str, stay_s: float = STAY_S) -> str:
    """Begin, and wait to be let go."""
    return await anyio.to_thread.run_sync(stay_put, tag, stay_s, abandon_on_cancel=True)


async def ask(tag: str, ctx: Context) -> str:
    """Begin, ask, and be done."""
    mark(tag, "begun")
    told = await ctx.elicit("Who?", Name)
    mark(tag, f"done {told.data.name if told.action == 'accept' else told.action}")
    return tag


TOOLS: dict[str, dict[str, Callable[..., Awaitable[str]]]] = {
    "far": {"far_safe": stay, "far_unsafe": stay, "far_risky": stay},
    "asking": {"asking_safe": ask, "asking_unsafe": ask},
    "slow": {"slow_unsafe": stay},
}


def main(name: str) -> None:
    """Serve the tools of this name; one that is slow comes up once it is let up."""
    if name == "slow":
        mark("slow", "begun")
        end = time.monotonic() + STAY_S
        while not is_let_go("slow") and time.monotonic() < end:
            time.sleep(0.01)
    server = MCPServer(name)
    for tool, work in TOOLS[name].items():
        server.tool(name=tool, description=f"{tool}, with marks in {MARKS.name}")(work)
    server.run("stdio")


if __name__ == "__main__":
    main(sys.argv[1])
