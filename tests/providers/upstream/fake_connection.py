"""A connection that a test scripts: what it offers, whether it opens, and who uses it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw, json

from afoot.config.tables import Server
from afoot.core.facts import Limits, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import ToolError
from afoot.providers.upstream.server_lists import OnChange, ServerLists


class Pretend:
    """A line to a server that is not there: its tools are the words of its command."""

    def __init__(self, name: str, server: Server, limits: Limits) -> None:
        self.name, self.server, self.limits = name, server, limits
        self.state, self.error, self.era = "idle", "", ""
        self.instructions, self.pid = "", None
        self.starts, self.up_since = 0, None
        self.info: dict[str, Any] = {"name": name, "version": "1"}
        self.capabilities: dict[str, Any] = {}
        self.resources: list[dict[str, Any]] = []
        self.templates: list[dict[str, Any]] = []
        self.prompts: list[dict[str, Any]] = []
        self.logs = [(1.0, f"{name} said something")]
        self.counted: dict[str, int] = {}
        self.refused: list[str] = []
        self.names: list[str] = []
        self.opened = self.closed = 0
        self.gone = asyncio.Event()
        self.asked: list[tuple[str, str]] = []
        self.gate = asyncio.Event()
        self._listeners: list[OnChange] = []

    def tools(self) -> Sequence[Tool]:
        definitions = [(name, Raw(json.encode({"name": name}))) for name in self.names]
        return [Tool(name, self.name, raw, self.limits) for name, raw in definitions]

    def digest(self, tool: str) -> str:
        return ""

    def prepare(self, tool: str, arguments: Raw) -> Work:
        async def work(run: Run) -> Result:
            if tool == "waits":
                await self.gate.wait()
            return Result(Raw(json.encode([{"type": "text", "text": f"{tool} on {self.server.command}"}])))

        return work

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        return None if self.state == "ready" else RunnerStart(f"starting server {self.name}", self.open)

    @property
    def lists(self) -> ServerLists:
        return ServerLists([Raw(json.encode(name)) for name in self.names])

    def remember(self, lists: ServerLists) -> None:
        self.names = [json.decode(tool, type=str) for tool in lists.tools]

    async def renew_log_level(self) -> None:
        self.asked.append(("renew_log_level", ""))

    def tell_roots_changed(self, caller: str) -> None:
        self.asked.append(("tell_roots_changed", caller))

    async def forget(self, caller: str) -> None:
        self.asked.append(("forget", caller))

    def listen(self, callback: OnChange) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def heard(self, kind: str, uri: str | None = None) -> None:
        """Tell listeners of a change."""
        for listener in list(self._listeners):
            listener(kind, uri)

    async def open(self) -> None:
        self.opened += 1
        await asyncio.sleep(0)
        if self.server.command == "broken":
            self.state, self.error = "failed", "it is broken"
            raise ToolError.unavailable(self.error)
        if self.server.command == "stuck":
            self.state = "starting"
            await asyncio.Event().wait()
        self.state, self.era = "ready", "2026-07-28"
        self.names = self.server.args or ["one"]

    async def close(self) -> None:
        self.state, self.closed = "stopped", self.closed + 1
        self.gone.set()

    async def request(
        self, method: str, params: dict[str, Any], caller: str = "", ask: object = None
    ) -> dict[str, Any]:
        if method == "waits":
            await self.gate.wait()
        return {"by": self.server.command}

    async def subscribe(self, uri: str) -> None:
        self.asked.append(("subscribe", uri))

    async def unsubscribe(self, uri: str) -> None:
        self.asked.append(("unsubscribe", uri))
