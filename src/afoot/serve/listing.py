"""Requests of 2026-07-28 that start no call: who we are, what there is, and being told of changes."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw, UnsetType

from afoot.engine.bell import Bell
from afoot.serve import patience
from afoot.serve.manner import Outlet
from afoot.serve.shelf import Library
from afoot.serve.shelf_news import LISTS, Ear
from afoot.serve.site import Site
from afoot.wire import mcp
from afoot.wire.jsonrpc import INVALID_PARAMS, Envelope, Fault, Id, params
from afoot.wire.mcp import CACHE, Filter, Meta
from afoot.wire.shelf import Item

PRIVATE = {**CACHE, "cacheScope": "private"}  # the list of tools is not the same for every client

# Lists that come from other servers: who makes them, and their key in the result.
SHELVED: Mapping[str, tuple[Callable[[Library], list[Item]], str]] = {
    "prompts/list": (Library.prompts, "prompts"),
    "resources/list": (Library.resources, "resources"),
    "resources/templates/list": (Library.templates, "resourceTemplates"),
}
MOST = 1000  # resources that one listener may watch

Render = Callable[[str, str | None], bytes]


def answer_plain(site: Site, message: Envelope) -> bytes:
    """The answer to a request that asks for a list; raises Fault."""
    request = message.id
    assert isinstance(request, int | str)
    method = str(message.method)
    if method == "server/discover":
        return mcp.discovered(request, site.info, site.guidance(), site.library.capabilities())
    if method != "tools/list" and method not in SHELVED:
        raise mcp.unknown_method(method)
    asked = params(message, mcp.PLAIN)
    if asked.cursor is not None:
        raise Fault(INVALID_PARAMS, "params.cursor: unknown; these lists have one page")
    if method == "tools/list":
        return mcp.complete(request, site.info, tools=offered(site, asked.meta), **_for(site, PRIVATE))
    return mcp.complete(request, site.info, **shelved(site, method), **_for(site, CACHE))


def offered(site: Site, meta: Meta | UnsetType) -> list[Raw]:
    """The tools for one caller: who cannot wait has some more, and wider ones (H5)."""
    assert not isinstance(meta, UnsetType)  # it was checked before
    client = "" if meta.client is None else meta.client.name
    return patience.offered(definitions(site), patience.limit(site.settings, meta.budget, client))


def shelved(site: Site, method: str) -> dict[str, list[Item]]:
    """A list of what all servers have, in one page."""
    make, key = SHELVED[method]
    return {key: make(site.library)}


def definitions(site: Site) -> list[Raw]:
    """Every tool as a model sees it."""
    return [tool.definition for tool in site.engine.catalog]


def ear_for(wanted: Filter, bell: Bell) -> Ear:
    """What hears the changes that a caller wants to be told of."""
    return Ear(bell, [kind for kind in LISTS if getattr(wanted, f"{kind}ListChanged")])


async def listen(site: Site, request: Id, wanted: Filter, outlet: Outlet, ear: Ear) -> None:
    """Hold a stream open and tell of every wanted change, until it is left or we close; raises Fault."""
    if len(wanted.resourceSubscriptions) > MOST:
        raise Fault(INVALID_PARAMS, f"params.notifications.resourceSubscriptions: over {MOST}")
    site.library.listen(ear)
    try:
        await _subscribe(site, wanted, ear)
        await outlet.send(
            [mcp.notice("notifications/subscriptions/acknowledged", request, notifications=wanted)]
        )
        await relay(site, ear, outlet, lambda kind, uri: mcp.changed(kind, uri, request))
        await outlet.finish((), None if ear.bell.cracked else mcp.listen_over(request, site.info))
    finally:
        site.library.leave(ear)


async def relay(site: Site, ear: Ear, outlet: Outlet, render: Render) -> None:
    """Send what an ear hears, and keep the stream alive between, until it is left, cracked or we close."""
    bell = ear.bell
    site.bells.append(bell)
    try:
        while not outlet.gone and not bell.cracked and site.engine.closing is None:
            await site.bell_or_beat(bell)
            if outlet.gone or bell.cracked:
                return  # what is new is kept for another stream
            if news := [render(kind, uri) for kind, uri in ear.take()]:
                await outlet.send(news)
            else:
                await outlet.keep_alive()
    finally:
        site.bells.remove(bell)


def _for(site: Site, terms: dict[str, Any]) -> dict[str, Any]:
    """How long a list holds: not at all while a server has yet to say what it has, or tabs come and go."""
    is_lasting = site.library.is_known and not (site.browser is not None and site.browser.is_used)
    return terms if is_lasting else {**terms, "ttlMs": 0}


async def _subscribe(site: Site, wanted: Filter, ear: Ear) -> None:
    """Watch the resources that are wanted; those that nobody tells of are left out of what is wanted."""
    uris = list(dict.fromkeys(wanted.resourceSubscriptions))
    tried = await asyncio.gather(*(site.library.watch(uri, ear) for uri in uris), return_exceptions=True)
    for wrong in tried:
        if wrong is not None and not isinstance(wrong, Fault):
            raise wrong
    wanted.resourceSubscriptions = [uri for uri, wrong in zip(uris, tried, strict=True) if wrong is None]
