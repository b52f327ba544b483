"""`run` is the composition root: it assembles a gateway and its surfaces, and closes them at the end.

`serve_until` does the same on a loop that is there already. `gateway.asgi` uses its steps: `new_state`,
`open_access`, `route_surfaces` and `wind_down`.
"""

import asyncio
import gc
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from afoot import __version__
from afoot.bridge.stdio import open_stdio
from afoot.config import state_folder
from afoot.config.client_limits import stored_client_limits
from afoot.config.redactor import make_redactor
from afoot.config.settings import Settings, home
from afoot.errors import CallerError, StoreError
from afoot.gateway import Gateway, Target, recover_calls
from afoot.gateway.log_redaction import redact_logs
from afoot.gateway.malloc import return_memory_early
from afoot.gateway.reload import ConfigSource, follow_config, follow_tools
from afoot.providers.browser.extension import ExtensionLinks
from afoot.providers.browser.extension_files import ExtensionCopies, link_url
from afoot.providers.forked_signals import add_signal_handler
from afoot.providers.functions.context import current_context
from afoot.serve.access.browser_sessions import BrowserSession, BrowserSessions
from afoot.serve.access.fetch import fetch
from afoot.serve.access.guard import STDIO_CALLER, Guard
from afoot.serve.access.tokens import NamedToken, NamedTokens, TokenChecks, TokenIssuer
from afoot.serve.api.router import ApiApp
from afoot.serve.extension.socket import LinkApp
from afoot.serve.gateway_state import GatewayState
from afoot.serve.http_server.idle_exit import IdleExit
from afoot.serve.http_server.listeners import Listeners, open_listeners
from afoot.serve.mcp.asgi import App
from afoot.serve.mcp.http import McpHttp
from afoot.serve.mcp.sessions_2025 import ENDED_FOLDER, EndedSessions, Sessions2025
from afoot.serve.mcp.stdio import StdioServer
from afoot.serve.router import Router
from afoot.store.lock import StoreInUse, StoreLock

log = logging.getLogger("afoot")

DESCRIPTORS = 65_536
GOING_AWAY = 1001  # the close code of a WebSocket whose server stops
HAND_OVER_S = 2.0  # for Redis to have the facts of calls that go on at another gateway
LAST_WAIT_S = 0.5  # for the tasks and the threads that are left when all calls have had their grace
SERVERS_READY_S = 3.0  # at most this long the first caller waits for the tools of servers that start

Started = Callable[[state_folder.GatewayAddress, GatewayState], None]


class ServePlan(Struct, frozen=True):
    """The tools to serve, and the surfaces to serve them on."""

    settings: Settings
    targets: tuple[Target, ...]
    stdio: bool = False
    reload: bool = False
    source: ConfigSource = ConfigSource()  # its files are followed while the gateway runs
    linger: bool = False  # end when nobody has needed it for a while
    bare: bool = False  # whether it may start with nothing to serve yet


def run(plan: ServePlan, started: Started) -> None:
    """Serve until told to stop; `started` gets address and state. Raises CallerError, StoreError.

    Ends the process where a tool would keep it: a task that swallows its cancel, a thread that does not end.
    """
    return_memory_early()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        _run_to_end(runner, runner.get_loop().create_task(serve_until(plan, started)))
        if not (runner.run(_end_tasks()) and _end_threads()):
            log.warning("tools that did not stop are left behind")
            logging.shutdown()
            os._exit(0)


def _run_to_end(runner: asyncio.Runner, serving: "asyncio.Task[None]") -> None:
    """Run the loop until the gateway has ended, whatever tasks of tools throw out of it.

    A task that ends with SystemExit or KeyboardInterrupt stops its loop. If a tool has started the task, its
    call is told and the loop goes on. If the task is `serving`, or was cancelled by Ctrl-C at the start, the
    gateway ends.
    """
    while not serving.done():
        try:
            runner.run(_wait_for(serving))
        except (SystemExit, KeyboardInterrupt):
            if serving.done() or serving.cancelling():
                raise
            log.exception("a task that a tool started raised this")
    serving.result()


async def _wait_for(task: "asyncio.Task[None]") -> None:
    await task


