"""`BrowserEvents` handles the frames of all browsers: it keeps profiles, page contexts and runs up to date.

It decides which frames may be believed (B7): a frame about a run counts only if it comes from the page
context to which the run was sent. It also decides which runs go on after a lost link (B6).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count
from secrets import token_hex

from msgspec.structs import replace

from afoot.errors import RunnerDied
from afoot.providers.browser.page_run import context_gone_error, link_lost_error, unknown_run_error
from afoot.providers.browser.profiles import Carrier, OpenContext, Profile, Profiles, RunFrame
from afoot.providers.browser.tools.source import is_plugin_context
from afoot.wire.browser_data import PageContext, PluginBundle, RunPosition
from afoot.wire.extension import (
    FromBrowser,
    LinkHello,
    LinkWelcome,
    PageContextGone,
    PageContextOpened,
    PageContextReady,
    PageContextState,
    PageContextTools,
    RunCancel,
    RunLog,
    RunProgress,
    RunResult,
    RunResultAck,
    RunWaiting,
    TabList,
)

MAX_TOOLS = 1000  # tools of one plugin in a tab, or of all frames of a page together, that are looked at
MAX_ENDED_RUNS = 1000  # ended runs that are remembered
UNKNOWN_RUN = "the gateway does not know this run"

OnTools = Callable[[OpenContext], None]
ContextFrame = PageContextTools | PageContextReady | PageContextState | PageContextGone


class BrowserEvents:
    """Handles the frames of every browser (`profiles.BrowserListener`)."""

    def __init__(self, profiles: Profiles, on_change: Callable[[], None], on_tools: OnTools) -> None:
        """`on_change`: other tools may be offered now. `on_tools`: a page context has listed its tools."""
        self.counted: Counter[str] = Counter()  # what was dropped or repaired, by kind
        self.grace_s = 5.0  # for page contexts that do not come back with their browser
        self.bundles: list[PluginBundle] = []  # the plugins that browsers shall run
        self._profiles = profiles
        self._on_change = on_change
        self._on_tools = on_tools
        self._epoch = token_hex(8)
        self._numbers = count(1)
        # Ended runs: the profile and the page context in which each one was.
        self._ended_runs: dict[str, tuple[Profile, str]] = {}

    def count(self, what: str, times: int = 1) -> None:
        """Count something that was dropped or repaired."""
        self.counted[what] += times

    def on_connect(self, carrier: Carrier, hello: LinkHello) -> LinkWelcome:
        """Take in a browser. A run goes on if the browser and the gateway know it; any other run ends."""
        profile = self._profiles.get(hello.profile)
        if profile is None:
            profile = Profile(hello.profile, carrier)
            self._profiles.add(profile)
        profile.carrier = carrier
        profile.is_up = True
        profile.name = hello.label or carrier.name
        profile.user_scripts = hello.user_scripts
        listed = {context.id for context in hello.rooms}
        for context in profile.contexts.values():
            context.is_awaited = context.info.id not in listed
        unknown = {
            run for context in hello.rooms for run in self._open_context(profile, context, hello.running)
        }
        for one in hello.running:
            context = profile.contexts.get(one.room)
            if context is None or one.run not in context.runs:
                unknown.add(one.run)
        keep = [one.run for one in hello.running if one.run not in unknown]
        self._profiles.set_tabs(profile, hello.tabs)
        self._await_missing_contexts(profile)
        _notify_waiters(profile)
        self._check_impediments(profile)
        self._on_change()
        return LinkWelcome(self._epoch, keep, sorted(unknown), self.bundles)

    def on_disconnect(self, carrier: Carrier, why: str, grace_s: float) -> None:
        """Wait `grace_s` for a browser that cannot be reached any more; then its runs fail."""
        profile = self._profiles.of_carrier(carrier)
        if profile is None:
            return
        profile.is_up = False
        profile.cancel_timer()
        loop = asyncio.get_running_loop()
        profile.until = loop.time() + grace_s
        if grace_s > 0:
            profile.timer = loop.call_at(profile.until, self._drop_profile, profile, grace_s)
            self._check_impediments(profile)
            self._on_change()
        else:
            self._drop_profile(profile, grace_s)

    def on_frame(self, carrier: Carrier, message: FromBrowser) -> None:
        """Handle one frame; a frame that may not be believed is counted, and changes nothing."""
        profile = self._profiles.of_carrier(carrier)
        if profile is None:
            self.count("frames of a link that is not open")
            return
        match message:
            case PageContextOpened():
                for run in self._open_context(profile, message.room, message.running):
                    profile.carrier.send(RunCancel(message.room.id, run, UNKNOWN_RUN))
                self._on_change()
            case TabList():
                self._profiles.set_tabs(profile, message.tabs)
                self._check_impediments(profile)
            case PageContextTools() | PageContextReady() | PageContextState() | PageContextGone():
                context = profile.contexts.get(message.room)
                if context is None:
                    self.count("frames about a room that is not open")
                else:
                    self._on_context_frame(context, message)
            case RunProgress() | RunWaiting() | RunLog() | RunResult():
                self._on_run_frame(profile, message)
            case _:
                pass  # the frame is not about tools

    def close(self) -> None:
        """Cancel every timer: the gateway ends."""
        for profile in self._profiles:
            profile.cancel_timer()

    def _open_context(
        self, profile: Profile, context: PageContext, running: Iterable[RunPosition]
    ) -> list[str]:
        """Add or update a page context; returns the runs in it that the gateway does not wait for."""
        known = profile.contexts.get(context.id)
        if known is not None and context.document != known.info.document:
            self._close_context(known, "reloaded")
            known = None
        if known is None:
            known = OpenContext(
                profile, context, next(self._numbers), is_ready=not is_plugin_context(context)
            )
            profile.contexts[context.id] = known
        was_awaited = known.is_awaited
        known.is_awaited = False
        known.info = context
        self._profiles.key(profile, context.tab)
        listed = [one.run for one in running if one.room == context.id]
        unknown = [run for run in listed if run not in known.runs]
        for page_run in list(known.runs.values()):
            if page_run.id in listed:
                page_run.resume()
            else:
                page_run.fail(unknown_run_error(known))
                unknown.append(page_run.id)  # in case it is just starting in the page
        if was_awaited:
            _notify_waiters(profile)
        return unknown

    def _on_context_frame(self, context: OpenContext, message: ContextFrame) -> None:
        match message:
            case PageContextTools():
                most = _most_tools(context)
                context.tools = message.tools[:most]
                context.left_out = max(0, message.left_out)
                context.left_out += max(0, len(message.tools) - most)
                self._on_tools(context)
            case PageContextReady():
                context.is_ready = message.ready
                context.why = "" if message.ready else message.why
            case PageContextState():
                fields = {
                    "url": message.url or context.info.url,
                    "title": message.title or context.info.title,
                }
                context.info = replace(context.info, visible=message.visible, frozen=message.frozen, **fields)
                for page_run in context.runs.values():
                    page_run.check_impediment()
                return
            case PageContextGone():
                self._close_context(context, message.why)
        self._on_change()

    def _on_run_frame(self, profile: Profile, frame: RunFrame) -> None:
        """Pass a frame to its run, if it comes from the page context to which the run was sent (B7)."""
        context = profile.contexts.get(frame.room)
        page_run = context.runs.get(frame.run) if context is not None else None
        if page_run is None:
            self._reject_run_frame(profile, frame)
            return
        page_run.on_frame(frame)
        if isinstance(frame, RunResult):
            self._ended_runs[frame.run] = profile, frame.room
            if len(self._ended_runs) > MAX_ENDED_RUNS:
                del self._ended_runs[next(iter(self._ended_runs))]
            profile.carrier.send(RunResultAck(frame.room, frame.run))

    def _reject_run_frame(self, profile: Profile, frame: RunFrame) -> None:
        """Count a frame that may not be believed.

        A page sends a result until it is acknowledged, so the result of an ended run is acknowledged again.
        """
        ended = self._ended_runs.get(frame.run)
        if ended is not None and ended[0] is profile and ended[1] == frame.room:
            if isinstance(frame, RunResult):
                profile.carrier.send(RunResultAck(frame.room, frame.run))
            else:
                self.count("frames after the end of a run")
        elif ended is not None or any(frame.run in context.runs for context in self._profiles.contexts()):
            self.count("frames of a room that the run was not sent to")
        else:
            self.count("frames about an unknown run")

    def _close_context(self, context: OpenContext, why: str) -> None:
        context.profile.contexts.pop(context.info.id, None)
        _fail_runs(context, context_gone_error(context, why))

    def _drop_profile(self, profile: Profile, grace_s: float) -> None:
        """Remove a browser that did not come back in time, and fail its runs."""
        profile.cancel_timer()
        self._profiles.remove(profile)
        contexts = list(profile.contexts.values())
        profile.contexts.clear()
        for context in contexts:
            _fail_runs(context, link_lost_error(context, grace_s))
        _notify_waiters(profile)
        self._on_change()

    def _await_missing_contexts(self, profile: Profile) -> None:
        """Give page contexts that the browser came back without the rest of its grace to follow."""
        profile.cancel_timer()
        if any(context.is_awaited for context in profile.contexts.values()):
            loop = asyncio.get_running_loop()
            until = profile.until if profile.until > loop.time() else loop.time() + self.grace_s
            profile.timer = loop.call_at(until, self._close_missing_contexts, profile)

    def _close_missing_contexts(self, profile: Profile) -> None:
        profile.timer = None
        for context in [context for context in profile.contexts.values() if context.is_awaited]:
            self._close_context(context, "lost")
        _notify_waiters(profile)
        self._on_change()

    def _check_impediments(self, profile: Profile) -> None:
        for context in profile.contexts.values():
            for page_run in context.runs.values():
                page_run.check_impediment()


def _most_tools(context: OpenContext) -> int:
    """The number of tools of a page context that are looked at.

    A page may have any number of frames, and the list is made anew with each change. Frames of other origins
    take nothing from the page's own.
    """
    if is_plugin_context(context.info):
        return MAX_TOOLS
    shared = context.info.tab, context.info.origin == context.info.top
    return MAX_TOOLS - sum(
        len(one.tools)
        for one in context.profile.contexts.values()
        if one is not context
        and one.tools
        and (one.info.tab, one.info.origin == one.info.top) == shared
        and not is_plugin_context(one.info)
    )


def _fail_runs(context: OpenContext, how: RunnerDied) -> None:
    for page_run in list(context.runs.values()):
        page_run.fail(how)


def _notify_waiters(profile: Profile) -> None:
    """Wake every call that waits for this browser."""
    changed = profile.changed
    profile.changed = asyncio.Event()
    changed.set()
