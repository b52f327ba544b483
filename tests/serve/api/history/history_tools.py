"""Tools that fill a history: quick, failing, asking, and one that calls others."""

import asyncio

import afoot
from afoot import Context


@afoot.tool
async def report(pages: int, ctx: Context) -> str:
    """Call a tool for each page, and one of them calls another."""
    for page in range(pages):
        await ctx.call("page", {"number": page})
    return "all of it"


@afoot.tool
async def page(number: int, ctx: Context) -> str:
    """Write a page; the first has a picture."""
    if number == 0:
        await ctx.call("picture", {})
    ctx.report(message=f"page {number}")
    return "written"


@afoot.tool
async def picture() -> str:
    """Draw for a while."""
    await asyncio.sleep(0.02)
    return "drawn"


@afoot.tool
async def give_up() -> str:
    """Fail."""
    raise afoot.ToolError.unavailable("nobody is there")


@afoot.tool
async def ask_colour(ctx: Context) -> str:
    """Ask a person."""
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
    return (await ctx.ask("Which colour?", schema)).action
