"""`telemetry` sends spans and metrics of all calls within a block, if the settings want that (V3).

It also keeps the figures that `/metrics` shows (V8). `TelemetryFollower` reads along with every call, beside
its path, and keeps `CallNotes` on each that lives. If nothing is sent, nothing of OpenTelemetry is imported.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

from afoot.config.tables import OtelSettings
from afoot.core.facts import Entry, Opened, Released
from afoot.core.trace import NEW_TRACE
from afoot.errors import CallerError
from afoot.observe.call_notes import CallNotes
from afoot.observe.prometheus import KeptFigures

if TYPE_CHECKING:
    from afoot.observe.exporter import Exporter

DEFAULT = "http://localhost:4318"  # the usual address of a collector
MISSING = "telemetry needs more than is installed: pip install 'afoot[otel]'"

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SIGNALS = {"traces": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "metrics": "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
_SPOKEN = "http/protobuf"

MAX_ENDED = 10_000  # calls that are over and not sent yet; when there are more, the oldest go
SENT_AT_ONCE = 20  # in one go, so that no call waits for it
AFTER_END_S = 0.25  # after the end of a call: its requests still count something in this time
LOOK_S = 2.0  # between two looks whether calls still advance

log = logging.getLogger("afoot.telemetry")


class ObservedEngine(Protocol):
    """The parts of an engine that telemetry needs."""

    clock: Any
    watchers: list[Any]
    default_trace: Any

    @property
    def quota_refusals(self) -> Mapping[str, int]:
        """The number of calls over a quota, by caller."""
        ...

    def __contains__(self, call_id: str, /) -> bool: ...

    def own_calls(self) -> Iterable[Any]: ...

    def __getitem__(self, call_id: str, /) -> Any: ...


class TelemetrySink(Protocol):
    """A receiver of what is noted on calls: when one opens, finishes, and has really ended."""

    def opened(self, notes: CallNotes) -> None: ...

    def finished(self, notes: CallNotes) -> None: ...

    def ended(self, notes: CallNotes) -> None: ...


@asynccontextmanager
async def telemetry(
    settings: OtelSettings, calls: ObservedEngine, kept: KeptFigures | None = None
) -> AsyncIterator[None]:
    """Send spans and metrics of all calls within the block, if telemetry is on; raises CallerError.

    `kept` is told of all calls as well. If telemetry is off, it is told of them from its `start` on.
    Variables of the environment may be meant for another program: a mistake in them is only logged.
    """
    try:
        wanted = telemetry_targets(settings, os.environ)
        exporter = _exporter(wanted, settings, calls) if wanted else None
    except CallerError as error:
        if settings.endpoint or settings.enabled:
            raise
        log.warning("%s; there is no telemetry", error)
        exporter = None
    async with AsyncExitStack() as stack:

        async def follow(*sinks: TelemetrySink) -> None:
            await stack.enter_async_context(TelemetryFollower(calls, *sinks))

        if exporter is not None:
            calls.default_trace = NEW_TRACE
            stack.push_async_callback(exporter.close)
            await follow(exporter, *(one for one in (kept,) if one is not None))
        elif kept is not None:
            kept.begin = partial(follow, kept)
        yield


def telemetry_targets(settings: OtelSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """The addresses for traces and metrics, by signal; empty if telemetry is off. Raises CallerError.

    The settings of afoot count for more than the standard variables, which may be meant for others.
    """
    if settings.enabled is False or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return {}
    base = settings.endpoint or environment.get(_ENDPOINT, "") or (DEFAULT if settings.enabled else "")
    found: dict[str, str] = {}
    for signal, name in _SIGNALS.items():
        if environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").strip() == "none":
            continue
        own = "" if settings.endpoint else environment.get(name, "")
        if own or base:
            found[signal] = own or f"{base.rstrip('/')}/v1/{signal}"
    for url in found.values():
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise CallerError(
                f"telemetry cannot go to {url!r}: the address must begin with http:// or https://"
            )
    protocol = environment.get(_PROTOCOL, _SPOKEN)
    if found and not settings.endpoint and protocol != _SPOKEN:
        raise CallerError(f"telemetry is sent as {_SPOKEN} only, not as {protocol} ({_PROTOCOL})")
    return found


def _exporter(wanted: Mapping[str, str], settings: OtelSettings, calls: ObservedEngine) -> "Exporter":
    try:
        # Imported here: OpenTelemetry is an extra, and importing it takes a third of a second.
        from afoot.observe.exporter import Exporter
    except ImportError:
        raise CallerError(MISSING) from None
    try:
        return Exporter(wanted, settings, calls.quota_refusals)
    except ValueError as error:  # of a variable that the SDK reads itself
        raise CallerError(f"telemetry cannot be set up: {error}") from None


class TelemetryFollower:
    """Reads along with all calls and hands its notes to sinks. To be opened before calls come."""

    def __init__(self, calls: ObservedEngine, *sinks: TelemetrySink) -> None:
        self._calls = calls
        self._sinks = sinks
        self._notes_by_call: dict[str, CallNotes] = {}
        self._over: deque[CallNotes] = deque(maxlen=MAX_ENDED)
        self._wakeup = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for live in self._calls.own_calls():  # their beginning was not seen, so it is not measured
            if live.call.end is None:
                self._open(live)
        self._calls.watchers.append(self)
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._look())]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._calls.watchers.remove(self)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._over.extend(self._notes_by_call.values())
        while self._over:
            self._some()

    def on_fact(self, entry: Entry) -> None:
        """Note a fact that was recorded."""
        notes = self._notes_by_call.get(entry.call)
        if notes is None:
            if type(entry.fact) is Released or entry.call not in self._calls:
                return
            notes = self._open(self._calls[entry.call])
        if type(entry.fact) is Opened:
            return
        was_over = notes.is_over
        notes.take(entry.fact)
        is_released = type(entry.fact) is Released
        if not was_over and (notes.is_over or is_released):  # its end may have come before anybody read along
            for sink in self._sinks:
                sink.finished(notes)
        if is_released:
            del self._notes_by_call[entry.call]
            self._calls[entry.call].watchers.remove(notes)  # else both, and the result, would be a cycle
            self._over.append(notes)
            self._wakeup.set()

    def _open(self, live: Any) -> CallNotes:
        """Begin the notes on a call."""
        notes = self._notes_by_call[live.call.id] = CallNotes(live)
        live.watchers.append(notes)
        for sink in self._sinks:
            sink.opened(notes)
        return notes

    async def _tell(self) -> None:
        """Hand over the calls that have ended, a few at a time."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            await asyncio.sleep(AFTER_END_S)
            while self._over:
                self._some()
                await asyncio.sleep(0)

    def _some(self) -> None:
        for _ in range(min(SENT_AT_ONCE, len(self._over))):
            notes = self._over.popleft()
            for sink in self._sinks:
                sink.ended(notes)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._calls.clock.now()
            for call, notes in list(self._notes_by_call.items()):
                if notes.live.mirror is None:
                    notes.look(now)
                    continue
                del self._notes_by_call[call]  # another gateway has it now, and tells of its end
                if not notes.is_over:
                    for sink in self._sinks:
                        sink.finished(notes)
