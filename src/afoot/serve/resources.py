"""`ResourceCatalog` is what all servers offer besides tools: prompts, resources, and who completes them (U5).

`ChangeListener` collects the changes that one client is to be told of. `ResourceSubscriptions` subscribes to
a resource once, however many clients listen to it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from afoot.config.tables import LOCAL_SERVER
from afoot.core.facts import Answer, Question
from afoot.core.names import SEPARATOR, ServerNames
from afoot.core.ports import CallOrigin
from afoot.engine.catalog import Catalog
from afoot.engine.followers import Wakeup
from afoot.errors import AfootError, UnknownName
from afoot.wire import resources as wire
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fault
from afoot.wire.resources import JsonObject, Lookup, matches_template
from afoot.wire.results import APPS_EXTENSION, TASKS_EXTENSION

log = logging.getLogger("afoot.serve")

LISTS = ("tools", "prompts", "resources")
SUBSCRIBE_S = 60.0  # a server may have to be started for it
UNAVAILABLE = ("disabled", "unusable")  # a server in such a state offers nothing
MAX_FRAMES = 1000  # log messages and requests that wait for a client which does not read
URI_MAX = 4096  # a URI that is longer is compared with no template, and cannot be watched
MAX_SUBSCRIPTIONS = 1000  # resources that one listener may watch
MAX_WATCHED_CHARS = (
    16 * 1024 * 1024
)  # of the URIs that all clients watch: each has as many sessions as it likes
MAX_CHANGES = 1000  # that wait for a client which does not read; more are told as changes of what it watches

# Of the templates of one server for one URI, in characters of the URI times expressions: about 10 ms. Its
# 20,000 templates would otherwise take seconds each time that somebody reads what no server lists.
MAX_TEMPLATE_STEPS = 200_000
MAX_COMPARED_CHARS = (
    200_000  # of the URIs of one server that are compared with the templates of our functions
)
MAX_SHARED = 10  # resources of a server that are told one by one because an earlier server lists them too
MAX_TOLD = 100  # problems that are logged; a hostile server could go on with new ones
MAX_SHOWN = 200  # characters of a URI that are shown

Change = tuple[str, str | None]  # its kind, and the URI of a resource
AskCaller = Callable[[Question], Awaitable[Answer]]


class ServerResources(Protocol):
    """One server, as far as it offers more than tools. Its lists stay known while it is down."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def capabilities(self) -> Mapping[str, object]:
        """The capabilities that the server declared; empty before it declared any."""
        ...

    @property
    def resources(self) -> Sequence[JsonObject]: ...

    @property
    def templates(self) -> Sequence[JsonObject]: ...

    @property
    def prompts(self) -> Sequence[JsonObject]: ...

    def request(
        self, method: str, params: JsonObject, caller: str = "", ask: AskCaller | None = None
    ) -> Awaitable[JsonObject]:
        """Send a request; raises Fault for the server's own error, AfootError if it cannot be asked.

        `ask`: answers what a server of the handshake era asks meanwhile; without it, that is refused.
        """
        ...

    def listen(self, callback: Callable[[str, str | None], object]) -> Callable[[], object]:
        """Call `callback` for each change: of `prompts`, of `resources`, or of one `resource` by its URI."""
        ...

    def subscribe(self, uri: str) -> Awaitable[object]: ...

    def unsubscribe(self, uri: str) -> Awaitable[object]: ...


class OwnResources(ServerResources, Protocol):
    """The resources and prompts of our own functions, which come before those of all servers."""

    @property
    def is_empty(self) -> bool: ...

    @property
    def problems(self) -> list[str]: ...

    def has(self, uri: str) -> bool:
        """Whether a function reads this URI."""
        ...

    def is_hidden(self, uri: str, origin: CallOrigin) -> bool:
        """Whether a function reads this URI only for callers with scopes that this one lacks (F1)."""
        ...


