"""A server as it is listed: what it is to be, and its connection of today, which may be replaced."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Raw
from msgspec.structs import replace

from afoot.core.facts import Answer, Limits, Question, Result
from afoot.core.ports import Run, Start, Tool, Work
from afoot.errors import AfootError, ToolError, UnknownName
from afoot.providers.roster import Wanted
from afoot.providers.upstream.lists import Lists
from afoot.providers.upstream.oauth_access import Access
from afoot.wire.jsonrpc import Fault

log = logging.getLogger("afoot.servers")

Heard = Callable[[str, str | None], object]  # tools, resources, prompts; or resource and its address
Forget = Callable[[], None]
Ask = Callable[[Question], Awaitable[Answer]]
KINDS = ("tools", "resources", "prompts")


class Line(Protocol):
    """A connection to a server, as an upstream has it."""

    @property
    def state(self) -> str: ...  # idle, starting, ready, failed, stopped
    @property
    def error(self) -> str: ...
    @property
    def era(self) -> str: ...
    @property
    def info(self) -> Mapping[str, Any]: ...
    @property
    def instructions(self) -> str: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def logs(self) -> Sequence[tuple[float, str]]: ...
    @property
    def counted(self) -> Mapping[str, int]: ...
    @property
    def resources(self) -> Sequence[dict[str, Any]]: ...
    @property
    def templates(self) -> Sequence[dict[str, Any]]: ...
    @property
    def prompts(self) -> Sequence[dict[str, Any]]: ...
    @property
    def lists(self) -> Lists: ...

    def tools(self) -> Sequence[Tool]: ...
    def prepare(self, tool: str, arguments: Raw) -> Work: ...
    def start(self, tool: str, caller: str) -> Start | None: ...
    def remember(self, lists: Lists) -> None: ...
    def listen(self, callback: Heard) -> Forget: ...
    def open(self) -> Awaitable[None]: ...
    def close(self) -> Awaitable[None]: ...
    def forget(self, caller: str) -> Awaitable[None]: ...
    def request(
        self, method: str, params: dict[str, Any], caller: str = "", ask: Ask | None = None
    ) -> Awaitable[dict[str, Any]]: ...
    def subscribe(self, uri: str) -> Awaitable[None]: ...
    def unsubscribe(self, uri: str) -> Awaitable[None]: ...


class Hold:
    """A connection, and how many use it: it is closed when the last one has finished."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.users = 0
        self.free = asyncio.Event()
        self.free.set()

    def __enter__(self) -> Line:
        self.users += 1
        self.free.clear()
        return self.line

    def __exit__(self, *_: object) -> None:
        self.users -= 1
        if not self.users:
            self.free.set()


