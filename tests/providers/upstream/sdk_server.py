"""A real server of the `mcp` SDK with the contract's tools: an object, and a script for stdio or HTTP.

Run as a script: `sdk_server.py` speaks on stdio; `sdk_server.py PORT` serves `/mcp` on that port.
"""

import asyncio
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel


class Sure(BaseModel):
    """What `confirm` asks for."""

    sure: bool


server = MCPServer("sdk", instructions="for tests")


@server.tool()
async def echo(text: str) -> str:
    return text


@server.tool()
async def count(n: int, ctx: Context) -> str:
    for step in range(1, n + 1):
        await ctx.report_progress(step, n)
    return str(n)


@server.tool()
async def crash() -> str:
    raise ValueError("boom")


@server.tool()
async def missing() -> CallToolResult:
    meta = {"dev.afoot/error": {"category": "not_found", "code": "not_found"}}
    return CallToolResult(content=[TextContent(type="text", text="no such thing")], is_error=True, _meta=meta)


@server.tool()
async def hang(ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        print("hang was cancelled", file=sys.stderr, flush=True)
    return "never"


async def ask() -> Elicit[Sure]:
    return Elicit("sure?", Sure)


@server.tool()
async def confirm(answer: Annotated[Sure, Resolve(ask)]) -> str:
    return "yes" if answer.sure else "no"


@server.resource("test://static")
def static() -> str:
    return "text of a resource"


@server.prompt()
def hello(name: str) -> str:
    return f"Hello, {name}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
