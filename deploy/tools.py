"""The functions of the workers; put your own here."""

import asyncio

import afoot


@afoot.tool(read_only=True)
async def count(to: int, ctx: afoot.Context) -> int:
    """Count slowly, and report."""
    for number in range(1, to + 1):
        ctx.report(number, to)
        await asyncio.sleep(0.1)
    return to
