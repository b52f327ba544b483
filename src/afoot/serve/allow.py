"""The allowlist over the operator's API: what needs no asking any more, listed, added, revoked (A4)."""

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

from afoot.core.facts import NOTHING, Answer
from afoot.core.ports import Tool
from afoot.engine.policy import OPERATOR, Allowed, entry
from afoot.engine.review import CONNECTION, EVER, Decision
from afoot.errors import UnknownName
from afoot.serve.request import Request, Wrong
from afoot.serve.site import Site


class AllowView(Struct, frozen=True):
    """An entry: which tools, as they were defined, may run without asking; for whom and how long."""

    id: str
    server: str
    tools: dict[str, str]  # to the digest of the definition that was allowed
    changed: list[str]  # those of them that are defined otherwise now, or gone: they are asked again
    scope: str
    words: str
    since: float
    by: str
    until: float | None
    caller: str | None
    arguments: str | UnsetType = UNSET  # how they begin


class Allowlist(Struct, frozen=True):
    """Everything that needs no asking, oldest first."""

    allowed: list[AllowView]


class Add(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to need no asking from now on: a tool or a server, as it is defined today."""

    tool: str = ""
    server: str = ""
    scope: Literal["", "arguments", "tool", "server"] = ""
    lasts: str | float = field(name="for", default=EVER)
    arguments: Raw | UnsetType = UNSET


async def index(request: Request) -> None:
    """What may run without asking."""
    request.query()
    await request.answer(200, Allowlist(listed(request.site)))


async def add(request: Request) -> None:
    """Allow a tool, or all tools of a server, as they are defined now."""
    want = await request.body(Add)
    site = request.site
    said = _decision(want)
    made = "", NOTHING if want.arguments is UNSET else want.arguments, site.engine.clock.now()
    answer = Answer(by=OPERATOR, who=request.identity)
    allowed = entry(said, _meant(site, want, said.scope), answer, made)
    site.engine.policy.allow(allowed)
    await request.answer(201, view(site, allowed))


async def revoke(request: Request) -> None:
    """Revoke an entry: what it covered is asked again."""
    request.query()
    await request.answer(200, view(request.site, request.site.engine.policy.revoke(request.names["id"])))


def listed(site: Site) -> list[AllowView]:
    """The entries in force; raises AfootError."""
    policy = site.engine.policy
    policy.refresh()
    policy.expire(site.engine.clock.now())
    return [view(site, one) for one in sorted(policy.entries, key=lambda one: one.at)]


def view(site: Site, one: Allowed) -> AllowView:
    """The entry as JSON."""
    now = {tool.inner or tool.name: tool.digest for tool in _of(site, one.server)}
    return AllowView(
        one.id, one.server, one.definitions,
        [name for name, digest in one.definitions.items() if now.get(name) != digest],
        one.scope, _words(one), one.at, one.by, one.until, one.caller or None, one.shown or UNSET,
    )  # fmt: skip


def _words(one: Allowed) -> str:
    if one.scope == "server":
        what = f"every tool that {one.source or one.server} had then ({len(one.definitions)})"
    else:
        what = ", ".join(f"{one.server}/{name}" for name in one.definitions)
    exactly = f" with exactly {one.shown}" if one.arguments else ""
    whose = f", for the connection of {one.caller}" if one.caller else ""
    return f"{what}{exactly}{whose}{', for a time' if one.until else '' if one.caller else ', for ever'}"


def _decision(want: Add) -> Decision:
    has_arguments = want.arguments is not UNSET
    scope = want.scope or ("arguments" if has_arguments else "server" if want.server else "tool")
    if bool(want.tool) == bool(want.server):
        raise Wrong(422, "name either tool or server", fields=["tool", "server"])
    if (scope == "server") != bool(want.server):
        raise Wrong(422, f"scope: {scope} does not fit what is named", fields=["scope"])
    if (scope == "arguments") != has_arguments:
        raise Wrong(422, "arguments: belong to the scope arguments, and only to it", fields=["arguments"])
    if isinstance(want.arguments, Raw) and bytes(want.arguments).lstrip()[:1] != b"{":
        raise Wrong(422, "arguments: must be an object", fields=["arguments"])
    lasts = want.lasts
    if lasts == CONNECTION or (isinstance(lasts, str) and lasts != EVER):
        raise Wrong(422, f'for: must be "{EVER}" or a number of seconds', fields=["for"])
    if not isinstance(lasts, str) and not 0 < lasts <= 1e9:
        raise Wrong(422, "for: must be a number of seconds over 0", fields=["for"])
    return Decision("always", scope=scope, lasts=lasts)


def _meant(site: Site, want: Add, scope: str) -> list[Tool]:
    if scope != "server":
        return [site.engine.catalog.get(want.tool)[1]]
    tools = list(site.engine.catalog)
    known = sorted({name for tool in tools for name in _whose(tool)})
    if any(tool.source and tool.server == want.server for tool in tools):
        raise Wrong(422, f"server: name a page or a plugin: {', '.join(known)}", fields=["server"])
    found = [tool for tool in tools if want.server in _whose(tool)]
    if not found:
        raise UnknownName("server", want.server, known)
    return found


def _whose(tool: Tool) -> tuple[str, ...]:
    """Whose tool it is: its server's; a browser's is its page's or its plugin's, and no other's (A1)."""
    return (tool.source, tool.source.removeprefix("page:")) if tool.source else (tool.server,)


def _of(site: Site, server: str) -> list[Tool]:
    return [tool for tool in site.engine.catalog if tool.server == server]
