"""`ServerOffers` keeps the lists of a server fresh: its tools, resources, templates and prompts.

`fetch_other_lists` reads lists page by page.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from afoot.config.settings import Server
from afoot.core.facts import Limits
from afoot.errors import RunnerDied, ToolError
from afoot.providers.content import is_deeper
from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.tool_definitions import (
    MAX_DEPTH,
    ReadTools,
    ToolReading,
    UpstreamTool,
    read_tools,
)
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import Request
from afoot.wire.client import incoming
from afoot.wire.jsonrpc import METHOD_NOT_FOUND, Fault

MAX_PAGES: Final = 1000  # of one list: a server whose cursors never end must not hang us
MAX_LIST_BYTES: Final = 8 * 1024 * 1024  # of one list; what a server lists beyond is not offered
MAX_TOOLS: Final = 5_000  # of one server: the catalog takes 20 us for each whenever one of them changes
MAX_ENTRIES: Final = 20_000  # of a list of resources, templates or prompts
# Of one page: 32 million entries of one byte took 17 s to tell apart, before any of them could be counted.
MAX_PAGE_COMMAS: Final = 500_000
SLICE_ENTRIES: Final = 100  # of a list that are read before all others have their turn: 1 to 2 ms
SLICE_BYTES: Final = 128 * 1024  # or so many bytes of them
REFRESH_PAUSE_S: Final = (0.1, 10.0)  # before changed lists are read again; doubling while they keep changing
REFRESH_PAUSE_FACTOR: Final = 20  # times the work of the last reading: one server takes 5 % of the loop
APP_SCHEME: Final = "ui://"  # of the pages of MCP Apps

Items = list[dict[str, Any]]
OnChange = Callable[[str, str | None], object]  # tools, resources, prompts; or resource and its URI

_log = logging.getLogger("afoot.upstream")


class ServerLists(Struct):
    """The lists of everything that a server offers, unchanged. They are stored in the state folder.

    `needs_2026`: tools that were found to work in 2026-07-28 alone, at a server that speaks both eras.
    """

    tools: list[Raw] = []
    resources: Items = []
    templates: Items = []
    prompts: Items = []
    needs_2026: list[str] = []

    @property
    def has_apps(self) -> bool:
        """Whether a tool or a resource is of an MCP App."""
        uris = (str(one.get("uri", "")) for one in self.resources)
        return any(APP_SCHEME.encode() in bytes(tool) for tool in self.tools) or any(
            uri.startswith(APP_SCHEME) for uri in uris
        )

    def changed_kinds(self, other: "ServerLists") -> list[str]:
        """Return the kinds in which another one differs."""
        kinds = {
            "tools": [bytes(tool) for tool in self.tools] != [bytes(tool) for tool in other.tools],
            "resources": (self.resources, self.templates) != (other.resources, other.templates),
            "prompts": self.prompts != other.prompts,
        }
        return [kind for kind, is_other in kinds.items() if is_other]


class ServerOffers:
    """The newest lists that are known, read from the server or stored before, and their listeners."""

    def __init__(self, server: Server, limits: Limits, server_log: ServerLog) -> None:
        self.lists = ServerLists()
        self.tools: dict[str, UpstreamTool] = {}
        self.refused: list[str] = []  # tools that cannot be offered, and why
        self._server = server
        self._limits = limits
        self._server_log = server_log
        self.has_apps = False  # whether it has pages of MCP Apps
        self._callbacks: list[OnChange] = []
        self.listing: asyncio.Task[Exception | None] | None = None  # the last reading of the lists
        self._connection: McpConnection | None = None  # the one that is asked
        self._timer: asyncio.TimerHandle | None = None  # until changed lists are read
        self._pause = REFRESH_PAUSE_S[0]
        self._refreshed_at = 0.0
        self._work_s = 0.0  # that the last reading took of the loop, with everything that followed from it

    def listen(self, callback: OnChange) -> Callable[[], None]:
        """Call back on changes, until the function that is returned is called."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    def set_lists(self, lists: ServerLists, read: ReadTools | None = None) -> None:
        """Take these lists, and tell listeners which of them are new; `read`: their tools, if read before."""
        changed_kinds = self.lists.changed_kinds(lists)
        self.lists = lists
        if "tools" in changed_kinds:
            reading = read or read_tools(lists.tools, self._server, self._limits, self._server_log)
            self.tools, self.refused = reading
        self.has_apps = lists.has_apps
        for kind in changed_kinds:
            self.tell(kind, None)

    def set_needs_2026(self, tools: Sequence[str]) -> None:
        """Note which tools work in 2026-07-28 alone, and tell listeners, so that it is stored."""
        if list(tools) != self.lists.needs_2026:
            self.lists = replace(self.lists, needs_2026=list(tools))
            self.tell("tools", None)

    def refresh(self, connection: McpConnection) -> "asyncio.Task[Exception | None]":
        """Read the lists, unless that is being done; the task's result is the error, if there was one."""
        if self.listing is None or self.listing.done() or self._connection is not connection:
            self._connection = connection
            self.listing = asyncio.get_running_loop().create_task(self._fetch_all(connection))
        return self.listing

    def refresh_tools(self, connection: McpConnection) -> "asyncio.Task[Exception | None]":
        """Read the tools over this connection, unless that is being done; its result is as for `refresh`."""
        if connection.listing is None or connection.listing.done():
            connection.listing = asyncio.get_running_loop().create_task(
                self._fetch(self._fetch_tools(connection))
            )
        return connection.listing

    def refresh_soon(self, connection: McpConnection) -> None:
        """Read the lists soon: the server says that they changed. If it says so all the time, later."""
        loop = asyncio.get_running_loop()
        self._connection = connection
        if self._timer is None:
            is_calm = loop.time() - self._refreshed_at > 2 * self._pause
            self._pause = refresh_pause(self._pause, self._work_s, is_calm=is_calm)
            self._timer = loop.call_later(self._pause, self._on_refresh_due)

    def tell(self, kind: str, uri: str | None) -> None:
        """Tell listeners that something changed."""
        for callback in tuple(self._callbacks):
            try:
                callback(kind, uri)
            except Exception:  # a broken listener hurts nobody else
                _log.exception("server %s: a listener failed", self._server_log.server)

    def _on_refresh_due(self) -> None:
        self._timer = None
        connection = self._connection
        if connection is None or connection.lost is not None:
            return
        self._refreshed_at = asyncio.get_running_loop().time()
        self._work_s = 0.0
        if self.listing is not None and not self.listing.done():
            self.refresh_soon(connection)
        else:
            self.refresh(connection)

    async def _fetch_all(self, connection: McpConnection) -> Exception | None:
        """Read the tools, which a call may wait for, and then all other lists."""
        error = await asyncio.shield(self.refresh_tools(connection))
        return await self._fetch(self._fetch_others(connection)) if error is None else error

    async def _fetch_tools(self, connection: McpConnection) -> None:
        changes = connection.list_changes
        is_promised = "tools" in connection.capabilities
        definitions = await _fetch_pages(connection, "tools/list", "tools", is_promised, MAX_TOOLS)
        tools = self.tools
        if self.lists.changed_kinds(replace(self.lists, tools=definitions)):
            reading = ToolReading(self._server, self._limits, self._server_log)
            for part in slices(definitions):
                with self._work():
                    reading.add(part)
                await asyncio.sleep(0)
            tools = reading.found
            with self._work():  # the lists of this moment: another connection may have read others meanwhile
                self.set_lists(replace(self.lists, tools=definitions), (tools, reading.refused))
        connection.listed = changes
        connection.digests = {name: found.tool.digest for name, found in tools.items()}

    async def _fetch_others(self, connection: McpConnection) -> None:
        lists = await fetch_other_lists(connection)
        with self._work():
            self.set_lists(replace(lists, tools=self.lists.tools, needs_2026=self.lists.needs_2026))

    @contextmanager
    def _work(self) -> Iterator[None]:
        """Add the block to the work of this reading, in processor time; it may not wait for anything."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._work_s += time.thread_time() - begun

    async def _fetch(self, reading: Awaitable[None]) -> Exception | None:
        """Read lists; returns the error, if there was one: then they stay as they were."""
        try:
            async with asyncio.timeout(self._limits.start_s):
                await reading
        except TimeoutError:
            late = f"did not list what it has within {self._limits.start_s:g} s (raise start_s)"
            error: Exception = ToolError.unavailable(f"server {self._server_log.server} {late}")
        except (Fault, RunnerDied, ToolError, RecursionError) as wrong:
            error = wrong
        else:
            return None
        self._server_log.note(f"its lists could not be read: {error}", logging.WARNING)
        return error


async def fetch_other_lists(connection: McpConnection) -> ServerLists:
    """Read everything but tools that the server says it has; raises Fault, RunnerDied, ToolError."""
    offered = connection.capabilities
    lists = ServerLists()
    if "resources" in offered:
        lists.resources = await _fetch_dicts(connection, "resources/list", "resources", True)
        lists.templates = await _fetch_dicts(
            connection, "resources/templates/list", "resourceTemplates", False
        )
    if "prompts" in offered:
        lists.prompts = await _fetch_dicts(connection, "prompts/list", "prompts", True)
    return lists


def refresh_pause(last_s: float, work_s: float, *, is_calm: bool) -> float:
    """Return the pause before changed lists are read again, by the last one and by the work that it took."""
    pause = REFRESH_PAUSE_S[0] if is_calm else min(2 * last_s, REFRESH_PAUSE_S[1])
    return max(pause, REFRESH_PAUSE_FACTOR * work_s)


def slices(items: list[Raw]) -> Iterator[list[Raw]]:
    """The entries of a list in parts that are each read in about 2 ms."""
    part: list[Raw] = []
    size = 0
    for item in items:
        part.append(item)
        size += len(item)
        if len(part) >= SLICE_ENTRIES or size >= SLICE_BYTES:
            yield part
            part = []
            size = 0
    if part:
        yield part


async def _fetch_dicts(connection: McpConnection, method: str, key: str, is_promised: bool) -> Items:
    """Return the entries of a list that are objects and can be read."""
    found: Items = []
    for part in slices(await _fetch_pages(connection, method, key, is_promised, MAX_ENTRIES)):
        found += _decode_dicts(part)
        await asyncio.sleep(0)
    return found


async def _fetch_pages(
    connection: McpConnection, method: str, key: str, is_promised: bool, max_entries: int
) -> list[Raw]:
    """Return all pages of a list; nothing, if the server does not know it and did not promise it."""
    found: list[Raw] = []
    cursor: str | None = None
    size = 0
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        try:
            result = await connection.request(Request(method, {"cursor": cursor} if cursor else {}))
        except Fault as fault:
            if fault.code == METHOD_NOT_FOUND or not is_promised:
                return found
            raise
        if bytes(result).count(b",") > MAX_PAGE_COMMAS:
            _count_too_large(connection, method, f"{MAX_PAGE_COMMAS} commas in a page", len(found))
            return found
        items, cursor = incoming.read_list_page(result, key)
        for item in items:
            size += len(item)
            if size > MAX_LIST_BYTES or len(found) == max_entries:
                bound = f"{MAX_LIST_BYTES} bytes" if size > MAX_LIST_BYTES else f"{max_entries} entries"
                _count_too_large(connection, method, bound, len(found))
                return found
            found.append(Raw(bytes(item)))  # a copy: it would keep its whole page in memory
        if cursor is None:
            return found
        if cursor in seen:
            break
        seen.add(cursor)
    connection.server_log.count_anomaly("endless_list", method)
    return found


def _count_too_large(connection: McpConnection, method: str, bound: str, offered: int) -> None:
    text = f"{method}: over {bound}, so {offered} entries are offered"
    connection.server_log.count_anomaly("list_too_large", text)


def _decode_dicts(items: list[Raw]) -> Items:
    """The entries that are objects and can be read."""
    found: Items = []
    for item in items:
        with suppress(msgspec.DecodeError, RecursionError):
            if isinstance(value := msgspec.json.decode(item), dict) and not is_deeper(value, MAX_DEPTH):
                found.append(value)
    return found
