"""The offer of our MCP App: only the lists for clients that show apps contain it (V7)."""

from msgspec import Raw
from msgspec.structs import replace

from afoot.config.tables import LOCAL_SERVER
from afoot.core.ports import Tool
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp import handle_tools
from afoot.serve.mcp.app.page import app_page
from afoot.wire.app import (
    APP_RESOURCE,
    APP_URI,
    page_contents,
    with_app,
    with_app_extension,
    with_app_tools,
)
from afoot.wire.resources import JsonObject, Lookup
from afoot.wire.results import Capabilities


def shows_app(gateway: GatewayState, can: Capabilities) -> bool:
    """Whether our app is for this client."""
    return can.app_pages and gateway.settings.app != "off"


def capabilities_for_client(gateway: GatewayState, can: Capabilities) -> JsonObject:
    """The capabilities that we declare to this client."""
    found = gateway.resource_catalog.capabilities()
    return with_app_extension(found) if shows_app(gateway, can) else found


def tools_with_app(gateway: GatewayState, tools: list[Tool], can: Capabilities) -> list[Tool]:
    """The tools for this client: functions, or all tools, name our app, which then shows their calls."""
    if not shows_app(gateway, can):
        return tools
    is_for_all = gateway.settings.app == "all"
    return [
        replace(tool, definition=with_app(bytes(tool.definition)))
        if is_for_all or tool.server == LOCAL_SERVER
        else tool
        for tool in tools
    ]


def list_tools(gateway: GatewayState, tools: list[Raw], limit_s: float, can: Capabilities) -> list[Raw]:
    """The list for a caller with this time limit: with the gateway's own tools that it may use (H5)."""
    tools = handle_tools.tools_for_timeout(tools, limit_s)
    return with_app_tools(tools) if shows_app(gateway, can) else tools


def resources_with_app(
    gateway: GatewayState, listed: list[JsonObject], can: Capabilities
) -> list[JsonObject]:
    """The resources with our app, if this client shows apps, replacing that of a gateway behind this one."""
    if not shows_app(gateway, can):
        return listed
    return [*(one for one in listed if one.get("uri") != APP_URI), APP_RESOURCE]


def read_app(gateway: GatewayState, lookup: Lookup) -> JsonObject | None:
    """The page of our app, if that is what is read, by a client that shows it."""
    is_read = lookup.method == "resources/read" and lookup.subject == APP_URI
    return page_contents(app_page()) if is_read and shows_app(gateway, lookup.capabilities) else None
