"""Further tools that the models of hosts call: one with a picture, one with a megabyte."""

import base64
from typing import Any, Final

import afoot
from afoot import Content

PNG: Final = base64.b64decode(  # a red point
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


@afoot.tool(read_only=True)
async def picture() -> list[Any]:
    """Draws a red point."""
    return ["a point:", Content.image(PNG, "image/png")]


@afoot.tool(read_only=True)
async def megabyte() -> str:
    """Says much."""
    return "begin " + "0123456789" * 100_000 + " end"