async def _end_tasks() -> bool:
    """Cancel every other task, and end the loop's pool of threads; whether that could be done in time."""
    tasks: set[asyncio.Task[Any]] = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    # This one is never cancelled: it would then wait for the threads without a limit.
    tasks.add(asyncio.create_task(asyncio.get_running_loop().shutdown_default_executor()))
    return not (await asyncio.wait(tasks, timeout=LAST_WAIT_S))[1]


def _end_threads() -> bool:
    """Wait for the threads that would keep this process from its end; whether all ended in time."""
    until = time.monotonic() + LAST_WAIT_S
    threads = [
        one for one in threading.enumerate() if one is not threading.current_thread() and not one.daemon
    ]
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


async def serve_until(plan: ServePlan, started: Started, told: asyncio.Event | None = None) -> None:
    """Serve until `told` is set; without it, until a signal comes, which only the main thread can wait for.

    Raises CallerError, StoreError.
    """
    _guard_secrets()
    wire = await open_stdio(plan.settings.max_body_bytes) if plan.stdio else None
    threading.excepthook = _log_thread_crash
    redact_logs(make_redactor(plan.settings).text)  # until the gateway knows the secrets of its servers
    settings = _own_history(plan.settings) if plan.stdio else plan.settings
    async with _gateway(plan, settings) as gateway:
        state = new_state(gateway)
        _keep_secrets(state)
        stop = _Stop(state, told)
        if told is None:
            stop.listen()
        if gateway.cluster is not None:
            gateway.cluster.on_declared_dead = lambda: stop.end("an operator declared this gateway dead")
        watching = [asyncio.create_task(follow_config(gateway, state, plan.source))]
        if plan.reload:
            watching.append(asyncio.create_task(follow_tools(gateway)))
        try:
            await gateway.servers.wait_until_opened(SERVERS_READY_S)
            if wire is not None:
                # The calls of all other callers wait for a gateway that those callers can reach.
                await _recover_calls(gateway, stop, STDIO_CALLER)
                await _stdio(state, stop, wire)
            else:
                # After the store: its lock tells whether another gateway runs. One that cannot listen leaves
                # the calls of the dead gateway to the next.
                listening = _listen(state, plan.settings)
                await _recover_calls(gateway, stop)
                if gateway.lock is not None:
                    gateway.lock.announce(state.url)
                if gateway.member is not None:
                    gateway.member.announce(state.public or state.url)
                await _http(state, stop, listening, started, plan.linger)
        finally:
            for task in watching:
                task.cancel()


def new_state(gateway: Gateway) -> GatewayState:
    """The state that the surfaces of an open gateway share."""
    state = GatewayState(
        gateway.engine,
        gateway.settings,
        __version__,
        state_folder.sealing_key() if gateway.member is None else gateway.member.keys.arguments_key,
        state_folder.operator_token(),
    )
    state.client_limits = stored_client_limits()
    state.cluster = gateway.cluster
    state.figures = gateway.figures
    state.servers = gateway.servers
    state.resource_servers = gateway.servers.list
    state.made_function_offers = gateway.function_offers
    state.browser = gateway.browser
    state.lines = ExtensionLinks(gateway.browser, lambda: state.settings.browser.link_grace_s)
    return state


async def _recover_calls(gateway: Gateway, stop: "_Stop", caller: str = "") -> None:
    """Go on with the calls of a gateway that died, unless this one is told to stop already."""
    if not stop.asked.is_set():
        await recover_calls(gateway, caller)


def _gateway(plan: ServePlan, settings: Settings) -> Gateway:
    gateway = Gateway(*plan.targets, settings=settings)
    gateway.address = "" if plan.stdio else settings.http
    gateway.bare = plan.bare
    gateway.keeps_figures = settings.metrics
    gateway.recovers = False
    return gateway


