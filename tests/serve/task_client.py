"""Tools that take their time, and a client of 2026-07-28 that knows tasks."""

import asyncio
from typing import Any

from afoot.core.ports import Run
from afoot.serve.gateway_state import GatewayState
from afoot.wire.results import TASKS_EXTENSION
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import Message, said
from tests.serve.raw_transports import Web, call, modern

ABLE: Message = {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}


async def walk(run: Run) -> str:
    """A tool that takes ten steps of a second."""
    for done in range(1, 11):
        await asyncio.sleep(1)
        run.report(done, 10, f"step {done}")
    return "there"


async def ask_late(run: Run) -> str:
    """A tool that works, then asks."""
    await asyncio.sleep(1)
    return said(await run.ask(form("sure")))


async def ask_first(run: Run) -> str:
    """A tool that asks before it does anything."""
    answer = await run.ask(form("sure"))
    await asyncio.sleep(5)
    return said(answer)


class Asker:
    """A client that knows tasks."""

    def __init__(self, gateway: GatewayState, can: Message | None = None, **headers: str) -> None:
        self.web = Web(gateway)
        self.can = ABLE if can is None else can
        self.headers = headers

    async def start(self, **meta: Any) -> Message:
        """Call the tool."""
        return await self.send(call(capabilities=self.can, **meta))

    async def about(self, method: str, task: str, **params: Any) -> Message:
        """Send a request about a task."""
        return await self.send(modern(method, {"taskId": task, **params}, capabilities=self.can))

    async def get(self, task: str) -> Message:
        """The task as it is."""
        found: Message = (await self.about("tasks/get", task))["result"]
        return found

    async def send(self, message: Message) -> Message:
        """The one answer to a message."""
        answered = (await self.web.ask(message, **self.headers)).messages
        return answered[-1]
