"""The composition root: puts a gateway and its surfaces together, runs them, and takes them down in order."""

import asyncio
import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from afoot import __version__, state
from afoot.changes import Source, follow_config, follow_tools
from afoot.config import Settings, home
from afoot.engine.recovery import recover
from afoot.engine.remarks import written
from afoot.engine.stopping import grace_over
from afoot.errors import CallerError
from afoot.gateway import Gateway
from afoot.observe.logs import guard
from afoot.pipes import pipes
from afoot.providers.browser.folder import Folders, link_url
from afoot.providers.browser.link import Lines
from afoot.providers.context import current
from afoot.serve.admission import Admission, Session
from afoot.serve.api import routes
from afoot.serve.ended import FOLDER, Ended
from afoot.serve.guard import PIPE, Guard
from afoot.serve.http import App, Http
from afoot.serve.linger import Linger
from afoot.serve.link import Links
from afoot.serve.listening import Listening, fetch, listen
from afoot.serve.sessions import Sessions
from afoot.serve.site import Site
from afoot.serve.stdio import Stdio
from afoot.serve.tokens import Token, Tokens
from afoot.serve.ways import Issuer, Ways
from afoot.store.lock import StoreLock, StoreTaken

log = logging.getLogger("afoot")

DESCRIPTORS = 65_536
GOING_AWAY = 1001  # of a WebSocket
SETTLED_S = 3.0  # so long the first caller may be kept from a list that has not all of its tools

Started = Callable[[state.Address, Site], None]


class Plan(Struct, frozen=True):
    """What to serve, and on which surfaces."""

    settings: Settings
    targets: tuple[str, ...]
    stdio: bool = False
    reload: bool = False
    source: Source = Source()  # followed: what changes there changes here
    linger: bool = False  # end when nobody has needed it for a while
    bare: bool = False  # browsers may be all that is served


def run(plan: Plan, started: Started) -> None:
    """Serve until told to stop; `started` gets address and site. Raises CallerError, StoreError."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(plan, started))


async def _serve(plan: Plan, started: Started) -> None:
    wire = await pipes(plan.settings.max_body_bytes) if plan.stdio else None
    settings = _own_history(plan.settings) if plan.stdio else plan.settings
    async with _gateway(plan, settings) as gateway:
        site = Site(gateway.engine, settings, __version__, state.key(), state.token())
        _keep_secrets(site)
        stop = _Stop(site)
        stop.listen()
        site.servers, site.shelves = gateway.servers, gateway.servers.list
        site.browser = gateway.browser
        site.lines = Lines(gateway.browser, lambda: site.settings.browser.link_grace_s)
        watching = [asyncio.create_task(follow_config(gateway, site, plan.source))]
        if plan.reload:
            watching.append(asyncio.create_task(follow_tools(gateway)))
        try:
            await gateway.servers.settled(SETTLED_S)
            if wire is not None:
                await _recover(site, stop, PIPE)  # those of all others wait for a gateway that they can reach
                await _stdio(site, stop, wire)
            else:
                listening = _listen(site, plan.settings)  # after the store, whose lock tells who else runs
                await _recover(site, stop)  # one that cannot listen leaves them to the next
                if gateway.lock is not None:
                    gateway.lock.announce(site.url)
                await _http(site, stop, listening, started, plan.linger)
        finally:
            for task in watching:
                task.cancel()


async def _recover(site: Site, stop: "_Stop", caller: str = "") -> None:
    """Settle what a gateway that died has left, unless this one is told to go already."""
    if not stop.asked.is_set():
        await recover(site.engine, caller)


def _gateway(plan: Plan, settings: Settings) -> Gateway:
    gateway = Gateway(*plan.targets, settings=settings)
    gateway.bare, gateway.recovers = plan.bare, False
    return gateway


def _keep_secrets(site: Site) -> None:
    """Have nothing in the log that is nobody else's business."""
    engine = site.engine
    engine.catalog.terms.redactor.recall({site.token})
    guard(lambda text: written(engine, "" if (ctx := current.get()) is None else ctx.id, text))


def _own_history(settings: Settings) -> Settings:
    """A host may start many processes: where the usual history is taken, this one keeps its own."""
    if settings.store:
        return settings
    try:
        with StoreLock(home() / "calls.db"):
            return settings
    except StoreTaken as taken:
        own = str(home() / f"stdio-{os.getpid()}.db")
        log.warning("%s; this process keeps its history in %s", taken, own)
        return replace(settings, store=own)