class ChangeListener:
    """The changes that one client has yet to be told of: each once, however often it happened (P5)."""

    __slots__ = ("_changes", "_frames", "_wants", "origin", "uris", "wakeup")

    def __init__(self, wakeup: Wakeup, wants: Sequence[str] = LISTS) -> None:
        self.wakeup = wakeup
        self._wants = frozenset(wants)
        self._changes: dict[Change, None] = {}
        self._frames: deque[bytes] = deque(maxlen=MAX_FRAMES)
        self.uris: set[str] = set()  # of the resources that it watches
        self.origin: CallOrigin | None = None  # of the client's newest request; its scopes decide

    def tell_resource(self, uri: str, watched: str) -> None:
        """Take note that a resource has changed, which is `watched` itself or below that."""
        is_kept = len(uri) <= URI_MAX and len(self._changes) < MAX_CHANGES
        self.tell("resource", uri if is_kept else watched)

    def tell(self, kind: str, uri: str | None = None) -> None:
        """Take note of a change, if it is wanted."""
        if uri is not None or kind in self._wants:
            self._changes[kind, uri] = None
            self.wakeup.wake()

    def add_frame(self, frame: bytes) -> None:
        """Have a message for this client that no change stands for; the oldest goes if too many wait."""
        self._frames.append(frame)
        self.wakeup.wake()

    def take_frames(self) -> list[bytes]:
        """The messages since the last time."""
        frames = list(self._frames)
        self._frames.clear()
        return frames

    def take(self) -> list[Change]:
        """The changes since the last time."""
        changes = list(self._changes)
        self._changes.clear()
        return changes


