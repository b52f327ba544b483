"""Tools to try: `afoot serve examples/tools.py`, then `afoot call count n=20`."""

import asyncio

import afoot
from afoot import Context


@afoot.tool(read_only=True)
async def count(n: int = 10, every_s: float = 0.5, ctx: Context | None = None) -> dict[str, int]:
    """Count slowly, and say so.

    Args:
        n: how far to count
        every_s: seconds between two numbers
    """
    for number in range(1, n + 1):
        await asyncio.sleep(every_s)
        if ctx:
            ctx.report(number, n, f"counted to {number}")
    return {"counted": n}


@afoot.tool
async def book(city: str, ctx: Context | None = None) -> str:
    """Book a trip, asking how many people go."""
    if ctx is None:
        return f"booked {city} for 1"
    schema = {
        "type": "object",
        "properties": {"people": {"type": "integer", "minimum": 1}},
        "required": ["people"],
    }
    answer = await ctx.ask(f"How many people go to {city}?", schema)
    if not answer:
        return "nothing was booked"
    return f"booked {city} for {answer.content['people']}"
