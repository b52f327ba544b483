"""Tools that log far more than anybody reads."""

import afoot
from afoot import Context


@afoot.tool
def log_much(lines: int, ctx: Context) -> str:
    """Logs lines of 500 characters as fast as it can, from a thread."""
    for number in range(lines):
        ctx.log(f"{number} ".ljust(500, "y"))
    return "done"


@afoot.tool
async def log_much_on_loop(lines: int, ctx: Context) -> str:
    """The same on the gateway's loop."""
    for number in range(lines):
        ctx.log(f"{number} ".ljust(500, "y"))
    return "done"
