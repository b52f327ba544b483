"""What a server offers: its lists of tools, resources, templates and prompts, page by page."""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from afoot.providers.upstream.carrier import Order
from afoot.providers.upstream.connection import Connection
from afoot.wire import client_reading
from afoot.wire.jsonrpc import METHOD_NOT_FOUND, Fault

PAGES: Final = 1000  # a server whose cursors never end is no reason to hang
Items = list[dict[str, Any]]


class Lists(Struct):
    """Everything a server offers, as it said it."""

    tools: list[Raw] = []
    resources: Items = []
    templates: Items = []
    prompts: Items = []

    def changed(self, other: "Lists") -> list[str]:
        """The kinds in which another one differs."""
        kinds = {
            "tools": [bytes(tool) for tool in self.tools] != [bytes(tool) for tool in other.tools],
            "resources": (self.resources, self.templates) != (other.resources, other.templates),
            "prompts": self.prompts != other.prompts,
        }
        return [kind for kind, is_other in kinds.items() if is_other]


async def fetch(connection: Connection) -> Lists:
    """Ask for everything that the server says it has; raises Fault, RunnerDied, ToolError."""
    offered = connection.capabilities
    resources = "resources" in offered
    return Lists(
        await _every(connection, "tools/list", "tools", "tools" in offered),
        _dicts(await _every(connection, "resources/list", "resources", resources) if resources else []),
        _dicts(await _templates(connection) if resources else []),
        _dicts(await _every(connection, "prompts/list", "prompts", True) if "prompts" in offered else []),
    )


async def _templates(connection: Connection) -> list[Raw]:
    return await _every(connection, "resources/templates/list", "resourceTemplates", False)


async def _every(connection: Connection, method: str, key: str, is_promised: bool) -> list[Raw]:
    """All pages of a list; none, if the server does not know it and did not promise it."""
    found: list[Raw] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(PAGES):
        try:
            result = await connection.request(Order(method, {"cursor": cursor} if cursor else {}))
        except Fault as fault:
            if fault.code == METHOD_NOT_FOUND or not is_promised:
                return found
            raise
        items, cursor = client_reading.page(result, key)
        found += items
        if cursor is None:
            return found
        if cursor in seen:
            break
        seen.add(cursor)
    connection.record.odd("endless_list", method)
    return found


def _dicts(items: list[Raw]) -> Items:
    found: list[Any] = [msgspec.json.decode(item) for item in items]
    return [item for item in found if isinstance(item, dict)]
