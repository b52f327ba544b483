"""The allowlist over the operator's API: tools that run without approval, listed, added and revoked (A4)."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from afoot.core.facts import NOTHING, Answer
from afoot.core.names import own_name
from afoot.core.ports import Tool
from afoot.engine.approval.allowlist import AllowlistEntry, allowlist_entry
from afoot.engine.approval.question import CONNECTION, EVER, OPERATOR, Decision
from afoot.errors import UnknownName
from afoot.serve.api.request import ApiError, ApiRequest
from afoot.serve.gateway_state import GatewayState


class AllowEntryView(Struct, frozen=True):
    """An entry: which tools, as they were defined then, may run without asking; for whom and how long."""

    id: str
    server: str
    tools: dict[str, str]  # by name: the digest of the definition that was allowed
    changed: list[str]  # tools whose definition has changed since, or that are gone: they need approval again
    scope: str
    words: str
    since: float
    by: str
    until: float | None
    caller: str | None
    arguments: str | UnsetType = UNSET  # the beginning of the allowed arguments


class Allowlist(Struct, frozen=True):
    """Every entry, oldest first."""

    allowed: list[AllowEntryView]


class AllowRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A new entry: a tool or a server, as it is defined now."""

    tool: str = ""
    server: str = ""
    scope: Literal["", "arguments", "tool", "server"] = ""
    lasts: str | float = field(name="for", default=EVER)
    arguments: Raw | UnsetType = UNSET


async def index(request: ApiRequest) -> None:
    """The tools that may run without asking."""
    request.query()
    await request.answer(200, Allowlist(current_entries(request.gateway)))


async def add(request: ApiRequest) -> None:
    """Allow a tool, or all tools of a server, as they are defined now."""
    want = await request.body(AllowRequest)
    gateway = request.gateway
    said = _decision(want)
    arguments = NOTHING if want.arguments is UNSET else want.arguments
    now = gateway.engine.clock.now()
    answer = Answer(by=OPERATOR, who=request.identity)
    allowed = allowlist_entry(said, _covered_tools(gateway, want, said.scope), answer, "", arguments, now)
    gateway.engine.policy.allow(allowed)
    await request.answer(201, entry_view(gateway, allowed))


async def revoke(request: ApiRequest) -> None:
    """Revoke an entry: its tools need approval again."""
    request.query()
    await request.answer(
        200, entry_view(request.gateway, request.gateway.engine.policy.revoke(request.names["id"]))
    )


def current_entries(gateway: GatewayState) -> list[AllowEntryView]:
    """The entries in force; raises AfootError."""
    policy = gateway.engine.policy
    policy.refresh()
    policy.expire(gateway.engine.clock.now())
    return [entry_view(gateway, one) for one in sorted(policy.entries, key=lambda one: one.at)]


def entry_view(gateway: GatewayState, one: AllowlistEntry) -> AllowEntryView:
    """The entry as JSON."""
    now = {own_name(tool): tool.digest for tool in _tools_of(gateway, one.server)}
    return AllowEntryView(
        one.id, one.server, one.definitions,
        [name for name, digest in one.definitions.items() if now.get(name) != digest],
        one.scope, _describe(one), one.at, one.by, one.until, one.caller or None, one.shown or UNSET,
    )  # fmt: skip


def _describe(one: AllowlistEntry) -> str:
    if one.scope == "server":
        what = f"every tool that {one.source or one.server} had then ({len(one.definitions)})"
    else:
        what = ", ".join(f"{one.server}/{name}" for name in one.definitions)
    exactly = f" with exactly {one.shown}" if one.arguments else ""
    whose = f", for the connection of {one.caller}" if one.caller else ""
    return f"{what}{exactly}{whose}{', for a time' if one.until else '' if one.caller else ', for ever'}"


def _decision(want: AllowRequest) -> Decision:
    has_arguments = want.arguments is not UNSET
    scope = want.scope or ("arguments" if has_arguments else "server" if want.server else "tool")
    if bool(want.tool) == bool(want.server):
        raise ApiError(422, "name either tool or server", fields=["tool", "server"])
    if (scope == "server") != bool(want.server):
        raise ApiError(422, f"scope: {scope} does not fit what is named", fields=["scope"])
    if (scope == "arguments") != has_arguments:
        raise ApiError(422, "arguments: belong to the scope arguments, and only to it", fields=["arguments"])
    if isinstance(want.arguments, Raw) and bytes(want.arguments).lstrip()[:1] != b"{":
        raise ApiError(422, "arguments: must be an object", fields=["arguments"])
    lasts = want.lasts
    if lasts == CONNECTION or (isinstance(lasts, str) and lasts != EVER):
        raise ApiError(422, f'for: must be "{EVER}" or a number of seconds', fields=["for"])
    if not isinstance(lasts, str) and not 0 < lasts <= 1e9:
        raise ApiError(422, "for: must be a number of seconds over 0", fields=["for"])
    return Decision("always", scope=scope, lasts=lasts)


def _covered_tools(gateway: GatewayState, want: AllowRequest, scope: str) -> list[Tool]:
    if scope != "server":
        return [gateway.engine.catalog.get(want.tool)[1]]
    tools = list(gateway.engine.catalog)
    known = sorted({name for tool in tools for name in _owner_names(tool)})
    if any(tool.source and tool.server == want.server for tool in tools):
        raise ApiError(422, f"server: name a page or a plugin: {', '.join(known)}", fields=["server"])
    found = [tool for tool in tools if want.server in _owner_names(tool)]
    if not found:
        raise UnknownName("server", want.server, known)
    return found


def _owner_names(tool: Tool) -> tuple[str, ...]:
    """The names of a tool's owner: its server; for a browser's tool its page or plugin, and no other (A1)."""
    return (tool.source, tool.source.removeprefix("page:")) if tool.source else (tool.server,)


def _tools_of(gateway: GatewayState, server: str) -> list[Tool]:
    return [tool for tool in gateway.engine.catalog if tool.server == server]