def _guard_secrets() -> None:
    """Keep the secrets of this process and of its state folder from other users (S6).

    A core dump would have all of them. The limit can be raised again by a child that wants dumps.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for file in state_folder.restore_modes():
        log.warning("%s: other users had rights there; they were taken away", file)


def _keep_secrets(state: GatewayState) -> None:
    """Take secrets out of the log."""
    engine = state.engine
    engine.redactor.recall({state.token})

    def clean(text: str) -> str:
        context = current_context.get()
        return engine.redact_log_line(text, "" if context is None else context.id)

    redact_logs(clean)


def _own_history(settings: Settings) -> Settings:
    """Settings with a history of its own where another process has the usual one: a host may start many."""
    if settings.store or settings.cluster.redis:
        return settings
    try:
        with StoreLock(home() / "calls.db"):
            return settings
    except StoreInUse as taken:
        own = str(home() / f"stdio-{os.getpid()}.db")
        log.warning("%s; this process keeps its history in %s", taken, own)
        return replace(settings, store=own)


async def _stdio(
    state: GatewayState, stop: "_Stop", wire: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    state.engine.policy.console = None
    client = asyncio.create_task(StdioServer(state, *wire).run())
    stopped = asyncio.create_task(stop.asked.wait())
    await asyncio.wait([client, stopped], return_when=asyncio.FIRST_COMPLETED)
    if stopped.done():
        await stop.wind_down()
    for task in (client, stopped):
        task.cancel()
    await asyncio.wait([client, stopped])


def _listen(state: GatewayState, settings: Settings) -> Listeners:
    """Open the sockets, if callers who come through them can prove who they are."""
    listening = open_listeners(settings, bool(_named_tokens().all()))
    open_access(state, listening.url, listening.public)
    return listening


def open_access(state: GatewayState, url: str, public: str) -> None:
    """Let callers prove who they are; `url` and `public` are the addresses of the gateway."""
    tokens = _named_tokens()
    state.browser_sessions = BrowserSessions(
        state_folder.StoredList("sessions.json", BrowserSession), time.time, tokens.is_valid
    )
    state.url = url
    state.public = public
    state.engine.policy.console = public or url
    state.token_checks = TokenChecks(tokens, state.engine.clock, _issuer(state), state.wakeups)


def _named_tokens() -> NamedTokens:
    return NamedTokens(state_folder.StoredList("tokens.json", NamedToken), time.time)


def _issuer(state: GatewayState) -> TokenIssuer | None:
    if not state.settings.access.issuer:
        return None
    from afoot.serve.access.jwt import JwtIssuer  # what checks signatures takes long to import

    return JwtIssuer(state.settings.access, f"{state.public}/mcp", fetch, time.time)


async def _http(
    state: GatewayState, stop: "_Stop", listening: Listeners, started: Started, lingers: bool
) -> None:
    application = _application(state, stop, listening, lingers)
    servers = listening.servers(application, state.settings)
    serving = asyncio.gather(*(http.serve(sockets=[one]) for http, one in servers))
    pid = os.getpid()
    address = state_folder.GatewayAddress(
        f"{state.url}/mcp", f"{state.url}/", state.token, pid, state_folder.process_birth(pid)
    )
    before = state_folder.announce_gateway(address)
    if before is not None:
        log.warning(
            "commands now go to this gateway; for the one at %s: AFOOT_URL and AFOOT_TOKEN", before.mcp
        )
    _pair(state.url)
    log.debug("%d file descriptors", _raise_descriptors())
    _relax_collector()
    started(address, state)
    try:
        stopped = asyncio.create_task(stop.asked.wait())
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
        await stop.wind_down()
        for http, _ in servers:
            http.should_exit = True
        await serving
        stopped.cancel()
    finally:
        for _, listener in servers:
            listener.close()
        state_folder.withdraw_gateway(address, before)
        if before is not None:
            _pair(before.console)


def _pair(url: str) -> None:
    """Write the gateway's address into the extension's folders; one that cannot be written is logged."""
    try:
        problems = ExtensionCopies().write_pairings(link_url(url), state_folder.link_key())
    except CallerError as error:
        problems = [str(error)]
    for problem in problems:
        log.warning("the browser's extension cannot be told where the gateway is: %s", problem)


def _application(state: GatewayState, stop: "_Stop", listening: Listeners, lingers: bool) -> App:
    sessions = new_sessions(state)
    application = route_surfaces(state, sessions, listening.hosts, listening.is_closed)
    if not lingers:
        return application
    engine = state.engine
    idle_exit = IdleExit(
        application, engine.clock, lambda: bool(engine.own_calls()) or sessions.anonymous() > 0
    )
    stop.after(idle_exit.wait_until_idle(state.settings.linger_s))
    return idle_exit


def new_sessions(state: GatewayState) -> Sessions2025:
    """The sessions of clients of the handshake era."""
    return Sessions2025(state, EndedSessions(home() / ENDED_FOLDER))


def route_surfaces(
    state: GatewayState, sessions: Sessions2025, hosts: frozenset[str], is_closed: bool
) -> Router:
    """All surfaces of a gateway, for requests to these hosts; `is_closed`: callers need a token."""
    guard = Guard(
        hosts,
        frozenset(state.settings.allow_origins),
        state.settings.mcp_token,
        state.token,
        state.browser_sessions,
        state.token_checks,
        is_closed,
        state.settings.access.local == "everyone",
    )
    assert state.lines is not None
    mcp = McpHttp(state, guard, sessions)
    return Router(guard, mcp, LinkApp(state, guard, state.lines), ApiApp(state, guard))


async def wind_down(state: GatewayState, reason: str) -> None:
    """Let calls finish for a while, cancel the rest, and end every open stream."""
    state.engine.closing = reason
    await state.engine.idle(state.settings.drain_s)
    if state.cluster is not None:
        try:
            await asyncio.wait_for(state.cluster.hand_over(), HAND_OVER_S)
        except (StoreError, TimeoutError) as error:
            log.warning("calls are not handed over to other gateways: %s", error)
    state.engine.close(reason)
    for wakeup in list(state.wakeups):
        wakeup.wake()
    await state.engine.idle(state.settings.cancel_grace_s)
    await asyncio.sleep(0.05)  # the last frames go out
    if state.lines is not None:  # after the calls, whose ends it carries
        state.lines.close(GOING_AWAY, "the gateway is stopping")


class _Stop:
    """Stops a gateway in order: no new calls, time to drain, then cancel with a reason."""

    def __init__(self, state: GatewayState, told: asyncio.Event | None = None) -> None:
        self._state = state
        self.asked = told or asyncio.Event()
        self._reason = "the gateway is shutting down"
        self._idle_exit: asyncio.Task[None] | None = None
        self._is_leaving = False

    def listen(self) -> None:
        """Stop in order at SIGTERM, Ctrl-C and when the terminal closes; at once at the second.

        The third ends it without the history. A gateway under `nohup` ignores SIGHUP, as it was told to.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                add_signal_handler(number, self._signalled, number)

    def after(self, over: Coroutine[Any, Any, None]) -> None:
        """Stop also when this coroutine ends: nobody needs the gateway any more."""
        self._idle_exit = asyncio.create_task(over)
        self._idle_exit.add_done_callback(lambda _: self.asked.set())

    def end(self, reason: str) -> None:
        """Stop in order, for this reason."""
        if not self.asked.is_set():
            self._reason = reason
            self.asked.set()

    async def wind_down(self) -> None:
        """Let calls finish for a while, cancel the rest, and end every open stream."""
        await wind_down(self._state, self._reason)

    def _signalled(self, number: int) -> None:
        if self.asked.is_set():
            self._leave(128 + number)
            return
        self._reason = f"the gateway was told to stop ({signal.Signals(number).name})"
        self.asked.set()
        if self._state.engine.own_calls():
            log.warning(
                "stopping: live calls have %g s to end; once more ends at once", self._state.settings.drain_s
            )

    def _leave(self, code: int) -> None:
        """End at once, but after the history says so: else the next gateway takes this one for dead."""
        if self._is_leaving:
            os._exit(code)
        self._is_leaving = True
        engine = self._state.engine
        engine.close(f"{self._reason}, and not to wait")
        engine.end_grace_of_all()
        engine.recorder.then(lambda: os._exit(code))


def _raise_descriptors() -> int:
    """Allow as many open files as the system does: every call in flight holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def _relax_collector() -> None:
    """Let the garbage collector skip all that is loaded by now, and look at the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """The function that makes event loops: uvloop's if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _log_thread_crash(crash: threading.ExceptHookArgs) -> None:
    """Log the crash of a thread that a tool started: the log has no secrets, and stderr would have them."""
    if crash.exc_type is not SystemExit and crash.exc_value is not None:
        name = "" if crash.thread is None else crash.thread.name
        log.error("thread %s crashed", name, exc_info=crash.exc_value)
