"""Which tools there are, under which names, and who runs them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256

from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.ports import Provider, Tool
from afoot.engine.terms import Terms
from afoot.errors import Ambiguous, Refused, UnknownName
from afoot.tables import OWN

LONGEST = 64  # characters of a name that every host takes
MARK = 8  # of them for what tells tools of the same name apart


class Catalog:
    """The tools on offer, by name. `version` rises with every change, and listeners are told."""

    def __init__(self, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        self._providers: dict[str, Provider] = {}
        self.known: dict[str, tuple[Provider, Tool]] = {}  # every tool, and who runs it
        self._off: set[str] = set()
        self._listeners: list[Callable[[], object]] = []
        self.version = 0

    def put(self, provider: Provider) -> None:
        """Offer a provider's tools, in place of an older provider of the same name."""
        self._providers[provider.name] = provider
        self.renew()

    def remove(self, name: str) -> None:
        """Offer a provider's tools no more; raises UnknownName."""
        if self._providers.pop(name, None) is None:
            raise UnknownName("server", name, self._providers)
        self.renew()

    def get(self, name: str) -> tuple[Provider, Tool]:
        """A tool and who runs it, by its name or as server/name; raises UnknownName, Ambiguous, Refused."""
        if name in self.known:
            return self.known[name]
        meant = [found for found in self.known.values() if name in _other_names(found[1])]
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise Ambiguous("tool", name, [tool.name for _, tool in meant])
        if name in self._off:
            raise Refused(f'tool {name} is switched off (approval = "off")')
        server, slash, _ = name.partition("/")
        if slash and server not in self._providers:
            raise UnknownName("server", server, self._providers)
        others = set().union(*(_other_names(tool) for tool in self))
        raise UnknownName(
            "tool", name, [*self.known, *sorted(one for one in others if slash or "/" not in one)]
        )

    def __iter__(self) -> Iterator[Tool]:
        return iter([tool for _, tool in self.known.values() if not tool.gone])

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Be told of changes; the answer stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def renew(self) -> None:
        """Take in what providers offer now, on the terms in force."""
        known, self._off = dict[str, tuple[Provider, Tool]](), set[str]()
        for provider, tool in self._named():
            settled = self.terms.settle(tool)
            if settled.approval == "off":
                self._off |= {tool.name, *_other_names(tool)}
            else:
                known[tool.name] = provider, settled
        self.known = known
        self.version += 1
        for listener in list(self._listeners):
            listener()

    def _named(self) -> Iterator[tuple[Provider, Tool]]:
        """Every tool under a name of its own: where names collide, those of servers get a prefix (U3).

        Pages come last: whatever a page calls its tool, nobody else's name changes (B2).
        """
        every = [(provider, tool) for provider in self._providers.values() for tool in provider.tools()]
        offered = [(provider, tool) for provider, tool in every if not tool.source]
        times = Counter(tool.name for _, tool in offered)
        taken = {tool.name for provider, tool in offered if times[tool.name] == 1 or provider.name == OWN}
        for provider, tool in offered:
            if tool.name not in taken or (times[tool.name] > 1 and provider.name != OWN):
                tool = _prefixed(tool, taken)
                taken.add(tool.name)
            yield provider, tool
        taken |= times.keys()
        for provider, tool in every:
            if tool.source:
                if tool.name in taken:
                    tool = _marked(tool, taken)
                taken.add(tool.name)
                yield provider, tool


def _prefixed(tool: Tool, taken: set[str]) -> Tool:
    """The tool under a name that says whose it is."""
    server = re.sub(r"[^A-Za-z0-9_-]", "_", tool.server)
    name = f"{server[: max(8, LONGEST - 2 - len(tool.name))]}__{tool.name}"
    number = 2
    while name in taken:
        name, number = f"{name.removesuffix(f'_{number - 1}')}_{number}", number + 1
    return _renamed(tool, name)


def _marked(tool: Tool, taken: set[str]) -> Tool:
    """The tool of a page under a name that is nobody else's: its own, and what is always the same for it."""
    digest = sha256(f"{tool.source} {tool.name}".encode()).hexdigest()
    name = f"{tool.name[: LONGEST - MARK - 1]}_{digest[:MARK]}"
    number = 2
    while name in taken:
        name, number = f"{name[: LONGEST - 3]}_{number}", number + 1
    return _renamed(tool, name)


def _renamed(tool: Tool, name: str) -> Tool:
    definition = {**json.decode(tool.definition), "name": name}
    return replace(tool, name=name, inner=tool.name, definition=Raw(json.encode(definition)))


def _other_names(tool: Tool) -> set[str]:
    """How else a tool may be called: with its server, and by its own name where it has another here."""
    own = tool.inner or tool.name
    return {f"{tool.server}/{own}"} if tool.source else {f"{tool.server}/{own}", own}
