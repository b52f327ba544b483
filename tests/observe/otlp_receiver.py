"""A receiver of OTLP over HTTP: it takes what is sent, decodes it, and keeps it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


class Received:
    """A span as it arrived."""

    def __init__(self, service: str, span: Any) -> None:
        self.service = service
        self.name: str = span.name
        self.kind: int = span.kind  # 1: internal, 2: server, 3: client
        self.trace: str = span.trace_id.hex()
        self.id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.attributes = _plain(span.attributes)
        self.events: list[str] = [event.name for event in span.events]

    def __repr__(self) -> str:
        return f"{self.service}: {self.name} kind {self.kind} {self.trace}/{self.id} below {self.parent}"


class Receiver:
    """What has arrived, from whomever."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.spans: list[Received] = []
        self.metrics: dict[str, dict[str, dict[str, Any]]] = {}  # by service and name: attributes of a point
        self.headers: list[dict[str, str]] = []

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """One request; what is no OTLP raises."""
        self.headers.append({key.lower(): value for key, value in headers.items()})
        if path == "/v1/traces":
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = str(_plain(one.resource.attributes)["service.name"])
                self.spans += [Received(service, span) for scope in one.scope_spans for span in scope.spans]
            return
        assert path == "/v1/metrics", path
        for one in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            service = str(_plain(one.resource.attributes)["service.name"])
            known = self.metrics.setdefault(service, {})
            for metric in (metric for scope in one.scope_metrics for metric in scope.metrics):
                data = getattr(metric, metric.WhichOneof("data") or "gauge")
                known[metric.name] = _plain(data.data_points[0].attributes)

    def of(self, service: str) -> list[Received]:
        """The spans of one service."""
        return [span for span in self.spans if span.service == service]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a port of its own, until the end of the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.take(self.path, dict(self.headers.items()), body)
            self.send_response(receiver.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _plain(attributes: Any) -> dict[str, Any]:
    def value(one: KeyValue) -> Any:
        return getattr(one.value, one.value.WhichOneof("value") or "string_value")

    return {one.key: value(one) for one in attributes}