class Listed:
    """One server by its name. It is the provider of its tools whichever connection it has."""

    def __init__(self, name: str, wanted: Wanted) -> None:
        self.name, self.wanted = name, wanted
        self.why = wanted.why  # why it cannot be used, or did not open
        self.limits: Limits | None = None  # where nothing nearer is set
        self.hold: Hold | None = None
        self.access: Access | None = None  # the login to it, if it can have one
        self._listeners: list[Heard] = []
        self._forget: Forget | None = None
        self._subscribed: set[str] = set()

    @property
    def state(self) -> str:
        """disabled, unusable; else as its connection is: idle, starting, ready, failed, stopped."""
        if self.hold is not None:
            return self.hold.line.state
        return "unusable" if self.why else "disabled"

    @property
    def error(self) -> str:
        """What is wrong with it."""
        if self.hold is None or self.hold.line.state == "ready":
            return self.why if self.hold is None else ""
        return (self.hold.line.error or self.why).removeprefix(f"server {self.name}: ")

    @property
    def login(self) -> str:
        """needed, logged in; nothing for a server that asked for no login."""
        return self.access.state if self.access is not None else ""

    @property
    def line(self) -> Line:
        """Its connection; raises ToolError where it has none."""
        if self.hold is None:
            raise ToolError.unavailable(f"server {self.name} is {self.state}{self.why and f': {self.why}'}")
        return self.hold.line

    @property
    def era(self) -> str:
        """The protocol it speaks, once that is known."""
        return self.hold.line.era if self.hold else ""

    @property
    def instructions(self) -> str:
        """What it tells models about itself."""
        return self.hold.line.instructions if self.hold else ""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it can do, once that is known."""
        return self.hold.line.capabilities if self.hold else {}

    @property
    def resources(self) -> Sequence[dict[str, Any]]:
        """Its resources."""
        return self.hold.line.resources if self.hold else ()

    @property
    def templates(self) -> Sequence[dict[str, Any]]:
        """Its resource templates."""
        return self.hold.line.templates if self.hold else ()

    @property
    def prompts(self) -> Sequence[dict[str, Any]]:
        """Its prompts."""
        return self.hold.line.prompts if self.hold else ()

    def tools(self) -> Sequence[Tool]:
        """Its tools, as far as they are known; on the limits of today, whenever it was connected."""
        found = self.hold.line.tools() if self.hold else ()
        if self.limits is None or all(tool.limits == self.limits for tool in found):
            return found
        return [replace(tool, limits=self.limits) for tool in found]

    def start(self, tool: str, caller: str) -> Start | None:
        """What must be up before a tool of it can run."""
        start = self.line.start(tool, caller)
        return start and Start(start.what, partial(self._started, tool, caller))

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one call. One that still waits when the connection is replaced runs on the new one."""
        hold = self.hold
        work = self.line.prepare(tool, arguments)

        async def counted(run: Run) -> Result:
            now = self.hold
            if now is None:
                raise ToolError.unavailable(f"server {self.name} was removed")
            with now as line:
                return await (work if now is hold else await self._anew(line, tool, arguments))(run)

        return counted

    async def _started(self, tool: str, caller: str) -> None:
        """Wait until its connection is up: if it is replaced meanwhile, the new one."""
        while (hold := self.hold) is not None:
            start = hold.line.start(tool, caller)
            try:
                if start is not None:
                    await start.done()
            except ToolError:
                if self.hold is hold:
                    raise
            if self.hold is hold:
                return
        raise ToolError.unavailable(f"server {self.name} was removed")

    async def _anew(self, line: Line, tool: str, arguments: Raw) -> Work:
        """The work on another connection than it was prepared for, which may have to be asked first."""
        try:
            return line.prepare(tool, arguments)
        except UnknownName:
            await line.open()
        try:
            return line.prepare(tool, arguments)
        except UnknownName:
            raise ToolError.not_found(f"server {self.name} has no tool {tool} any more") from None

    async def request(
        self, method: str, params: dict[str, Any], caller: str = "", ask: Ask | None = None
    ) -> dict[str, Any]:
        """Ask it for anything else; the answer is as it comes."""
        hold = self.hold
        if hold is None:
            return await self.line.request(method, params, caller, ask)  # raises
        with hold as line:
            return await line.request(method, params, caller, ask)

    def listen(self, callback: Heard) -> Forget:
        """Be told of changes, whichever connection it has; the answer stops it."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    async def subscribe(self, uri: str) -> None:
        """Be told of changes of a resource."""
        await self.line.subscribe(uri)
        self._subscribed.add(uri)

    async def unsubscribe(self, uri: str) -> None:
        """No more."""
        self._subscribed.discard(uri)
        await self.line.unsubscribe(uri)

    def connect(self, line: Line | None) -> Hold | None:
        """Use this connection from now on; gives the one before, which may still be used by some."""
        before, self.hold = self.hold, None if line is None else Hold(line)
        if self._forget is not None:
            self._forget()
        self._forget = None if line is None else line.listen(self._heard)
        for kind in KINDS if before is not None else ():
            self._heard(kind, None)
        return before

    async def resubscribe(self) -> None:
        """Ask a new connection for what the old one was asked for."""
        for uri in sorted(self._subscribed):
            try:
                await self.line.subscribe(uri)
            except (AfootError, Fault) as error:
                log.warning("server %s: no more news of %s: %s", self.name, uri, error)

    def _heard(self, kind: str, uri: str | None) -> None:
        for listener in list(self._listeners):
            listener(kind, uri)
