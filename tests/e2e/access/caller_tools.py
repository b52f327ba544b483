"""Tools that tell who calls them, and one that not everybody may call."""

from typing import Any

import afoot
from afoot import Context


def _told(ctx: Context) -> dict[str, Any]:
    caller = ctx.caller
    return {
        "id": caller.id,
        "name": caller.name,
        "version": caller.version,
        "scopes": sorted(caller.scopes),
        "team": caller.claims.get("team"),
        "surface": caller.surface,
        "headers": dict(ctx.headers),
    }


@afoot.tool
async def who(ctx: Context) -> dict[str, Any]:
    """Tell who calls."""
    return _told(ctx)


@afoot.tool
def who_in_a_thread(ctx: Context) -> dict[str, Any]:
    """Tell who calls."""
    return _told(ctx)


@afoot.tool(isolate=True)
def who_in_a_child(ctx: Context) -> dict[str, Any]:
    """Tell who calls."""
    return _told(ctx)


@afoot.tool
def tattle(ctx: Context) -> str:
    """Print, report and log all that is known of the caller."""
    print(f"the key is {ctx.headers['x-api-key']}")
    ctx.report(1, 2, f"with key {ctx.headers['x-api-key']}")
    ctx.log(f"{ctx.caller!r} {ctx!r}")
    return "said"


@afoot.tool(scopes=["billing"])
def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"
