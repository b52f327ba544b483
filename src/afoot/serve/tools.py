"""Tools over the operator's API: what there is, with which schemas and limits."""

from typing import Any

from msgspec import Struct, json

from afoot.core.ports import Tool
from afoot.serve.request import Request
from afoot.tables import LIMITS


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
    patient: bool  # whether silence counts only once it has reported
    concurrency: int
    queue: int
    approval: str  # auto, ask
    safe: bool  # whether it may be run once more if what it runs on dies


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
    limits = {name: getattr(tool.limits, name) for name in LIMITS}
    is_safe = tool.trusted and (tool.read_only or tool.idempotent)
    return ToolView(
        tool.name, tool.server, told.get("title"), told.get("description") or "",
        told.get("inputSchema") or {"type": "object"}, told.get("outputSchema"),
        told.get("annotations") or {}, limits, tool.limits.patient, tool.concurrency, tool.queue,
        tool.approval, is_safe,
    )  # fmt: skip