class _WatchedResource:
    """One resource that clients listen to."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.listeners: set[ChangeListener] = set()
        self.server: ServerResources | None = None  # where it is subscribed
        self.ready: asyncio.Task[None] | None = None

    def concerns(self, uri: str | None) -> bool:
        """Whether a change of this URI is one of this resource, or of one below it."""
        return uri is None or uri == self.uri or uri.startswith(self.uri.rstrip("/") + "/")


class ResourceSubscriptions:
    """The resources that clients listen to."""

    def __init__(
        self, is_hidden: Callable[[str, ChangeListener], bool] = lambda _uri, _listener: False
    ) -> None:
        """`is_hidden` says whether a resource is not for this listener."""
        self._is_hidden = is_hidden
        self._by_uri: dict[str, _WatchedResource] = {}
        self._chars = 0  # of these URIs
        self._leaving: dict[str, asyncio.Task[None]] = {}

    async def add(self, uri: str, listener: ChangeListener, holders: Sequence[ServerResources]) -> None:
        """Listen to a resource at the first of these servers that allows it; raises Fault."""
        if uri not in listener.uris and len(listener.uris) >= MAX_SUBSCRIPTIONS:
            raise Fault(INVALID_PARAMS, f"params.uri: over {MAX_SUBSCRIPTIONS} subscriptions")
        watch = self._by_uri.get(uri)
        if watch is None and self._chars + len(uri) > MAX_WATCHED_CHARS:
            raise Fault(INVALID_PARAMS, "params.uri: too many resources are watched by all clients together")
        listener.uris.add(uri)
        if watch is None:
            watch = self._by_uri[uri] = _WatchedResource(uri)
            self._chars += len(uri)
            watch.ready = _background(self._subscribe(watch, holders))
        watch.listeners.add(listener)
        assert watch.ready is not None
        try:
            await asyncio.shield(watch.ready)  # others wait for it too
        except BaseException:
            self.drop(uri, listener)
            raise

    def drop(self, uri: str, listener: ChangeListener) -> None:
        """End the interest of a listener in a resource; the last one ends the subscription."""
        listener.uris.discard(uri)
        watch = self._by_uri.get(uri)
        if watch is None:
            return
        watch.listeners.discard(listener)
        if not watch.listeners:
            del self._by_uri[uri]
            self._chars -= len(uri)
            self._leaving[uri] = task = _background(self._unsubscribe(watch))
            task.add_done_callback(lambda _: self._unsubscribed(uri, task))

    def leave(self, listener: ChangeListener) -> None:
        """End the interest of a listener in every resource."""
        for uri in list(listener.uris):
            self.drop(uri, listener)

    def changed(self, server: ServerResources, uri: str | None) -> None:
        """Tell the listeners that a resource of this server has changed."""
        for watch in self._by_uri.values():
            if watch.server is server and watch.concerns(uri):
                for listener in watch.listeners:
                    if not self._is_hidden(uri or watch.uri, listener):
                        listener.tell_resource(uri or watch.uri, watch.uri)

    def watched(self) -> list[tuple[str, int]]:
        """The resources that clients listen to, each with the number of clients."""
        return [(uri, len(watch.listeners)) for uri, watch in self._by_uri.items()]

    def move(self, came: Sequence[ServerResources]) -> None:
        """Renew the subscriptions of a server at the new server of the same name."""
        named = {server.name: server for server in came}
        for watch in self._by_uri.values():
            server = watch.server and named.get(watch.server.name)
            if server is not None and server is not watch.server:
                watch.ready = _background(self._subscribe(watch, [server]))

    async def _subscribe(self, watch: _WatchedResource, holders: Sequence[ServerResources]) -> None:
        if leaving := self._leaving.get(watch.uri):
            await asyncio.wait([leaving])  # else its unsubscribing could overtake us
        fault = wire.unknown_resource(watch.uri)
        for server in holders:
            try:
                async with asyncio.timeout(SUBSCRIBE_S):
                    await server.subscribe(watch.uri)
            except Fault as wrong:
                fault = wrong
            except (AfootError, OSError) as error:
                why = str(error) or f"no answer within {SUBSCRIBE_S:g} s"
                fault = Fault(INTERNAL_ERROR, f"server {server.name}: {why}", status=200)
            else:
                watch.server = server
                return
        raise fault

    async def _unsubscribe(self, watch: _WatchedResource) -> None:
        assert watch.ready is not None
        await asyncio.wait([watch.ready])
        if watch.server is not None:
            with suppress(Fault, AfootError, OSError):  # a server that is down has forgotten it
                async with asyncio.timeout(SUBSCRIBE_S):
                    await watch.server.unsubscribe(watch.uri)

    def _unsubscribed(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(uri) is task:
            del self._leaving[uri]


class ResourceCatalog:
    """The prompts and resources of all servers of a gateway, and the clients that listen to them."""

    def __init__(
        self,
        catalog: Catalog,
        list_servers: Callable[[], Sequence[ServerResources]],
        own: OwnResources | None = None,
    ) -> None:
        self._list_others = list_servers
        self._own = own
        self._told: set[str] = set()  # problems that were logged
        self._problems: tuple[list[object], list[str]] = ([], [])  # and the lists of which they are
        self._known: dict[int, tuple[ServerResources, Callable[[], object]]] = {}
        self._listeners: dict[int, ChangeListener] = {}
        self.subscriptions = ResourceSubscriptions(self._is_hidden)
        catalog.listen(self._tools_changed)

    @property
    def resource_servers(self) -> Sequence[ServerResources]:
        """The servers there are now, in their order."""
        current = [server for server in self._all_servers() if server.state not in UNAVAILABLE]
        if [id(server) for server in current] != list(self._known):
            self._follow_servers(current)
        return current

    def capabilities(self) -> JsonObject:
        """The capabilities that we declare. A server that has declared nothing yet may have all of them."""
        said = [server.capabilities for server in self.resource_servers]
        return wire.server_capabilities(
            subscribe=any(_can_subscribe(one) for one in said),
            completions=any(not one or "completions" in one for one in said),
            extensions=_all_extensions(said),
        )

    @property
    def is_known(self) -> bool:
        """Whether every server has declared what it has; if not, lists may soon be longer."""
        return all(server.capabilities for server in self.resource_servers)

    @property
    def is_lasting(self) -> bool:
        """Whether a client may keep a list: every server is known, and none says that its lists change."""
        return self.is_known and not any(map(_has_changing_lists, self.resource_servers))

    def prompts(self) -> list[JsonObject]:
        """Every prompt, under the name that it has here."""
        return [{**item, "name": name} for name, (_, item) in self._prompts().items()]

    def resources(self) -> list[JsonObject]:
        """Every resource once: if servers share a URI, that of the first by name is listed, and read."""
        return _unique((item for server in self.resource_servers for item in server.resources), "uri")

    def templates(self) -> list[JsonObject]:
        """Every template once."""
        return _unique((item for server in self.resource_servers for item in server.templates), "uriTemplate")

    def with_servers(self, kind: str) -> list[JsonObject]:
        """Every one of `resources`, `templates` or `prompts` as it is listed, and whose it is."""
        if kind == "prompts":
            return [
                {**item, "name": name, "server": server.name}
                for name, (server, item) in self._prompts().items()
            ]
        items = ({**item, "server": one.name} for one in self.resource_servers for item in getattr(one, kind))
        return _unique(items, "uri" if kind == "resources" else "uriTemplate")

    def get(self, name: str) -> ServerResources | None:
        """A server by its name."""
        return next((server for server in self.resource_servers if server.name == name), None)

    def find(self, lookup: Lookup) -> list[tuple[ServerResources, str]]:
        """The servers that may know the answer, in the order to ask them, and the name each has for it.

        Raises Fault.
        """
        ref = lookup.params.get("ref")
        if lookup.method == "prompts/get" or (isinstance(ref, dict) and "name" in ref):
            return [self._prompt(lookup.subject)]
        return [(server, lookup.subject) for server in self.holders(lookup.subject)]

    def holders(self, uri: str) -> list[ServerResources]:
        """The servers that may have this resource; raises Fault if none has any.

        It is our own functions, if one reads it; else the first that lists it; else those with a template
        that fits; else all that have resources.
        """
        shelves = self.resource_servers
        if self._own is not None and self._own.has(uri):
            return [self._own]
        listed = [one for one in shelves if any(item.get("uri") == uri for item in one.resources)]
        if listed:
            return listed[:1]
        fitting = [one for one in shelves if _has_template_for(one.templates, uri)]
        found = fitting or [one for one in shelves if not one.capabilities or "resources" in one.capabilities]
        found = [one for one in found if one is not self._own]  # it has said that it has none
        if not found:
            raise self.unknown(uri)
        return found

    def unknown(self, uri: str) -> Fault:
        """The error for a resource that nobody has; it names the nearest that are listed."""
        listed = [str(item.get("uri")) for item in self.resources()]
        return wire.unknown_resource(
            uri, [*listed, *(str(item.get("uriTemplate")) for item in self.templates())]
        )

    def problems(self) -> list[str]:
        """The functions that could not be offered, and the resources and prompts that are hidden by others.

        Our functions hide those of servers (F3), and a server those of the servers behind it.
        """
        lists: list[object] = [] if self._own is None else [self._own.problems]
        for server in self.resource_servers:
            lists += (server, server.resources, server.templates, server.prompts)
        known, found = self._problems
        # Anybody may ask for the gateway's health, and a server lists up to 20,000 resources.
        if len(known) != len(lists) or any(
            a is not b and (a or b) for a, b in zip(known, lists, strict=True)
        ):
            found = [*self._hidden_by_functions(), *self._shared_by_servers()]
            self._problems = lists, found
        return found

    def _shared_by_servers(self) -> Iterator[str]:
        """The resources and templates that several servers list: the first server by name is read."""
        first: dict[str, str] = {}
        for server in self.resource_servers:
            shared = [
                (kind, uri)
                for kind, uri in _listed_uris(server)
                if first.setdefault(uri, server.name) != server.name
                and first[uri] != LOCAL_SERVER  # told with those that our functions hide
            ]
            for kind, uri in shared[:MAX_SHARED]:
                where = f"server {server.name}: {kind} {_shown(uri)}"
                yield f"{where} is read at server {first[uri]} instead, which lists it too"
            if len(shared) > MAX_SHARED:
                rest = len(shared) - MAX_SHARED
                yield f"server {server.name}: {rest} more resources are read at other servers instead"

    def _hidden_by_functions(self) -> Iterator[str]:
        own = self._own
        if own is None:
            return
        yield from own.problems
        names = {str(item.get("name")) for item in own.prompts}
        others = [server for server in self.resource_servers if server is not own]
        for server in others:
            hidden = _hidden_uris(own, server)
            for uri in hidden[:MAX_SHARED]:
                what = f"resource {_shown(uri)} is read by a function of this gateway instead"
                yield f"server {server.name}: {what}"
            if len(hidden) > MAX_SHARED:
                rest = len(hidden) - MAX_SHARED
                what = f"{rest} more resources are read by functions of this gateway instead"
                yield f"server {server.name}: {what}"
        for server in others:
            for name in dict.fromkeys(str(item.get("name")) for item in server.prompts):
                if name in names:
                    text = f"prompt {name} has its prefix here: a function has that name"
                    yield f"server {server.name}: {text}"

    def listen(self, listener: ChangeListener) -> None:
        """Tell this listener of changes from now on, until `leave`."""
        _ = self.resource_servers  # servers that came since the last look are listened to
        self._listeners[id(listener)] = listener

    def leave(self, listener: ChangeListener) -> None:
        """Stop telling this listener of changes."""
        self._listeners.pop(id(listener), None)
        self.subscriptions.leave(listener)

    async def watch(self, uri: str, listener: ChangeListener) -> None:
        """Tell this listener of changes of this resource, too; raises Fault."""
        if len(uri) > URI_MAX:
            raise Fault(INVALID_PARAMS, f"params.uri: over {URI_MAX} characters")
        holders = [server for server in self.holders(uri) if _can_subscribe(server.capabilities)]
        if not holders:
            raise Fault(INVALID_PARAMS, f"params.uri: its server does not tell when {uri!r} changes")
        await self.subscriptions.add(uri, listener, holders)

    def _is_hidden(self, uri: str, listener: ChangeListener) -> bool:
        own, origin = self._own, listener.origin
        return own is not None and origin is not None and own.is_hidden(uri, origin)

    def _all_servers(self) -> list[ServerResources]:
        own: list[ServerResources] = [] if self._own is None or self._own.is_empty else [self._own]
        return [*own, *self._list_others()]

    def _prompt(self, name: str) -> tuple[ServerResources, str]:
        known = self._prompts()
        # As tools, they are always found under server/name, whatever another server calls its own (U12).
        for server, item in known.values():
            if name == f"{server.name}/{item['name']}":
                return server, str(item["name"])
        if name in known:
            server, item = known[name]
            return server, str(item["name"])
        error = UnknownName("prompt", name, known)
        raise Fault(INVALID_PARAMS, f"params.name: {error}", data={"nearest": error.nearest})

    def _prompts(self) -> dict[str, tuple[ServerResources, JsonObject]]:
        """Prompts by the names they have here: their own, or with the prefix of their server.

        They get the prefix if two share a name, or if the name is in the range of another server (U12). The
        prompts of our own functions never do (F3).
        """
        names = ServerNames(server.name for server in self._all_servers())
        found: dict[str, dict[str, tuple[ServerResources, JsonObject]]] = {}
        for server in self.resource_servers:
            for item in server.prompts:
                if isinstance(name := item.get("name"), str):
                    found.setdefault(name, {}).setdefault(server.name, (server, item))
        plain = {
            name: LOCAL_SERVER if LOCAL_SERVER in same else next(iter(same))
            for name, same in found.items()
            if LOCAL_SERVER in same or (len(same) == 1 and not names.is_foreign(name, next(iter(same))))
        }
        known: dict[str, tuple[ServerResources, JsonObject]] = {}
        for name, same in found.items():
            for server_name, entry in same.items():
                shown = name if plain.get(name) == server_name else f"{server_name}{SEPARATOR}{name}"
                if shown in known or (shown in plain and shown != name):
                    shown = names.prefixed(server_name, name, is_marked=True)
                known[shown] = entry
        return known

    def _follow_servers(self, current: Sequence[ServerResources]) -> None:
        """Listen to servers that came, and no longer to those that went."""
        kept = {id(server) for server in current}
        gone = [self._known.pop(key) for key in list(self._known) if key not in kept]
        came = [server for server in current if id(server) not in self._known]
        for _, forget in gone:
            forget()
        self._known = {
            id(server): self._known.get(id(server)) or (server, server.listen(self._change_handler(server)))
            for server in current
        }
        for kind in ("prompts", "resources"):
            if any(getattr(server, kind) for server in [*came, *(server for server, _ in gone)]):
                self._tell(kind)
        self.subscriptions.move(came)

    def _change_handler(self, server: ServerResources) -> Callable[[str, str | None], None]:
        def heard(kind: str, uri: str | None) -> None:
            if kind == "resource":
                self.subscriptions.changed(server, uri)
            elif kind != "tools":  # the catalog tells of these, when it has the new ones
                self._tell(kind)

        return heard

    def _tools_changed(self) -> None:
        _ = self.resource_servers  # servers that come or go change the catalog too
        self._tell("tools")

    def _tell(self, kind: str) -> None:
        for problem in self.problems():
            if problem not in self._told and len(self._told) < MAX_TOLD:
                self._told.add(problem)
                log.warning("%s", problem)
        for listener in list(self._listeners.values()):
            listener.tell(kind)


def _hidden_uris(own: OwnResources, server: ServerResources) -> list[str]:
    """The resources of a server that a function reads, as far as they can be compared in time."""
    found: list[str] = []
    chars = 0
    for item in server.resources:
        uri = str(item.get("uri"))
        chars += len(uri)
        if chars > MAX_COMPARED_CHARS:
            break
        if own.has(uri):
            found.append(uri)
    return found


def _listed_uris(server: ServerResources) -> Iterator[tuple[str, str]]:
    """The URIs and templates of a server, each with its kind."""
    for kind, key, items in (
        ("resource", "uri", server.resources),
        ("template", "uriTemplate", server.templates),
    ):
        for item in items:
            if isinstance(uri := item.get(key), str):
                yield kind, uri


def _shown(uri: str) -> str:
    """A URI for people: on one line, and not too long."""
    text = "".join(one if one.isprintable() else "?" for one in uri[: MAX_SHOWN + 1])
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _unique(items: Iterator[JsonObject], key: str) -> list[JsonObject]:
    found: dict[str, JsonObject] = {}
    for item in items:
        if isinstance(name := item.get(key), str):
            found.setdefault(name, item)
    return list(found.values())


def _has_template_for(templates: Sequence[JsonObject], uri: str) -> bool:
    """Whether one of a server's templates fits a URI, as far as they can be compared with it in time."""
    steps = MAX_TEMPLATE_STEPS
    for item in templates:
        template = str(item.get("uriTemplate", ""))
        if template == uri:
            return True
        if len(uri) > URI_MAX or not uri.startswith(template.partition("{")[0]):
            continue
        steps -= len(uri) * (1 + template.count("{"))
        if steps < 0:
            return False
        if matches_template(template, uri):
            return True
    return False


def _has_changing_lists(server: ServerResources) -> bool:
    return any(isinstance(can, dict) and can.get("listChanged") for can in server.capabilities.values())


def _can_subscribe(capabilities: Mapping[str, object]) -> bool:
    resources = capabilities.get("resources")
    return not capabilities or (isinstance(resources, Mapping) and bool(resources.get("subscribe")))


def _all_extensions(said: Sequence[Mapping[str, object]]) -> JsonObject:
    """The extensions of all servers; tasks are of this hop. One that has declared nothing may have apps."""
    found: JsonObject = {APPS_EXTENSION: {}} if not all(said) else {}
    for one in said:
        declared = one.get("extensions")
        if isinstance(declared, dict):
            found |= {str(name): value for name, value in declared.items() if name != TASKS_EXTENSION}
    return found


def _background(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task whose error reaches those who wait for it, and is not logged if nobody does."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _: task.cancelled() or task.exception())
    return task
