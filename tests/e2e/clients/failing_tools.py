"""Tools that fail: one publishes an output schema, the other does not."""

from afoot import Context, ToolError, tool


@tool
async def fail_with_schema(ctx: Context) -> dict[str, int]:
    """Fails half way."""
    ctx.report(1, 2, "half way")
    raise ToolError.not_found("no such page")


@tool
async def fail_plainly(ctx: Context) -> None:
    """Fails half way."""
    ctx.report(1, 2, "half way")
    raise ToolError.not_found("no such page")
