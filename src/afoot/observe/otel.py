"""Whether telemetry is on, and its parts put together; off, nothing of OpenTelemetry is imported (V3)."""

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from afoot.core.trace import HERE
from afoot.errors import CallerError
from afoot.observe.following import Calls, Following
from afoot.tables import OtelSettings

if TYPE_CHECKING:
    from afoot.observe.exporter import Exporter

DEFAULT = "http://localhost:4318"  # where a collector listens
MISSING = "telemetry needs more than is installed: pip install 'afoot[otel]'"

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_SIGNALS = {"traces": "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "metrics": "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
_SPOKEN = "http/protobuf"

log = logging.getLogger("afoot.telemetry")


def targets(settings: OtelSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Where traces and metrics go, by signal; empty where telemetry is off. Raises CallerError.

    What is set for afoot counts for more than the standard variables, which may be meant for others.
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


@asynccontextmanager
async def telemetry(settings: OtelSettings, calls: Calls) -> AsyncIterator[None]:
    """Tell of all calls within the block, if telemetry is on; raises CallerError.

    What only the environment says may be meant for another program: where that cannot be done, it is logged.
    """
    try:
        wanted = targets(settings, os.environ)
        exporter = _exporter(wanted, settings, calls) if wanted else None
    except CallerError as error:
        if settings.endpoint or settings.enabled:
            raise
        log.warning("%s; there is no telemetry", error)
        exporter = None
    if exporter is None:
        yield
        return
    calls.trees.trace = HERE
    try:
        async with Following(calls, exporter):
            yield
    finally:
        await exporter.close()


def _exporter(wanted: Mapping[str, str], settings: OtelSettings, calls: Calls) -> "Exporter":
    try:
        # Only here: it is an extra, and takes a third of a second.
        from afoot.observe.exporter import Exporter
    except ImportError:
        raise CallerError(MISSING) from None
    try:
        return Exporter(wanted, settings, calls.refused)
    except ValueError as error:  # of a variable that the SDK reads itself
        raise CallerError(f"telemetry cannot be set up: {error}") from None
