"""Tools with large results."""

import afoot
from afoot import Content


@afoot.tool(read_only=True)
async def large(mb: int) -> Content:
    """Returns so many megabytes of text."""
    return Content.text("x" * (mb * 1024 * 1024))


@afoot.tool(read_only=True, task="optional")
async def large_task(mb: int) -> Content:
    """Returns so many megabytes of text, also as a task."""
    return Content.text("x" * (mb * 1024 * 1024))
