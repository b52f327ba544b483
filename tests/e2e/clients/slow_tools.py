"""A slow tool with a structured result, for clients that check it against its schema."""

import asyncio

from afoot import Context, tool


@tool
async def export(pages: int, step_s: float, ctx: Context) -> dict[str, int]:
    """Reports each page."""
    for page in range(1, pages + 1):
        await asyncio.sleep(step_s)
        ctx.report(page, pages, f"page {page}")
    return {"pages": pages}
