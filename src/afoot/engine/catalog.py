"""Which tools there are, who runs them, and with which limits."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.core.ports import Provider, Tool
from afoot.errors import UnknownName


class Limiter(Struct, frozen=True):
    """Settings for the limits of tools: per tool, per server, and a hard maximum for all (C3)."""

    tools: Mapping[str, Mapping[str, float]] = {}
    servers: Mapping[str, Mapping[str, float]] = {}
    max_idle_s: float | None = None
    max_ceiling_s: float | None = None

    def settle(self, tool: Tool) -> Tool:
        """The tool with the limits in force: the nearest setting wins, the maximum caps it."""
        changes = {**self.servers.get(tool.server, {}), **self.tools.get(tool.name, {})}
        limits = replace(tool.limits, **changes) if changes else tool.limits
        return replace(tool, limits=lower(limits, self.max_idle_s, self.max_ceiling_s))


def lower(limits: Limits, idle_s: float | None, ceiling_s: float | None) -> Limits:
    """The same limits, lowered to these where they are higher; nothing is ever raised."""
    if idle_s is None and ceiling_s is None:
        return limits
    idle = limits.idle_s
    if idle_s is not None:
        idle = idle_s if idle is None else min(idle, idle_s)
    ceiling = limits.ceiling_s if ceiling_s is None else min(limits.ceiling_s, ceiling_s)
    return replace(limits, idle_s=idle, ceiling_s=ceiling)


class Catalog:
    """The tools on offer, by name. `version` rises with every change, and listeners are told."""

    def __init__(self, limiter: Limiter | None = None) -> None:
        self._limiter = limiter or Limiter()
        self._providers: dict[str, Provider] = {}
        self.known: dict[str, tuple[Provider, Tool]] = {}  # every tool, and who runs it
        self._listeners: list[Callable[[], object]] = []
        self.version = 0

    def put(self, provider: Provider) -> None:
        """Offer a provider's tools, in place of an older provider of the same name."""
        self._providers[provider.name] = provider
        self._renew()

    def remove(self, name: str) -> None:
        """Offer a provider's tools no more; raises UnknownName."""
        if self._providers.pop(name, None) is None:
            raise UnknownName("server", name, self._providers)
        self._renew()

    def get(self, name: str) -> tuple[Provider, Tool]:
        """A tool and who runs it; raises UnknownName with the nearest names."""
        try:
            return self.known[name]
        except KeyError:
            raise UnknownName("tool", name, self.known) from None

    def __iter__(self) -> Iterator[Tool]:
        return iter([tool for _, tool in self.known.values()])

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Be told of changes; the answer stops it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _renew(self) -> None:
        self.known = dict(self._entries(self._providers.values()))
        self.version += 1
        for listener in list(self._listeners):
            listener()

    def _entries(self, providers: Iterable[Provider]) -> Iterator[tuple[str, tuple[Provider, Tool]]]:
        for provider in providers:
            for tool in provider.tools():
                yield tool.name, (provider, self._limiter.settle(tool))
