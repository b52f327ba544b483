"""Tools with large results."""

from afoot import Content, Context, tool


@tool(read_only=True)
async def large(mb: int) -> Content:
    """Returns so many megabytes of text."""
    return Content.text("x" * (mb * 1024 * 1024))


@tool(read_only=True, task="optional")
async def large_task(mb: int) -> Content:
    """Returns so many megabytes of text, also as a task."""
    return Content.text("x" * (mb * 1024 * 1024))


@tool(read_only=True)
async def large_tree(calls: int, mb: int, ctx: Context) -> str:
    """Calls a tool with a large result so many times."""
    for _ in range(calls):
        await ctx.call("large", {"mb": mb})
    return "all of them"


@tool(destructive=True)
async def large_if_allowed(mb: int) -> Content:
    """Asks first."""
    return Content.text("x" * (mb * 1024 * 1024))
