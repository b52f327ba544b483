"""Tools that a person watches in the console: steady, silent, asking, hostile; and trees of them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import afoot
from afoot import Context

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> \x00\x1b[31mred \u202eexe.txt\u200b 👩‍👩‍👧 "
    + "long " * 40
)


@afoot.tool(ceiling=600)
async def export_pages(n: int = 120, first: int = 0, step_s: float = 0.05, ctx: Context | None = None) -> str:
    """Export pages, one after the other."""
    for page in range(first, n):
        if ctx:
            ctx.report(page, n, f"page {page}")
        await asyncio.sleep(step_s)
    return f"{n} pages"


@afoot.tool(ceiling=600)
def export_half(gate: str, ctx: Context) -> str:
    """Export ten pages of twenty, and the others once a file is there."""
    for page in range(20):
        ctx.report(page, 20, f"page {page}")
        while page == 10 and not Path(gate).exists():
            time.sleep(0.05)
            ctx.alive()
    return "20 pages"


@afoot.tool(ceiling=600)
async def wait_for_index(sleep_s: float = 60.0, beat_s: float = 5.0, ctx: Context | None = None) -> str:
    """Wait, and say nothing but that it waits."""
    if ctx:
        ctx.report(message="waiting for the index")
    end = asyncio.get_running_loop().time() + sleep_s
    while (left_s := end - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(min(beat_s, left_s))
        if ctx:
            ctx.alive()
    return "there"


@afoot.tool
async def break_off(ctx: Context) -> str:
    """Get somewhere, and fail."""
    ctx.report(3, 10, "row 3")
    raise afoot.ToolError.unavailable("the database went away")


@afoot.tool
async def ask_which(ctx: Context) -> str:
    """Ask for a colour."""
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    answer = await ctx.ask("Which colour shall it be?", schema)
    return str(answer)


@afoot.tool(destructive=True)
async def delete_backups(older_than_days: int = 30) -> str:
    """Delete old backups."""
    return f"deleted what was older than {older_than_days} days"


@afoot.tool(destructive=True)
async def wipe_words(words: list[Any]) -> str:
    """Wipe whatever it is given."""
    return f"wiped {len(words)}"


@afoot.tool
async def speak_oddly(
    sleep_s: float = 20.0, times: int = 1, words: str = "", ctx: Context | None = None
) -> str:
    """Report what no page should take at its word, so many times over."""
    if ctx:
        ctx.report(1, 3, (words or HOSTILE) * times)
    await asyncio.sleep(sleep_s)
    return (words or HOSTILE) * times


@afoot.tool(ceiling=600)
async def branch_out(step_s: float, ctx: Context) -> str:
    """Begin one call below after the other."""
    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(ctx.call("wait_for_index", {}))
            await asyncio.sleep(step_s)
    return "all of it"


@afoot.tool(ceiling=600, idle=600)
async def survey(width: int, depth: int, leaf_s: float = 20.0, ctx: Context | None = None) -> str:
    """A tree of calls: so many below each, so deep."""
    if ctx is None or depth < 1:
        if ctx:
            ctx.report(1, 2, "a leaf")
        await asyncio.sleep(leaf_s)
        return "a leaf"
    below = {"width": width, "depth": depth - 1, "leaf_s": leaf_s}
    await asyncio.gather(*(ctx.call("survey", below) for _ in range(width)))
    return "all of it"


@afoot.resource("note://{number}")
async def note(number: int, ctx: Context) -> str:
    """A note, which is looked for line by line."""
    for line in range(10):
        ctx.report(line, 10, f"line {line}")
        await asyncio.sleep(0.1)
    return f"note {number}"


@afoot.prompt
def greet(name: str, tone: str = "kindly") -> str:
    """Greet somebody."""
    return f"Greet {name} {tone}."
