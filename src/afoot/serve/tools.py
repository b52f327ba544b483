"""Tools over the operator's API: what there is, with which schemas and limits."""

from typing import Any

from msgspec import Struct, json
from msgspec.structs import asdict

from afoot.core.ports import Tool
from afoot.serve.request import Request


class ToolView(Struct, frozen=True):
    """A tool: what a model sees of it, and how it is run."""

    name: str
    server: str
    title: str | None
    description: str
    inputSchema: dict[str, Any]
    outputSchema: dict[str, Any] | None
    annotations: dict[str, Any]
    limits: dict[str, float | None]
    concurrency: int
    queue: int


class Tools(Struct, frozen=True):
    """All tools on offer."""

    tools: list[ToolView]


async def index(request: Request) -> None:
    """Every tool."""
    request.query()
    await request.answer(200, Tools([view(tool) for tool in request.site.engine.catalog]))


async def show(request: Request) -> None:
    """One tool."""
    request.query()
    await request.answer(200, view(request.site.engine.catalog.get(request.names["name"])[1]))


def view(tool: Tool) -> ToolView:
    """The tool as JSON."""
    told: dict[str, Any] = json.decode(tool.definition)
    return ToolView(
        tool.name, tool.server, told.get("title"), told.get("description") or "",
        told.get("inputSchema") or {"type": "object"}, told.get("outputSchema"),
        told.get("annotations") or {}, asdict(tool.limits), tool.concurrency, tool.queue,
    )  # fmt: skip
