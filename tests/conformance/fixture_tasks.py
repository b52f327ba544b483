"""The tools that the suite's scenarios about tasks call: names, arguments and answers are the suite's."""

import asyncio
from typing import Final

import afoot
from afoot import Context, ToolError
from tests.conformance.fixture import NAME, form

# Long after the moment in which a request may still end without a task.
WORK_S: Final = 1.0
CONFIRM: Final = form({"confirm": {"type": "boolean"}}, required=("confirm",))


@afoot.tool(task="forbidden")
async def greet(name: str) -> str:
    """Answers at once, and is never a task."""
    return f"Hello, {name}!"


@afoot.tool(task="optional")
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes so long."""
    await asyncio.sleep(seconds)
    return f"computed {label}"


@afoot.tool(task="required")
async def failing_job() -> str:
    """Says after a while that it failed."""
    await asyncio.sleep(WORK_S)
    raise ToolError("This job fails for testing")


@afoot.tool(task="optional")
async def protocol_error_job() -> str:
    """Crashes."""
    await asyncio.sleep(WORK_S)
    raise RuntimeError("a crash for testing")


@afoot.tool(task="optional")
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Works, then asks."""
    await asyncio.sleep(WORK_S)
    reply = await ctx.ask(f"Delete {filename}?", CONFIRM)
    return f"{reply.action} {filename}"


@afoot.tool(task="optional")
async def multi_input(ctx: Context) -> str:
    """Works, then asks twice at once."""
    await asyncio.sleep(WORK_S)
    name, sure = await asyncio.gather(ctx.ask("What is your name?", NAME), ctx.ask("Sure?", CONFIRM))
    return f"{name.action} {sure.action}"


@afoot.tool(name="test_tool_with_task", task="required")
async def ask_before_the_task(ctx: Context) -> str:
    """Asks before it does anything, and is a task from then on."""
    reply = await ctx.ask("What is your name?", NAME, key="user_name")
    await asyncio.sleep(WORK_S)
    return f"Hello, {reply.content['name']}!"