async def _stdio(site: Site, stop: "_Stop", wire: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    conversation = asyncio.create_task(Stdio(site, *wire).run())
    stopped = asyncio.create_task(stop.asked.wait())
    await asyncio.wait([conversation, stopped], return_when=asyncio.FIRST_COMPLETED)
    if stopped.done():
        await stop.wind_down()
    for task in (conversation, stopped):
        task.cancel()
    await asyncio.wait([conversation, stopped])


def _listen(site: Site, settings: Settings) -> Listening:
    """Open the sockets, if those who may come through them can prove who they are."""
    tokens = Tokens(state.Kept("tokens.json", Token), time.time)
    site.admission = Admission(state.Kept("sessions.json", Session), time.time, tokens.stands)
    listening = listen(settings, bool(tokens.all()))
    site.url, site.public = listening.url, listening.public
    site.ways = Ways(tokens, site.engine.clock, _issuer(site), site.bells)
    return listening


def _issuer(site: Site) -> Issuer | None:
    if not site.settings.access.issuer:
        return None
    from afoot.serve.oauth import Oauth  # what checks signatures takes long to import

    return Oauth(site.settings.access, f"{site.public}/mcp", fetch, time.time)


async def _http(site: Site, stop: "_Stop", listening: Listening, started: Started, lingers: bool) -> None:
    application = _application(site, stop, listening, lingers)
    servers = listening.servers(application, site.settings.access)
    serving = asyncio.gather(*(http.serve(sockets=[one]) for http, one in servers))
    address = state.Address(f"{site.url}/mcp", f"{site.url}/", site.token, os.getpid())
    before = state.announce(address)
    if before is not None:
        log.warning(
            "commands now go to this gateway; for the one at %s: AFOOT_URL and AFOOT_TOKEN", before.mcp
        )
    _pair(site.url)
    log.debug("%d file descriptors", _raise_descriptors())
    _rest_collector()
    started(address, site)
    try:
        stopped = asyncio.create_task(stop.asked.wait())
        await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
        await stop.wind_down()
        if site.lines is not None:  # after the calls, whose ends it carries
            site.lines.close(GOING_AWAY, "the gateway is stopping")
        for http, _ in servers:
            http.should_exit = True
        await serving
        stopped.cancel()
    finally:
        state.withdraw(address, before)
        if before is not None:
            _pair(before.console)


def _pair(url: str) -> None:
    """Tell the extension's folders where the gateway is; one that cannot be told stops nothing."""
    try:
        problems = Folders().pair(link_url(url), state.link_key())
    except CallerError as error:
        problems = [str(error)]
    for problem in problems:
        log.warning("the browser's extension cannot be told where the gateway is: %s", problem)


def _application(site: Site, stop: "_Stop", listening: Listening, lingers: bool) -> App:
    guard = Guard(
        listening.hosts,
        frozenset(site.settings.allow_origins),
        site.settings.mcp_token,
        site.token,
        site.admission,
        site.ways,
        listening.is_closed,
    )
    sessions = Sessions(site, Ended(home() / FOLDER))
    assert site.lines is not None
    application = Http(site, guard, sessions, Links(site, guard, site.lines, routes(site, guard)))
    if not lingers:
        return application
    engine = site.engine
    linger = Linger(application, engine.clock, lambda: bool(engine.calls()) or sessions.anonymous() > 0)
    stop.after(linger.over(site.settings.linger_s))
    return linger


class _Stop:
    """Being told to stop: no new calls, time to drain, then cancel with a reason."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.asked = asyncio.Event()
        self._reason = "the gateway is shutting down"
        self._lingering: asyncio.Task[None] | None = None
        self._is_leaving = False

    def listen(self) -> None:
        """SIGTERM and Ctrl-C stop in order; a second ends at once, a third whatever the history does."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)

    def after(self, over: Coroutine[Any, Any, None]) -> None:
        """Stop also when this has come to its end: nobody needs the gateway any more."""
        self._lingering = asyncio.create_task(over)
        self._lingering.add_done_callback(lambda _: self.asked.set())

    async def wind_down(self) -> None:
        """Let calls finish for a while, cancel the rest, and end every open stream."""
        site = self._site
        site.engine.closing = self._reason
        await site.engine.idle(site.settings.drain_s)
        site.engine.close(self._reason)
        for bell in list(site.bells):
            bell.ring()
        await site.engine.idle(site.settings.cancel_grace_s)
        await asyncio.sleep(0.05)  # the last frames go out

    def _signalled(self, number: int) -> None:
        if self.asked.is_set():
            self._leave(128 + number)
            return
        self._reason = f"the gateway was told to stop ({signal.Signals(number).name})"
        self.asked.set()
        if self._site.engine.calls():
            log.warning(
                "stopping: live calls have %g s to end; once more ends at once", self._site.settings.drain_s
            )

    def _leave(self, code: int) -> None:
        """End at once, once the history says so: else the next gateway takes this one for dead."""
        if self._is_leaving:
            os._exit(code)
        self._is_leaving = True
        engine = self._site.engine
        engine.close(f"{self._reason}, and not to wait")
        for live in engine.calls():
            grace_over(engine, live)
        engine.recorder.then(lambda: os._exit(code))


def _raise_descriptors() -> int:
    """As many open files as the system allows: every call in flight holds one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def _rest_collector() -> None:
    """What is loaded by now stays: the collector looks at it no more, and at the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
