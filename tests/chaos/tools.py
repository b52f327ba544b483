"""Tools that leave a mark when they begin and when they are done, and stay until they are let go.

They return `Any`, so that they publish no output schema: their definitions are those of the stored history.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import afoot
from afoot import Context

MARKS = Path(os.environ.get("E2E_MARKS", "."))
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
STAY_S = 280.0


def mark(tag: str, text: str) -> None:
    """Leave a line, which is on the disk when this returns."""
    with (MARKS / tag).open("a") as file:
        file.write(f"{text} {os.getpid()}\n")


def is_let_go(tag: str) -> bool:
    """Whether whoever chose the tag lets its tools end."""
    return (MARKS / f"{tag}.go").exists()


async def stay(tag: str, ctx: Context, stay_s: float) -> Any:
    """Begin, report, and wait to be let go; stay_s at most."""
    mark(tag, "begun")
    end = time.monotonic() + stay_s
    while time.monotonic() < end and not is_let_go(tag):
        ctx.report(message="here")
        await asyncio.sleep(0.01)
    mark(tag, "done")
    return tag


@afoot.tool(idempotent=True)
async def safe(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """May be run again."""
    return await stay(tag, ctx, stay_s)


@afoot.tool
async def unsafe(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """May not."""
    return await stay(tag, ctx, stay_s)


@afoot.tool(concurrency=1)
async def narrow(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """One at a time."""
    return await stay(tag, ctx, stay_s)


@afoot.tool(approval="ask")
async def risky(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """Asks before."""
    return await stay(tag, ctx, stay_s)


async def asked(tag: str, ctx: Context) -> Any:
    """Begin, ask, and be done."""
    mark(tag, "begun")
    told = await ctx.ask("Who?", NAME, key="who")
    mark(tag, f"done {told.content['name'] if told.content else ''}")
    return tag


@afoot.tool(idempotent=True)
async def ask_safe(tag: str, ctx: Context) -> Any:
    """Asks while it runs, and may be run again."""
    return await asked(tag, ctx)


@afoot.tool
async def ask_unsafe(tag: str, ctx: Context) -> Any:
    """Asks while it runs, and may not."""
    return await asked(tag, ctx)


async def deaf(tag: str) -> Any:
    """Begin, and go on whoever says stop."""
    mark(tag, "begun")
    while not is_let_go(tag):
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            mark(tag, "told")
    return tag


async def held(tag: str, ctx: Context) -> Any:
    """Report until it is let go."""
    while not is_let_go(tag):
        ctx.report(message="here")
        await asyncio.sleep(0.01)
    mark(tag, "done")
    return tag


@afoot.tool
async def stubborn(tag: str, ctx: Context) -> Any:
    """Does not stop when it is told to."""
    return await deaf(tag)


def stay_put(tag: str, stay_s: float) -> Any:
    """As `stay`, without a loop."""
    mark(tag, "begun")
    end = time.monotonic() + stay_s
    while time.monotonic() < end and not is_let_go(tag):
        time.sleep(0.01)
    mark(tag, "done")
    return tag


@afoot.tool(isolate=True, idempotent=True)
def boxed_safe(tag: str, stay_s: float = STAY_S) -> Any:
    """In a child process, and may be run again."""
    return stay_put(tag, stay_s)


@afoot.tool(isolate=True)
def boxed_unsafe(tag: str, stay_s: float = STAY_S) -> Any:
    """In a child process, and may not."""
    return stay_put(tag, stay_s)


@afoot.tool(isolate=True, concurrency=1)
def boxed_narrow(tag: str, stay_s: float = STAY_S) -> Any:
    """In a child process, one at a time."""
    return stay_put(tag, stay_s)


async def stepped(tag: str, ctx: Context) -> Any:
    """Save how far it is, and begin there the next time."""
    mark(tag, f"begun from {ctx.resumed_from or 0}")
    ctx.checkpoint((ctx.resumed_from or 0) + 1)
    return await held(tag, ctx)


@afoot.tool(idempotent=True)
async def steps(tag: str, ctx: Context) -> Any:
    """May be run again, from where it was."""
    return await stepped(tag, ctx)


@afoot.tool(isolate=True, idempotent=True)
async def boxed_steps(tag: str, ctx: Context) -> Any:
    """The same in a child process."""
    return await stepped(tag, ctx)


@afoot.tool(isolate=True, idempotent=True)
async def boxed_ask_safe(tag: str, ctx: Context) -> Any:
    """Asks in a child process, and may be run again."""
    return await asked(tag, ctx)


@afoot.tool(isolate=True)
async def boxed_ask_unsafe(tag: str, ctx: Context) -> Any:
    """Asks in a child process, and may not."""
    return await asked(tag, ctx)


async def answered(tag: str, ctx: Context) -> Any:
    """Begin, ask, and go on once that is answered."""
    mark(tag, "begun")
    told = await ctx.ask("Who?", NAME, key="who")
    mark(tag, f"told {told.content['name'] if told.content else ''}")
    return await held(tag, ctx)


@afoot.tool(idempotent=True)
async def told_safe(tag: str, ctx: Context) -> Any:
    """Goes on after an answer, and may be run again."""
    return await answered(tag, ctx)


@afoot.tool(isolate=True, idempotent=True)
async def boxed_told_safe(tag: str, ctx: Context) -> Any:
    """The same in a child process."""
    return await answered(tag, ctx)


@afoot.tool(isolate=True)
async def boxed_stubborn(tag: str, ctx: Context) -> Any:
    """Does not stop when it is told to, in a child process."""
    return await deaf(tag)


@afoot.tool(idempotent=True, on_disconnect="detach")
async def lasting(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """Runs on for a caller that left."""
    return await stay(tag, ctx, stay_s)


@afoot.tool(isolate=True, idempotent=True, on_disconnect="detach")
def boxed_lasting(tag: str, stay_s: float = STAY_S) -> Any:
    """The same in a child process."""
    return stay_put(tag, stay_s)


@afoot.tool(idempotent=True, task="optional")
async def task_safe(tag: str, ctx: Context, stay_s: float = STAY_S) -> Any:
    """May be a task, and may be run again."""
    return await stay(tag, ctx, stay_s)


@afoot.tool(isolate=True, idempotent=True, task="optional")
def boxed_task_safe(tag: str, stay_s: float = STAY_S) -> Any:
    """The same in a child process."""
    return stay_put(tag, stay_s)
