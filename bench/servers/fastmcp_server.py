"""The bench's four tools on FastMCP: `python fastmcp_server.py stdio|http [PORT] [--uvloop]`."""

import asyncio
import sys
import time

from fastmcp import Context, FastMCP

BURST = 100
server = FastMCP("bench")


@server.tool
async def noop() -> str:
    """Do nothing."""
    return "ok"


@server.tool
async def ticks(n: int, ctx: Context) -> int:
    """Report n times."""
    for i in range(1, n + 1):
        await ctx.report_progress(i, n, "tick")
        if i % BURST == 0:
            await asyncio.sleep(0)
    return n


@server.tool
async def cost(n: int, ctx: Context) -> float:
    """Return the seconds of the tool's time per report, without the yields between bursts."""
    spent = 0.0
    for start in range(0, n, BURST):
        began = time.perf_counter()
        for i in range(start + 1, start + BURST + 1):
            await ctx.report_progress(i, n, "tick")
        spent += time.perf_counter() - began
        await asyncio.sleep(0)
    return spent / n


@server.tool
async def wait(seconds: float, ctx: Context) -> str:
    """Report once, to say that it runs, and sleep."""
    await ctx.report_progress(1, 2, "waiting")
    await asyncio.sleep(seconds)
    return "ok"


if __name__ == "__main__":
    if "--uvloop" in sys.argv:
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    if sys.argv[1] == "http":
        server.run("http", host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", show_banner=False)
    else:
        server.run("stdio", log_level="warning", show_banner=False)
