"""Tools with large results."""

import afoot


@afoot.tool(read_only=True)
async def large(mb: int) -> str:
    """Returns so many megabytes of text."""
    return "x" * (mb * 1024 * 1024)
