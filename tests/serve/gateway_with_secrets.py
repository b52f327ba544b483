"""A gateway whose tools get secrets, and call other tools."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.gateway import Gateway

TOOLS = '''
import asyncio
import logging
from typing import Annotated

import afoot
from afoot import Context
from pydantic import Field

Pin = Annotated[str, Field(json_schema_extra={"x-secret": True})]


@afoot.tool
async def sign_in(user: str, password: str, pin: Pin = "", ctx: Context | None = None) -> str:
    """Signs in."""
    if ctx:
        ctx.log(f"password={password}")
    logging.getLogger("afoot.test").warning("signs in with password=%s", password)
    return f"{len(password)} and {len(pin)} characters"


@afoot.tool(approval="ask")
async def transfer(amount: int, token: str) -> str:
    """Moves money."""
    return f"moved {amount} with {len(token)}"


@afoot.tool
async def ask_password(ctx: Context) -> str:
    """Asks for a secret."""
    form = {"type": "object", "properties": {"password": {"type": "string"}, "user": {"type": "string"}}}
    answer = await ctx.ask("who are you?", form)
    return f"{len(answer.content['password'])} characters"


@afoot.tool
async def child(fails: bool = False) -> str:
    """Ends at once."""
    if fails:
        raise afoot.ToolError("it fails")
    return "done"


@afoot.tool
async def wait() -> str:
    """Does nothing for long."""
    await asyncio.sleep(25)
    return "waited"


@afoot.tool
async def fan_out(n: int, waits: bool, ctx: Context) -> str:
    """Calls others, the last of which fails; then waits for one that does not end."""
    for number in range(n):
        try:
            await ctx.call("child", {"fails": number == n - 1})
        except afoot.ToolError:
            pass
    if waits:
        await ctx.call("wait", {})
    return "done"
'''


class Secretive(Gateway):
    """A gateway with these tools alone."""

    def command(self, *surface: str) -> list[str]:
        """The command that serves them."""
        tools = self.folder / "tools.py"
        tools.parent.mkdir(parents=True, exist_ok=True)
        tools.write_text(TOOLS)
        return [sys.executable, "-m", "afoot", "serve", str(tools), "--store", str(self.store), *surface]


@contextmanager
def secretive(folder: Path, **settings: object) -> Iterator[Secretive]:
    """A running one; settings as of the environment."""
    gateway = Secretive(folder, {"drain_s": 0.2, **settings})
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()
