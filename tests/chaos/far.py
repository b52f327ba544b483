"""An MCP server on stdio whose tools leave the same marks: `python -m tests.chaos.far`."""

import anyio
from mcp.server.mcpserver import MCPServer

from tests.chaos.tools import STAY_S, stay_put

server = MCPServer("far")


async def stay(tag: str, stay_s: float) -> str:
    """Begin, and wait to be let go."""
    return await anyio.to_thread.run_sync(stay_put, tag, stay_s, abandon_on_cancel=True)


@server.tool()
async def far_safe(tag: str, stay_s: float = STAY_S) -> str:
    """The config says that it may be run again."""
    return await stay(tag, stay_s)


@server.tool()
async def far_unsafe(tag: str, stay_s: float = STAY_S) -> str:
    """Nobody says so of this."""
    return await stay(tag, stay_s)


if __name__ == "__main__":
    server.run("stdio")
