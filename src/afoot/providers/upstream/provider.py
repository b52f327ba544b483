"""`Upstream` connects to an MCP server: it is the provider of its tools and of everything else it has.

It implements `managed_server.ServerConnection`. Callers share one `McpConnection`, or each has its own
where the settings say `per_caller`; each is kept up by a `Reconnecting`. A tool call is run by
`tool_call.UpstreamCall`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from afoot.config.settings import Server
from afoot.core.facts import NOTHING, Answer, Limits, Logged, Question, Result
from afoot.core.ports import Run, RunnerStart, Tool, Work
from afoot.errors import RunnerDied, ToolError, UnknownName
from afoot.providers.arguments import check_arguments
from afoot.providers.content import clean_line, clean_text
from afoot.providers.upstream.connection import PROBE_S, McpConnection, negotiate
from afoot.providers.upstream.liveness import PING_S, PONG_S, LivenessProbe
from afoot.providers.upstream.oauth.tokens import TokenSource
from afoot.providers.upstream.reachable_clients import ReachableClients
from afoot.providers.upstream.reconnect import Reconnecting
from afoot.providers.upstream.server_lists import OnChange, ServerLists, ServerOffers
from afoot.providers.upstream.subscriptions import Subscriptions
from afoot.providers.upstream.tool_call import LOGGER_CHARS, TEXT_CHARS, UnfitEra, UpstreamCall
from afoot.providers.upstream.tool_definitions import UpstreamTool, server_limits
from afoot.providers.upstream.transport.server_log import MAX_READ_CHARS, ServerLog
from afoot.providers.upstream.transport.stdio import MAX_BYTES, StdioTransport
from afoot.providers.upstream.transport.transport import Request, Transport
from afoot.wire import passthrough
from afoot.wire.client import incoming, outgoing
from afoot.wire.client.incoming import ReceivedLog, ReceivedProgress
from afoot.wire.client.outgoing import Dialect, as_tool_error
from afoot.wire.jsonrpc import Fault

if TYPE_CHECKING:
    import httpx2

    from afoot.providers.upstream.transport.inprocess import ServerObject

SHARED: Final = ""  # stands for the caller of the connection that callers share
MAX_CALLER_CONNECTIONS: Final = 64  # beyond it the one that was not used for the longest time is closed
# Of these, for sets of extensions that one caller declares, or all callers without a connection of their own:
# each may be a process. Twice as many may be in use at once; a request for one more is refused.
MAX_EXTENSION_SETS: Final = 8
CLOSE_S: Final = 10.0
LEVEL_S: Final = 5.0  # to wait until a server has taken a log level
MAX_READINGS: Final = (
    2  # of tools that change while they are read, before a call: a restless server is called, too
)
LIST_CHANGED: Final = (
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
)


class ConnectionKey(NamedTuple):
    """The key of a connection to a server: its caller, the MCP extensions that it declares, and its era.

    An empty era is the one that the server is spoken to in.
    """

    caller: str = SHARED
    extensions: bytes = bytes(outgoing.LISTED_EXTENSIONS)
    era: str = ""


LISTING: Final = ConnectionKey()  # the shared connection, which is asked what the server has

Ask = Callable[[Question], Awaitable[Answer]]


class ServerOptions(Struct, frozen=True):
    """Options of a connection that the gateway sets, and not the settings of the server."""

    restart_limit: int = 3  # attempts in a row
    max_bytes: int = MAX_BYTES  # of one message
    probe_s: float = PROBE_S
    ping_s: float = PING_S
    pong_s: float = PONG_S
    auth: "httpx2.Auth | None" = None
    tokens: TokenSource | None = None  # the login to it, if `auth` is not given
    target: object = None  # a server object to run in this process
    clean: Callable[[str], str] = str  # takes the secrets out of what is logged (S4)
    # The clients that the server reaches outside calls.
    clients: ReachableClients = field(default_factory=ReachableClients)


class QuestionListener:
    """The maker of a request that is no tool call. It answers questions; progress and logs are dropped."""

    def __init__(self, caller: str, ask: Ask) -> None:
        self.caller = caller
        self._ask = ask
        self._keys = count(1)

    def key(self) -> str:
        """Return a name for the next question."""
        return f"u{next(self._keys)}"

    def ask(self, question: Question) -> Awaitable[Answer]:
        """Ask the maker of the request."""
        return self._ask(question)

    def progress(self, told: ReceivedProgress) -> None:
        """Drop the progress: nobody would see it."""

    def log(self, said: ReceivedLog) -> None:
        """Drop the log message: nobody would see it."""

    def hindered(self, by: str, hint: str) -> None:
        """Drop the hint: the lookup has a clock of its own."""


class Upstream:
    """A server with one set of settings: connected when it is needed, and again when it died."""

    def __init__(
        self,
        name: str,
        server: Server,
        limits: Limits = Limits(),  # noqa: B008
        options: ServerOptions = ServerOptions(),  # noqa: B008
    ) -> None:
        self.name = name
        self.server = server
        self.limits = server_limits(server, limits)
        self._options = options
        self._server_log = ServerLog(name, options.clean)
        self._offers = ServerOffers(server, self.limits, self._server_log)
        self._connections: dict[ConnectionKey, Reconnecting] = {}  # the least recently used stands first
        self._last_connection: McpConnection | None = None  # that lists were asked of; it may be lost
        self._subscriptions = Subscriptions(self._offers.refresh_soon)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._object: ServerObject | None = None  # that all its connections share, if it is one

    @property
    def state(self) -> str:
        """idle, starting, ready, failed or stopped."""
        return self._reconnecting(LISTING).state

    @property
    def error(self) -> str:
        """The reason why the server failed or died, if it did."""
        return self._options.clean(self._reconnecting(LISTING).error)

    @property
    def era(self) -> str:
        """The version of the protocol of the last connection."""
        return self._last_connection.dialect.version if self._last_connection else ""

    @property
    def info(self) -> dict[str, Any]:
        """The server's name and version, as it says them."""
        return self._last_connection.info if self._last_connection else {}

    @property
    def instructions(self) -> str:
        """The server's instructions for models."""
        return self._last_connection.instructions if self._last_connection else ""

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities."""
        return self._last_connection.capabilities if self._last_connection else {}

    @property
    def pid(self) -> int | None:
        """The server's process, if it is a child of ours."""
        connection = self._reconnecting(LISTING).connection
        return connection.transport.pid if connection else None

    @property
    def starts(self) -> int:
        """The number of times the server was connected."""
        return self._reconnecting(LISTING).starts

    @property
    def up_since(self) -> float | None:
        """The time at which the server was connected; None while it is not."""
        return self._reconnecting(LISTING).up_since

    @property
    def logs(self) -> deque[tuple[float, str]]:
        """The server's last lines on stderr and in log messages, with the time."""
        return self._server_log.logs

    @property
    def counted(self) -> dict[str, int]:
        """The number of times the server broke the protocol, by kind."""
        return self._server_log.counted

    @property
    def refused(self) -> list[str]:
        """The tools of the server's list that cannot be offered, and why."""
        return self._offers.refused

    @property
    def lists(self) -> ServerLists:
        """The lists of everything that the server offers, to be stored and given to `remember`."""
        return self._offers.lists

    def tools(self) -> Sequence[Tool]:
        """Return the tools that can be called."""
        return tuple(found.tool for found in self._offers.tools.values())

    def digest(self, tool: str) -> str:
        """Return the digest of a tool's definition, as it is known now; empty if there is none."""
        found = self._offers.tools.get(tool)
        return found.tool.digest if found is not None else ""

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """Return what must be up before a call: the connection of this caller; None if it is up.

        It is up once the tools were read over it: the call is then judged by what they are now (A7).
        """
        extensions = self._options.clients.extensions_of(caller)
        judge = self._judging_key(caller, extensions, tool)
        connection = self._reconnecting(judge).connection
        is_current = connection is not None and self._is_current(connection, tool)
        if connection is not None and is_current and self._sender(judge, connection, extensions).connection:
            return None
        is_up = connection is not None and not is_current
        what = f"asking server {self.name} for its tools" if is_up else f"starting server {self.name}"
        return RunnerStart(what, partial(self._wait_until_listed, caller, extensions, tool))

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """Return the work of one attempt; raises UnknownName, or ToolError.validation naming the fields."""
        found = self._offers.tools.get(tool)
        if found is None:
            raise UnknownName("tool", tool, self._offers.tools)
        check_arguments(found.schema, arguments)
        return partial(self._run_tool, found, arguments if arguments else Raw(b"{}"))

    async def open(self) -> None:
        """Connect if needed, and fetch everything that the server offers; raises ToolError."""
        reconnecting = self._reconnecting(LISTING)
        if reconnecting.state == "stopped":
            reconnecting.state = "idle"
        was_up = reconnecting.connection is not None
        connection = await reconnecting.up()
        # A connection that was just opened is being asked for its lists already.
        listing = None if was_up else self._offers.listing
        error = await asyncio.shield(listing or self._offers.refresh(connection))
        if error is not None:
            raise error if isinstance(error, ToolError) else ToolError.unavailable(str(error))

    async def close(self) -> None:
        """Close all connections; calls in flight fail."""
        await self._subscriptions.close()
        await asyncio.gather(*(one.close() for one in list(self._connections.values())))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S)

    async def forget(self, caller: str) -> None:
        """Close the connections that were this caller's own: the caller is gone."""
        own = [key for key in self._connections if key.caller == caller != SHARED]
        await asyncio.gather(*(self._connections.pop(key).close() for key in own))

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, caller: str = "", ask: Ask | None = None
    ) -> dict[str, Any]:
        """Send a request that is no tool call, and return its result as it came.

        Raises Fault, RunnerDied, ToolError. `ask` answers questions of a server of 2025; without it they are
        refused.
        """
        meta = (params or {}).get("_meta", {})
        declared = meta.get(passthrough.CAPABILITIES_KEY, {})
        listener = QuestionListener(caller, ask) if ask else None
        request = Request(method, params or {}, listener, {passthrough.CAPABILITIES_KEY: declared})
        extensions = passthrough.sorted_extensions(declared.get("extensions", {}))
        try:
            result = await self._request_in_either_era(request, caller, extensions)
        except RunnerDied as died:
            if died.began:
                raise
            result = await self._request_in_either_era(request, caller, extensions)  # the server never saw it
        try:
            return msgspec.json.decode(result, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            what = f"server {self.name} answered {method} with something that is no result"
            raise ToolError.internal(what, code="protocol") from None

    def listen(self, callback: OnChange) -> Callable[[], None]:
        """Call back with what changed: `tools`, `resources`, `prompts`, or one `resource` with its URI."""
        return self._offers.listen(callback)

    async def subscribe(self, uri: str) -> None:
        """Be told when this resource changes; raises Fault, ToolError."""
        await self._subscriptions.add(await self._reconnecting(LISTING).up(), uri)

    async def unsubscribe(self, uri: str) -> None:
        """Be told of this resource no more; raises Fault, ToolError. A server that is down is not asked."""
        await self._subscriptions.remove(self._reconnecting(LISTING).connection, uri)

    async def renew_log_level(self) -> None:
        """Tell the server the level of logs that its clients want now (U5)."""
        up = [(key, one.connection) for key, one in self._connections.items() if one.connection is not None]
        await asyncio.gather(*(self._send_log_level(key.caller, connection) for key, connection in up))

    def tell_roots_changed(self, caller: str) -> None:
        """Tell the server that the roots of a caller changed, if it has asked for roots."""
        for key, reconnecting in self._connections.items():
            connection = reconnecting.connection
            if key.caller in (SHARED, caller) and connection is not None and connection.has_asked_roots:
                connection.tell("notifications/roots/list_changed")

    def remember(self, lists: ServerLists) -> None:
        """Take these lists, which were stored before, until the server is asked again."""
        self._offers.set_lists(lists)

    def _shared_key(self, extensions: Raw, listing: McpConnection) -> ConnectionKey:
        """Return which shared connection is for callers that declare these extensions (U8).

        It is the listing connection if each request says for itself what its caller declares, as on
        2026-07-28, or if the server shows no interest in extensions; else there is one for each set.
        """
        cares = bool(extensions) or self._offers.has_apps or "extensions" in listing.capabilities
        if listing.dialect.is_modern or not cares:
            return LISTING
        return ConnectionKey(SHARED, bytes(extensions))

    def _judging_key(self, caller: str, extensions: Raw, tool: str = "") -> ConnectionKey:
        """Return the connection by whose tools calls of a caller, or of a tool, are judged."""
        is_own = self.server.per_caller and caller != SHARED
        key = ConnectionKey(caller, bytes(extensions)) if is_own else LISTING
        needs_2026 = self.server.era == "auto" and tool in self._offers.lists.needs_2026
        return key._replace(era=outgoing.VERSION_2026) if needs_2026 else key

    def _sender(self, judge: ConnectionKey, connection: McpConnection, extensions: Raw) -> Reconnecting:
        """Return the connection on which requests of a caller with these extensions are sent."""
        key = self._shared_key(extensions, connection) if judge == LISTING else judge
        return self._reconnecting(key)

    async def _connection_for(self, caller: str, extensions: Raw) -> McpConnection:
        """Return the connection for a caller that declares these extensions, once it is up."""
        judge = self._judging_key(caller, extensions)
        connection = await self._reconnecting(judge).up()
        return await self._sender(judge, connection, extensions).up()

    async def _request_in_either_era(self, request: Request, caller: str, extensions: Raw) -> Raw:
        """Send a request that may be repeated, and once more in 2026-07-28 if a server of both needs that.

        It does if it refuses the request or its own result, and if it asks something: a caller of 2026-07-28
        can be asked only by the result. The retry of such a round is known by its fields.
        """
        connection = await self._connection_for(caller, extensions)
        key = self._judging_key(caller, extensions)
        is_retry = any(field in request.params for field in ("requestState", "inputResponses"))
        if connection.dialect.is_modern or not (is_retry and await self._speaks_2026(key)):
            try:
                result = await connection.request(request)
                if not request.was_asked or not await self._speaks_2026(key):
                    return result
            except Fault as fault:
                is_unfit = request.was_asked or outgoing.is_for_2026(fault)
                if connection.dialect.is_modern or not is_unfit or not await self._speaks_2026(key):
                    raise
        modern = await self._reconnecting(key._replace(era=outgoing.VERSION_2026)).up()
        return await modern.request(request)

    def _reconnecting(self, key: ConnectionKey) -> Reconnecting:
        """Return a connection, which becomes the most recently used."""
        reconnecting = self._connections.pop(key, None)
        if reconnecting is None:
            self._make_room_for(key)
            connect = partial(self._connect, key)
            reconnecting = Reconnecting(
                self.name,
                connect,
                self.limits.start_s,
                self._options.restart_limit,
                is_remote=bool(self.server.url),
            )
        self._connections[key] = reconnecting
        return reconnecting

    def _make_room_for(self, key: ConnectionKey) -> None:
        """Close the connection longest unused, if there are many; one that is in use is never closed.

        Raises ToolError if a caller has too many in use, by declaring other extensions in each request.
        """
        own = [one for one in self._connections if one != LISTING]
        same = [one for one in own if one.caller == key.caller]
        for group, most in ((same, MAX_EXTENSION_SETS), (own, MAX_CALLER_CONNECTIONS)):
            unused = (one for one in group if one in self._connections and not self._connections[one].is_used)
            if len(group) >= most and (oldest := next(unused, None)) is not None:
                self._spawn(self._connections.pop(oldest).close())
        in_use = sum(one in self._connections for one in same)
        if key != LISTING and not key.era and in_use >= 2 * MAX_EXTENSION_SETS:
            text = (
                f"server {self.name} has {in_use} connections in use for sets of extensions; try again later"
            )
            raise ToolError.unavailable(text, code="too_many_connections")

    async def _wait_until_listed(self, caller: str, extensions: Raw, tool: str) -> None:
        """Wait until the connection of a caller is up, and its tools were read; raises ToolError."""
        judge = self._judging_key(caller, extensions, tool)
        connection = await self._listed_connection(self._reconnecting(judge), tool)
        if tool not in self._offers.tools:
            raise self._missing_tool(tool)
        await self._sender(judge, connection, extensions).up()

    async def _listed_connection(self, reconnecting: Reconnecting, tool: str) -> McpConnection:
        """Return a connection that has this tool as it is offered: read since it is up, and since it changed.

        A server that dies meanwhile is started again, with the waits of `Reconnecting`. Raises ToolError.
        """
        while True:
            connection = await reconnecting.up()
            error = None
            for _ in range(MAX_READINGS):
                if error is not None or self._is_current(connection, tool):
                    break
                error = await asyncio.shield(self._offers.refresh_tools(connection))
            if error is None:
                return connection
            if not isinstance(error, RunnerDied):
                raise error if isinstance(error, ToolError) else ToolError.unavailable(str(error))
            connection.mark_lost(str(error))  # also where only a stream broke: no tight loop asks it again
            if reconnecting.state == "failed":
                raise reconnecting.failure()

    def _is_current(self, connection: McpConnection, tool: str) -> bool:
        """Whether a tool is offered as this connection has it; callers' own connections may differ."""
        return connection.is_listed and connection.digests.get(tool, "") == self.digest(tool)

    async def _run_tool(self, tool: UpstreamTool, arguments: Raw, run: Run) -> Result:
        extensions = passthrough.declared_extensions(run.more)
        judge = self._judging_key(run.caller, extensions, tool.tool.inner)
        reconnecting = self._reconnecting(judge)
        connection = reconnecting.connection
        if connection is None or connection.listed < 0:
            connection = await self._listed_connection(reconnecting, tool.tool.inner)
        digest = connection.digests.get(tool.tool.inner)
        if digest is None:
            raise self._missing_tool(tool.tool.inner)
        if digest != tool.tool.digest:  # it is not any more what was asked about and checked (A7)
            raise RunnerDied(f"server {self.name} has changed its tool {tool.tool.inner}", began=False)
        sender = self._sender(judge, connection, extensions)
        connection = sender.connection or await sender.up()
        try:
            return await UpstreamCall(tool, arguments, run, connection).run()
        except UnfitEra as unfit:
            if not await self._speaks_2026(judge):
                raise as_tool_error(unfit.fault, self.name) from None
            raise self._move_to_2026(tool.tool, unfit) from None

    async def _speaks_2026(self, key: ConnectionKey) -> bool:
        """Whether the server can be spoken to in 2026-07-28 as well, and the settings leave that to us."""
        if self.server.era != "auto" or key.era:
            return False
        modern = key._replace(era=outgoing.VERSION_2026)
        try:
            await self._reconnecting(modern).up()
        except ToolError:
            await self._connections.pop(modern).close()
            return False
        return True

    def _move_to_2026(self, tool: Tool, unfit: UnfitEra) -> Exception:
        """Call this tool in 2026-07-28 from now on; returns the error of the call that found it out.

        That call is made again if the server had refused it, or if it may be repeated. The next attempt
        compares the tool with its definition on the other connection (A7).
        """
        self._offers.set_needs_2026([*self._offers.lists.needs_2026, tool.inner])
        what = f"tool {tool.inner} of server {self.name} needs {outgoing.VERSION_2026}"
        self._server_log.note(f"{what}: {unfit.fault.message}")
        if not unfit.began or (tool.trusted and (tool.read_only or tool.idempotent)):
            return RunnerDied(what, began=unfit.began)
        unfit.fault.message += f" ({what}; it is called so from now on)"
        return as_tool_error(unfit.fault, self.name)

    def _missing_tool(self, tool: str) -> ToolError:
        return ToolError.not_found(f"server {self.name} has no tool {tool} any more")

    async def _connect(self, key: ConnectionKey) -> McpConnection:
        transport = self._make_transport()
        dialect = Dialect(outgoing.VERSION_2025, _client_info(), extensions=Raw(key.extensions))
        on_notification = partial(self._on_notification, key)
        connection = McpConnection(transport, dialect, self._server_log, on_notification)
        connection.is_shared = key.caller == SHARED
        connection.list_roots = partial(self._options.clients.list_roots, key.caller)
        try:
            await transport.open(connection.receive, connection.mark_lost)
            await negotiate(connection, key.era or self.server.era, self._options.probe_s)
        except Fault as fault:
            if key.era:  # the server has changed: it is asked again whether it needs this era
                self._offers.set_needs_2026(())
            self._spawn(connection.close())
            raise as_tool_error(fault, self.name) from None
        except BaseException:
            self._spawn(connection.close())
            raise
        probe = LivenessProbe(connection, self._spawn, self._options.ping_s, self._options.pong_s)
        connection.watch = probe.watch
        connection.on_log = partial(self._show_log, key.caller, connection)
        if key == LISTING or self._last_connection is None:
            self._last_connection = connection
        if self._object is not None and self.server.era == "auto" and not connection.dialect.is_modern:
            known = {*self._offers.lists.needs_2026, *self._object.tools_with_rounds}
            self._offers.set_needs_2026(sorted(known))
        self._spawn(self._send_log_level(key.caller, connection))
        if key == LISTING:
            self._offers.refresh(connection)
            self._spawn(self._subscriptions.attach(connection))
        return connection

    def _make_transport(self) -> Transport:
        """Return a transport, not open yet. HTTP and the SDK are slow to import, so only where needed."""
        server, options = self.server, self._options
        if options.target is not None or server.module:
            from afoot.providers.upstream.transport.inprocess import InProcessTransport, ServerObject

            if self._object is None:
                self._object = ServerObject(server, self._server_log, options.target)
            return InProcessTransport(self._object)
        if server.url:
            from afoot.providers.upstream.transport.http import BearerAuth, HttpTransport

            auth = BearerAuth(options.tokens) if options.auth is None and options.tokens else options.auth
            return HttpTransport(server, self._server_log, options.max_bytes, auth)
        if server.command:
            return StdioTransport(server, self._server_log, options.max_bytes)
        raise ToolError.validation(f"server {self.name} has neither command, url nor module")

    async def _send_log_level(self, caller: str, connection: McpConnection) -> None:
        """Tell a server of the handshake era the level that clients want; on 2026-07-28 each call says it."""
        level = self._options.clients.log_level(caller)
        is_told = level is None or level == connection.log_level or connection.dialect.is_modern
        if level is None or is_told or "logging" not in connection.capabilities:
            return
        connection.log_level = level
        try:
            async with asyncio.timeout(LEVEL_S):
                await connection.request(Request("logging/setLevel", {"level": level}))
        except (Fault, RunnerDied, ToolError, TimeoutError) as error:
            self._server_log.note(f"it was not told the log level {level}: {error or 'no answer'}")

    def _show_log(self, caller: str, connection: McpConnection, said: ReceivedLog) -> None:
        """Send a log message that belongs to no call to the clients it can be for.

        While calls of several callers run, it may be about any of them, so it stays in the server's log.
        """
        callers = connection.waiting_callers() if caller == SHARED else {caller}
        if len(callers) > 1:
            return
        text = self._options.clean(said.text[:MAX_READ_CHARS])
        more = said.more if text == said.text else NOTHING  # which may say the same
        logger = clean_line(said.logger, LOGGER_CHARS) or self.name
        line = Logged(0.0, clean_text(text, TEXT_CHARS), said.level, logger, more)
        self._options.clients.show_log(line, next(iter(callers), SHARED))

    def _on_notification(self, key: ConnectionKey, method: str, params: Raw) -> None:
        if key.caller == SHARED and key != LISTING:
            return  # the listing connection is told the same
        reconnecting = self._connections.get(key)
        connection = reconnecting.connection if reconnecting is not None else None
        if method in LIST_CHANGED and connection is not None:
            connection.list_changes += method == LIST_CHANGED[0]
            self._offers.refresh_soon(connection)
        elif method == "notifications/resources/updated":
            self._offers.tell("resource", incoming.read_updated(params)[0])

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@lru_cache(maxsize=1)
def _client_info() -> Raw:
    with suppress(PackageNotFoundError):
        return Raw(msgspec.json.encode({"name": "afoot", "version": version("afoot")}))
    return Raw(b'{"name":"afoot","version":"0"}')
