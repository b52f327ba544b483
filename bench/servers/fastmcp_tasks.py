"""`python fastmcp_tasks.py URL` measures a task of FastMCP on a Redis, beside bench/cluster.py.

It needs the package `fastmcp-tasks`, which wants other versions than afoot: in an environment of its own.
"""

import asyncio
import statistics
import sys
import time

from fastmcp import Client, FastMCP
from fastmcp_tasks import TasksExtension  # pyrefly: ignore[missing-import]

url = sys.argv[1]
mcp = FastMCP("bench")
mcp.add_extension(TasksExtension(url=url, name="bench", concurrency=50))


@mcp.tool(task=True)
async def noop() -> str:
    """Do nothing."""
    return "done"


async def main() -> None:
    async with Client(mcp) as client:
        for _ in range(5):
            await client.call_tool("noop", {})
        times = list[float]()
        for _ in range(100):
            began = time.monotonic()
            await client.call_tool("noop", {})
            times.append((time.monotonic() - began) * 1e3)
        print(f"call p50 {statistics.median(times):.2f} ms, p99 {sorted(times)[98]:.2f} ms")
        left = iter(range(500))

        async def caller() -> None:
            for _ in left:
                await client.call_tool("noop", {})

        began = time.monotonic()
        await asyncio.gather(*(caller() for _ in range(50)))
        print(f"{500 / (time.monotonic() - began):.0f} calls a second, 50 at once")


asyncio.run(main())
