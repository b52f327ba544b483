"""What servers offer besides tools, all of them together: prompts, resources and who completes them (U5)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Protocol

from afoot.core.facts import Answer, Question
from afoot.engine.catalog import Catalog
from afoot.errors import UnknownName
from afoot.serve.shelf_news import Ear, Watches
from afoot.wire import shelf as wire
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.shelf import Item, Lookup
from afoot.wire.template import matches

Asker = Callable[[Question], Awaitable[Answer]]
OUT = ("disabled", "unusable")  # a server in such a state offers nothing
LONGEST = 4096  # a URI that is longer is compared with no template


class Shelf(Protocol):
    """One server, as far as it offers more than tools; its lists stay known while it is down."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def capabilities(self) -> Mapping[str, object]:
        """What it said that it can; empty while it has said nothing."""
        ...

    @property
    def resources(self) -> Sequence[Item]: ...

    @property
    def templates(self) -> Sequence[Item]: ...

    @property
    def prompts(self) -> Sequence[Item]: ...

    def request(
        self, method: str, params: Item, caller: str = "", ask: Asker | None = None
    ) -> Awaitable[Item]:
        """Ask it; raises Fault for its own error, AfootError if it cannot be asked.

        `ask`: who answers what a server of the handshake era asks meanwhile; without, it is refused.
        """
        ...

    def listen(self, callback: Callable[[str, str | None], object]) -> Callable[[], object]:
        """Be told of changes: of `prompts`, of `resources`, or of the one `resource` of a URI."""
        ...

    def subscribe(self, uri: str) -> Awaitable[object]: ...

    def unsubscribe(self, uri: str) -> Awaitable[object]: ...


