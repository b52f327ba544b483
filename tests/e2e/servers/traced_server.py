"""An MCP server of the official SDK that sends spans to a receiver: those the SDK makes, and its own."""

import os

from mcp.server.mcpserver import Context, MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

server = MCPServer("traced")


@server.tool()
def weigh(grams: int, ctx: Context) -> str:
    """Weigh something, and say what baggage came along."""
    meta = ctx.request_context.meta or {}
    with trace.get_tracer("scales").start_as_current_span("put on the scales"):
        return f"{grams} g, {meta.get('baggage')}"


def main() -> None:
    """Serve on stdio."""
    provider = TracerProvider(resource=Resource.create({"service.name": "scales"}))
    exporter = OTLPSpanExporter(f"{os.environ['SCALES_OTLP']}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    server.run("stdio")


if __name__ == "__main__":
    main()
