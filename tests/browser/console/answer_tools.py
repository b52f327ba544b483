"""Tools that ask a person in every way there is, and give every kind of content."""

import asyncio
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

import afoot
from afoot import Content, Context

DOT: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
FORM: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 40},
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 18},
        "sure": {"type": "boolean", "default": True},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]},
        "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}, "default": ["tu"]},
    },
    "required": ["name", "age"],
}  # fmt: skip


class Box(BaseModel):
    """Something with two sides."""

    width: int
    label: str | None = None


@afoot.tool
async def book(ctx: Context) -> dict[str, Any]:
    """Ask for everything a form can ask for."""
    reply = await ctx.ask("Who comes, and when? <b>bold</b>", FORM)
    return {"action": reply.action, "content": reply.content}


@afoot.tool(destructive=True)
async def erase(path: str, force: bool = False) -> str:
    """Erase a file."""
    return f"erased {path}, {force}"


@afoot.tool(destructive=True)
async def burn(path: str, more: dict[str, Any]) -> str:
    """Burn a file."""
    return f"burnt {path}, {len(more)}"


@afoot.tool(destructive=True)
async def pack(boxes: list[Box], limit: int | None = None) -> str:
    """Pack boxes."""
    return f"{len(boxes)} boxes, {limit}"


@afoot.tool
async def ask_folders(ctx: Context) -> str:
    """Ask what only the caller can tell."""
    return str(await ctx.roots())


def is_open(gate: str) -> bool:
    """Whether the file is there, if one is named."""
    return not gate or Path(gate).exists()


@afoot.tool
async def step(
    n: int = 5, fail: bool = False, step_s: float = 0.05, gate: str = "", ctx: Context | None = None
) -> str:
    """Take steps, half of them once a file is there if one is named, and perhaps stumble."""
    for number in range(n):
        if ctx:
            ctx.report(number + 1, n, f"step {number + 1}")
        await asyncio.sleep(step_s)
        while ctx and number == n // 2 and not is_open(gate):
            await asyncio.sleep(0.05)
            ctx.alive()
    if fail:
        raise afoot.ToolError.unavailable("the floor gave way")
    return "there"


@afoot.tool
async def show(kind: str) -> Any:
    """Give some kind of content."""
    hostile = "<img src=x onerror='globalThis.owned = true'>\x1b[31m\u202egnp.exe\x00"
    if kind == "table":
        return [{"name": hostile, "size": 1}, {"name": "b", "size": 2}]
    if kind == "long":
        return "0123456789abcdef" * 40_000
    if kind == "deep":
        return {"a": {"b": {"c": {"d": [1, {"e": hostile}]}}}, "big": 12345678901234567890}
    return hostile


@afoot.tool
async def show_media() -> list[Content]:
    """Give an image, a sound, links and an embedded resource."""
    return [
        Content.image(b64decode(DOT)),
        Content.audio(b"RIFF", "audio/wav"),
        Content.link("https://example.com:8443/x", "a page"),
        Content.link("javascript:globalThis.owned = true", "a trap"),
        Content.resource("file:///notes", text="inside", mime="text/plain"),
    ]


@afoot.tool
async def log_in(user: str, password: str, note: str = "") -> str:
    """Say no more of a secret than how long it is."""
    return f"{user}, {len(password)}, {note}"


@afoot.tool
async def store_key(name: str, key: Annotated[str, Field(json_schema_extra={"format": "password"})]) -> str:
    """Take a secret, as its schema says."""
    return f"{name}, {len(key)}"


@afoot.tool
async def gather(n: int, ctx: Context) -> str:
    """Have others take a step; one stumbles."""
    for _ in range(n):
        await ctx.call("step", {"n": 1, "step_s": 0})
    with suppress(afoot.ToolError):
        await ctx.call("step", {"n": 1, "fail": True, "step_s": 0})
    return "gathered"
