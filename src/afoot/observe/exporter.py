"""`Exporter` sends spans and metrics to a receiver, in threads of the SDK; its absence is logged once."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from afoot.config.tables import OtelSettings
from afoot.observe.call_notes import CallNotes
from afoot.observe.metrics import Metrics
from afoot.observe.spans import Spans

SERVICE = "afoot"
CLOSE_S = 2.0  # for sending the rest when the gateway closes

log = logging.getLogger("afoot.telemetry")


class DeliveryLog:
    """Logs when telemetry arrives at its receiver no more, and when it does again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.is_away = self.is_over = False

    def record_delivery(self, did: bool) -> None:
        """Take note whether the last request arrived; after the end nothing is logged any more."""
        if self.is_over:
            return
        if did and self.is_away:
            log.warning("telemetry arrives again at %s", self._url)
        elif not did and not self.is_away:
            log.warning("telemetry does not arrive at %s; calls go on without", self._url)
        self.is_away = not did


class _DropAll:
    """A log filter that lets nothing pass: one for each sender, so that the last to stop ends the silence."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop every record."""
        return False


class SpanSender(OTLPSpanExporter):
    """The SDK's exporter of spans. It would log every try; here `DeliveryLog` logs the changes only."""

    speaks = trace_exporter.__name__

    def __init__(self, url: str, headers: Mapping[str, str] | None) -> None:
        self.receiver = DeliveryLog(url)
        self.quiet = _DropAll()
        logging.getLogger(self.speaks).addFilter(self.quiet)
        super().__init__(url, headers=headers)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans."""
        result = super().export(spans)
        self.receiver.record_delivery(result is SpanExportResult.SUCCESS)
        return result


class MetricSender(OTLPMetricExporter):
    """The SDK's exporter of metrics, as quiet as `SpanSender`."""

    speaks = metric_exporter.__name__

    def __init__(self, url: str, headers: Mapping[str, str] | None) -> None:
        self.receiver = DeliveryLog(url)
        self.quiet = _DropAll()
        logging.getLogger(self.speaks).addFilter(self.quiet)
        super().__init__(url, headers=headers)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        """Send metrics."""
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self.receiver.record_delivery(result is MetricExportResult.SUCCESS)
        return result


class Exporter:
    """Sends the spans and metrics of calls to the addresses in `targets`, by signal."""

    def __init__(
        self, targets: Mapping[str, str], settings: OtelSettings, refused: Mapping[str, int]
    ) -> None:
        resource = _resource(settings.service_name)
        scope = InstrumentationScope(SERVICE, version(SERVICE))
        headers = settings.headers or None
        self._spans = self._metrics = self._processor = self._meters = None
        self._senders: list[SpanSender | MetricSender] = []
        if "traces" in targets:
            self._spans = Spans(resource, scope)
            spans = SpanSender(targets["traces"], headers)
            self._processor = BatchSpanProcessor(spans)
            self._senders.append(spans)
        if "metrics" in targets:
            numbers = MetricSender(targets["metrics"], headers)
            reader = PeriodicExportingMetricReader(numbers)
            self._meters = MeterProvider([reader], resource, shutdown_on_exit=False)
            self._senders.append(numbers)
            self._metrics = Metrics(self._meters.get_meter(scope.name, scope.version), refused)

    def opened(self, notes: CallNotes) -> None:
        """A call began."""
        if self._metrics is not None:
            self._metrics.opened(notes)

    def finished(self, notes: CallNotes) -> None:
        """A call is over for its caller."""
        if self._metrics is not None:
            self._metrics.finished(notes)

    def ended(self, notes: CallNotes) -> None:
        """End the spans of this call: no more facts of it follow."""
        if self._spans is not None and self._processor is not None:
            for span in self._spans.of(notes):
                self._processor.on_end(span)
        if self._metrics is not None:
            self._metrics.ended(notes)

    async def close(self) -> None:
        """Send the rest within CLOSE_S: a receiver that is away holds up nobody."""
        stops = [one.shutdown for one in (self._processor, self._meters) if one is not None]
        ways = zip(self._senders, stops, strict=True)
        if not all(await asyncio.gather(*(_within(CLOSE_S, partial(_stop, *way)) for way in ways))):
            log.warning("telemetry could not all be sent within %g s", CLOSE_S)
            for sender in self._senders:
                sender.shutdown()  # else its thread tries for as long as the process lives
        for sender in self._senders:
            sender.receiver.is_over = True


def _stop(sender: SpanSender | MetricSender, stop: Callable[[], object]) -> None:
    if sender.receiver.is_away:
        sender.shutdown()  # it tries no more
    stop()
    logging.getLogger(sender.speaks).removeFilter(sender.quiet)


async def _within(limit_s: float, work: Callable[[], object]) -> bool:
    """Do something in a thread, and wait for it at most this long; says whether it was done by then."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        work()
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, daemon=True, name="afoot-telemetry").start()
    with suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), limit_s)
    return done.is_set()


def _resource(name: str) -> Resource:
    """The name that telemetry is sent under: the setting, then the standard variables, then our own."""
    found = Resource.create({SERVICE_VERSION: version(SERVICE)})
    if not name and str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        name = SERVICE
    return found.merge(Resource({SERVICE_NAME: name})) if name else found
