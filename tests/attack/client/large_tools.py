"""Tools with large results."""

import afoot


@afoot.tool(read_only=True)
async def large(mb: int) -> str:
    """Returns so many megabytes of text."""
    return "x" * (mb * 1024 * 1024)


@afoot.tool(read_only=True, task="optional")
async def large_task(mb: int) -> str:
    """Returns so many megabytes of text, also as a task."""
    return "x" * (mb * 1024 * 1024)
