"""The tools of `afoot demo`: each shows one thing, and is short enough to be copied as a first tool."""

import asyncio
from dataclasses import dataclass
from typing import Literal

import afoot
from afoot import Context, ToolError

try:
    from tqdm import tqdm as bar
except ImportError:  # afoot sees the progress bars of rich as well
    from rich.progress import track as bar


@afoot.tool(read_only=True)
async def export_pages(pages: int = 120, every_s: float = 0.25, ctx: Context | None = None) -> dict[str, int]:
    """Export pages: a tool that reports how far it is.

    Args:
        pages: how many there are
        every_s: seconds that one takes
    """
    for page in range(1, pages + 1):
        await asyncio.sleep(every_s)
        if ctx:
            ctx.report(page, pages, f"page {page}")
    return {"pages": pages}


@afoot.tool(read_only=True)
async def resize_photos(photos: int = 200, every_s: float = 0.1) -> str:
    """Resize photos: a tool that knows nothing of afoot; its progress bar is seen anyway.

    Args:
        photos: how many there are
        every_s: seconds that one takes
    """
    for _ in bar(range(photos), "resizing"):
        await asyncio.sleep(every_s)
    return f"{photos} photos are smaller now"


@dataclass
class Trip:
    """The form for the person who books."""

    seat: Literal["window", "aisle"]
    people: int = 1
    insured: bool = False


@afoot.tool
async def book_trip(city: str = "Lisbon", ctx: Context | None = None) -> str:
    """Book a trip: a tool that asks a person; its limits do not count meanwhile.

    Args:
        city: the destination
    """
    if ctx is None:
        return f"booked {city} for 1, window seat"
    answer = await ctx.ask(f"Which seats to {city}?", Trip)
    if not answer:
        return "nothing was booked"
    trip = answer.content
    return f"booked {city} for {trip.people}, {trip.seat} seat, {'' if trip.insured else 'not '}insured"


@afoot.tool(destructive=True)
async def delete_backups(older_than_days: int = 30, ctx: Context | None = None) -> str:
    """Delete old backups: a destructive tool, so each call is approved first.

    Args:
        older_than_days: how old they must be
    """
    if ctx:
        ctx.report(message="deleting (this is a demo: nothing is deleted)")
    return f"deleted what was older than {older_than_days} days"


@afoot.tool
async def sync_mail(folders: int = 12, every_s: float = 1.5, ctx: Context | None = None) -> str:
    """Sync mail: a tool that fails halfway; the error says how far it came.

    Args:
        folders: how many there are
        every_s: seconds that one takes
    """
    for folder in range(1, folders + 1):
        await asyncio.sleep(every_s)
        if folder > folders * 2 / 3:
            raise ToolError.unavailable("the mail server hung up", retry_after=60)
        if ctx:
            ctx.report(folder, folders, f"folder {folder}")
    return f"{folders} folders are up to date"


@afoot.tool(read_only=True)
async def nightly_report(shops: int = 3, every_s: float = 0.5, ctx: Context | None = None) -> str:
    """Report on all shops: a tool that calls other tools; their progress is its progress.

    Args:
        shops: how many there are
        every_s: seconds that a page of a shop's report takes
    """
    sizes = [20 * shop for shop in range(1, shops + 1)]
    if ctx is None:
        found = [await export_pages(pages, every_s) for pages in sizes]
    else:
        below = [ctx.call("export_pages", {"pages": n, "every_s": every_s}, weight=n) for n in sizes]
        found = await asyncio.gather(*below)
    return f"{sum(one['pages'] for one in found)} pages of {shops} shops"