class Library:
    """All shelves of a gateway as one, and who listens to them."""

    def __init__(self, catalog: Catalog, source: Callable[[], Sequence[Shelf]]) -> None:
        self._source = source
        self._known: dict[int, tuple[Shelf, Callable[[], object]]] = {}
        self._ears: dict[int, Ear] = {}
        self.watches = Watches()
        catalog.listen(self._tools_changed)

    @property
    def shelves(self) -> Sequence[Shelf]:
        """The servers there are now, in their order."""
        current = [shelf for shelf in self._source() if shelf.state not in OUT]
        if [id(shelf) for shelf in current] != list(self._known):
            self._settle(current)
        return current

    def capabilities(self) -> Item:
        """What we can say that we can. A server that has said nothing yet may be able to do anything."""
        said = [shelf.capabilities for shelf in self.shelves]
        return wire.capabilities(
            subscribe=any(_can_subscribe(one) for one in said),
            completions=any(not one or "completions" in one for one in said),
        )

    @property
    def is_known(self) -> bool:
        """Whether every server has said what it has; if not, lists may soon be longer."""
        return all(shelf.capabilities for shelf in self.shelves)

    def prompts(self) -> list[Item]:
        """Every prompt, under the name that it has here."""
        return [{**item, "name": name} for name, (_, item) in self._prompts().items()]

    def resources(self) -> list[Item]:
        """Every resource once: where servers share a URI, the first server's is listed, and read."""
        return _once((item for shelf in self.shelves for item in shelf.resources), "uri")

    def templates(self) -> list[Item]:
        """Every template once."""
        return _once((item for shelf in self.shelves for item in shelf.templates), "uriTemplate")

    def get(self, name: str) -> Shelf | None:
        """A server by its name."""
        return next((shelf for shelf in self.shelves if shelf.name == name), None)

    def find(self, lookup: Lookup) -> list[tuple[Shelf, str]]:
        """Who may know what is looked up, and under which name, in the order to ask them; raises Fault."""
        ref = lookup.params.get("ref")
        if lookup.method == "prompts/get" or (isinstance(ref, dict) and "name" in ref):
            return [self._prompt(lookup.subject)]
        return [(shelf, lookup.subject) for shelf in self.holders(lookup.subject)]

    def holders(self, uri: str) -> list[Shelf]:
        """Who may have this resource: whoever lists it, else whose template fits, else everybody with any."""
        shelves = self.shelves
        listed = [one for one in shelves if any(item.get("uri") == uri for item in one.resources)]
        if listed:
            return listed[:1]
        fitting = [one for one in shelves if any(_fits(item, uri) for item in one.templates)]
        found = fitting or [one for one in shelves if not one.capabilities or "resources" in one.capabilities]
        if not found:
            raise wire.unknown(uri)
        return found

    def listen(self, ear: Ear) -> None:
        """Tell this ear of changes from now on, until `leave`."""
        _ = self.shelves  # whoever came since the last look is listened to
        self._ears[id(ear)] = ear

    def leave(self, ear: Ear) -> None:
        """Tell this ear nothing more."""
        self._ears.pop(id(ear), None)
        self.watches.leave(ear)

    async def watch(self, uri: str, ear: Ear) -> None:
        """Tell this ear also when this resource changes; raises Fault."""
        holders = [shelf for shelf in self.holders(uri) if _can_subscribe(shelf.capabilities)]
        if not holders:
            raise Fault(INVALID_PARAMS, f"params.uri: its server does not tell when {uri!r} changes")
        await self.watches.add(uri, ear, holders)

    def _prompt(self, name: str) -> tuple[Shelf, str]:
        known = self._prompts()
        if name in known:
            shelf, item = known[name]
            return shelf, str(item["name"])
        server, _, own = name.partition("/")  # as tools, they are always found under server/name
        for shelf, item in known.values():
            if shelf.name == server and item["name"] == own:
                return shelf, own
        error = UnknownName("prompt", name, known)
        raise Fault(INVALID_PARAMS, f"params.name: {error}", data={"nearest": error.nearest})

    def _prompts(self) -> dict[str, tuple[Shelf, Item]]:
        """Prompts by the names they have here: their own, with the server's before it where two share one."""
        found: dict[str, dict[str, tuple[Shelf, Item]]] = {}
        for shelf in self.shelves:
            for item in shelf.prompts:
                if isinstance(name := item.get("name"), str):
                    found.setdefault(name, {}).setdefault(shelf.name, (shelf, item))
        return {
            name if len(same) == 1 else f"{server}__{name}": entry
            for name, same in found.items()
            for server, entry in same.items()
        }

    def _settle(self, current: Sequence[Shelf]) -> None:
        """Listen to those who came, and no more to those who went."""
        kept = {id(shelf) for shelf in current}
        gone = [self._known.pop(key) for key in list(self._known) if key not in kept]
        came = [shelf for shelf in current if id(shelf) not in self._known]
        for _, forget in gone:
            forget()
        self._known = {
            id(shelf): self._known.get(id(shelf)) or (shelf, shelf.listen(self._hearer(shelf)))
            for shelf in current
        }
        for kind in ("prompts", "resources"):
            if any(getattr(shelf, kind) for shelf in [*came, *(shelf for shelf, _ in gone)]):
                self._tell(kind)
        self.watches.move(came)

    def _hearer(self, shelf: Shelf) -> Callable[[str, str | None], None]:
        def heard(kind: str, uri: str | None) -> None:
            if kind == "resource":
                self.watches.changed(shelf, uri)
            elif kind != "tools":  # the catalog tells of these, when it has the new ones
                self._tell(kind)

        return heard

    def _tools_changed(self) -> None:
        _ = self.shelves  # servers that come or go change the catalog too
        self._tell("tools")

    def _tell(self, kind: str) -> None:
        for ear in list(self._ears.values()):
            ear.tell(kind)


def _once(items: Iterator[Item], key: str) -> list[Item]:
    found: dict[str, Item] = {}
    for item in items:
        if isinstance(name := item.get(key), str):
            found.setdefault(name, item)
    return list(found.values())


def _fits(item: Item, uri: str) -> bool:
    template = str(item.get("uriTemplate", ""))
    return template == uri or (len(uri) <= LONGEST and matches(template, uri))


def _can_subscribe(capabilities: Mapping[str, object]) -> bool:
    resources = capabilities.get("resources")
    return not capabilities or (isinstance(resources, Mapping) and bool(resources.get("subscribe")))
