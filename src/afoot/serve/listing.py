"""Requests of 2026-07-28 that start no call: who we are, what tools there are, and being told of changes."""

from msgspec import Raw

from afoot.engine.bell import Bell
from afoot.serve.manner import Outlet
from afoot.serve.site import Site
from afoot.wire import mcp
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, params
from afoot.wire.mcp import CACHE, Filter

EMPTY = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def answer_plain(site: Site, message: Envelope) -> bytes:
    """The answer to a request that asks for a list; raises Fault."""
    request = message.id
    assert isinstance(request, int | str)
    method = str(message.method)
    if method == "server/discover":
        return mcp.discovered(request, site.info, site.instructions)
    if method != "tools/list" and method not in EMPTY:
        raise mcp.unknown_method(method)
    if params(message, mcp.PLAIN).cursor is not None:
        raise Fault(INVALID_PARAMS, "params.cursor: unknown; these lists have one page")
    if method == "tools/list":
        return mcp.complete(request, site.info, tools=definitions(site), **CACHE)
    return mcp.complete(request, site.info, **{EMPTY[method]: []}, **CACHE)


def definitions(site: Site) -> list[Raw]:
    """Every tool as a model sees it."""
    return [tool.definition for tool in site.engine.catalog]


async def listen(site: Site, request: Id, wanted: Filter, outlet: Outlet, bell: Bell) -> None:
    """Hold a stream open and tell of every change of the list of tools, until it is left or we close."""
    catalog = site.engine.catalog
    forget = catalog.listen(bell.ring)
    site.bells.append(bell)
    seen = catalog.version
    try:
        await outlet.send([acknowledged(request, wanted)])
        while not outlet.gone and not bell.cracked and site.engine.closing is None:
            await site.bell_or_beat(bell)
            if wanted.toolsListChanged and catalog.version != seen:
                seen = catalog.version
                await outlet.send([mcp.notice("notifications/tools/list_changed", request)])
            elif not outlet.gone:
                await outlet.keep_alive()
        await outlet.finish((), None if bell.cracked else mcp.listen_over(request, site.info))
    finally:
        site.bells.remove(bell)
        forget()


def acknowledged(request: Id, wanted: Filter) -> bytes:
    """The first message of a listen stream."""
    return mcp.notice("notifications/subscriptions/acknowledged", request, notifications=wanted)
