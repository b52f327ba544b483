"""Resources and prompts over the operator's API: listed, read and filled in, ours and those of servers."""

from typing import Any

from msgspec import Struct

from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.api.views import call_view
from afoot.serve.mcp.era_2026 import listed_name
from afoot.serve.mcp.lookups import fetch_lookup
from afoot.wire.resources import JsonObject, Lookup
from afoot.wire.results import Capabilities


class SubscriptionView(Struct, frozen=True):
    """A resource that clients subscribed to, and how many did."""

    uri: str
    clients: int


class ResourceList(Struct, frozen=True):
    """All resources and templates, as MCP lists them, each with its `server`.

    `problems`: functions that could not be offered, and what ours hide of servers. `subscriptions`: empty
    for callers that may not watch others.
    """

    resources: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    subscriptions: list[SubscriptionView]
    problems: list[str] = []


class PromptList(Struct, frozen=True):
    """All prompts, as MCP lists them, each with its `server`."""

    prompts: list[dict[str, Any]]


class ReadRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A resource to read."""

    uri: str


class GetPromptRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt to fill in."""

    name: str
    arguments: dict[str, Any] = {}


async def index(request: ApiRequest) -> None:
    """Every resource and template."""
    request.query()
    catalog = request.gateway.resource_catalog
    resources, templates = _visible(request, "resources"), _visible(request, "templates")
    subscriptions = [
        SubscriptionView(uri, clients)
        for uri, clients in catalog.subscriptions.watched()
        if not request.only_caller
    ]
    await request.answer(200, ResourceList(resources, templates, subscriptions, catalog.problems()))


async def index_prompts(request: ApiRequest) -> None:
    """List the prompts of all servers."""
    request.query()
    await request.answer(200, PromptList(_visible(request, "prompts")))


async def read(request: ApiRequest) -> None:
    """Read a resource: its contents, or with `Prefer: respond-async` the call, if it is ours."""
    want = await request.body(ReadRequest)
    await _look_up(request, "resources/read", want.uri, {"uri": want.uri})


async def get_prompt(request: ApiRequest) -> None:
    """Fill in a prompt: its messages, or with `Prefer: respond-async` the call, if it is ours."""
    want = await request.body(GetPromptRequest)
    await _look_up(request, "prompts/get", want.name, {"name": want.name, "arguments": want.arguments})


def _visible(request: ApiRequest, kind: str) -> list[JsonObject]:
    """The entries of a list whose scopes the caller has."""
    hidden = request.gateway.function_offers.hidden_from(request.origin)
    items = request.gateway.resource_catalog.with_servers(kind)
    return [one for one in items if listed_name(one) not in hidden]


async def _look_up(request: ApiRequest, method: str, subject: str, params: JsonObject) -> None:
    gateway = request.gateway
    lookup = Lookup(0, method, params, subject, request.principal.caller, Capabilities())
    is_alone = "respond-async" in request.header(b"prefer").lower()
    own = gateway.function_offers
    if own.find(lookup) is None:
        found = await fetch_lookup(gateway, lookup)
        if found.get("resultType", "complete") == "input_required":
            raise ApiError(
                422, f"{subject} asks its caller something first, which only an MCP client answers"
            )
        await request.answer(200, found)
        return
    live = own.submit(lookup, request.origin)
    if not is_alone:
        await request.answer(200, await own.answer_of(live, method))
        return
    await gateway.wait_until_recorded()  # an acknowledged call is not lost (H1)
    place = (b"location", f"/api/calls/{live.call.id}".encode())
    applied = (b"preference-applied", b"respond-async")
    await request.answer(202, call_view(live.call, gateway.engine.clock.now()), place, applied)
