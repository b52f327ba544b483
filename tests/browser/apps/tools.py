"""Tools that a host calls while our app shows their calls."""

import asyncio
from typing import Any

import afoot
from afoot import Context

LONG_S = 60.0  # longer than any test waits
NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Your name"}},
    "required": ["name"],
}


@afoot.tool
async def export_pages(pages: int, ctx: Context) -> str:
    """Say how far it is, and never come further."""
    ctx.report(pages, 120, f"page {pages}")
    await asyncio.sleep(LONG_S)
    return "exported"


@afoot.tool
async def nightly_report(ctx: Context) -> str:
    """Work through another tool."""
    return str(await ctx.call("export_pages", {"pages": 30}))


@afoot.tool
async def greet(ctx: Context) -> dict[str, Any]:
    """Ask the caller for a name."""
    reply = await ctx.ask("Who is there?", NAME, key="name")
    return {"said": reply.action, "name": (reply.content or {}).get("name")}
