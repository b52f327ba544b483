"""Who is told of changes: one ear a listener, one subscription a resource however many ears it has."""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol

from afoot.engine.bell import Bell
from afoot.errors import AfootError
from afoot.wire import shelf as wire
from afoot.wire.jsonrpc import INTERNAL_ERROR, Fault

LISTS = ("tools", "prompts", "resources")
SUBSCRIBE_S = 60.0  # a server may have to be started for it

News = tuple[str, str | None]


class Source(Protocol):
    """What can be subscribed to."""

    @property
    def name(self) -> str: ...

    def subscribe(self, uri: str) -> Awaitable[object]: ...

    def unsubscribe(self, uri: str) -> Awaitable[object]: ...


class Ear:
    """What one listener has yet to be told: each change once, however often it happened (P5)."""

    __slots__ = ("_news", "_wants", "bell")

    def __init__(self, bell: Bell, wants: Sequence[str] = LISTS) -> None:
        self.bell = bell
        self._wants = frozenset(wants)
        self._news: dict[News, None] = {}

    def tell(self, kind: str, uri: str | None = None) -> None:
        """Something changed."""
        if uri is not None or kind in self._wants:
            self._news[kind, uri] = None
            self.bell.ring()

    def take(self) -> list[News]:
        """What changed since the last time."""
        news = list(self._news)
        self._news.clear()
        return news


class _Watch:
    """One resource that somebody listens to."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.ears: set[Ear] = set()
        self.source: Source | None = None
        self.ready: asyncio.Task[None] | None = None

    def concerns(self, uri: str | None) -> bool:
        """Whether a change of this one is one of ours; it may lie below the one that was asked for."""
        return uri is None or uri == self.uri or uri.startswith(self.uri.rstrip("/") + "/")


class Watches:
    """The resources that somebody listens to."""

    def __init__(self) -> None:
        self._by_uri: dict[str, _Watch] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}

    async def add(self, uri: str, ear: Ear, holders: Sequence[Source]) -> None:
        """Listen to a resource at the first of these that lets us; raises Fault."""
        watch = self._by_uri.get(uri)
        if watch is None:
            watch = self._by_uri[uri] = _Watch(uri)
            watch.ready = _quietly(self._subscribe(watch, holders))
        watch.ears.add(ear)
        assert watch.ready is not None
        try:
            await asyncio.shield(watch.ready)  # others wait for it too
        except BaseException:
            self.drop(uri, ear)
            raise

    def drop(self, uri: str, ear: Ear) -> None:
        """This ear is not interested any more; the last one ends the subscription."""
        watch = self._by_uri.get(uri)
        if watch is None:
            return
        watch.ears.discard(ear)
        if not watch.ears:
            del self._by_uri[uri]
            self._leaving[uri] = task = _quietly(self._unsubscribe(watch))
            task.add_done_callback(lambda _: self._left(uri, task))

    def leave(self, ear: Ear) -> None:
        """This ear is not interested in anything any more."""
        for uri in [uri for uri, watch in self._by_uri.items() if ear in watch.ears]:
            self.drop(uri, ear)

    def changed(self, source: Source, uri: str | None) -> None:
        """A source says that a resource is another one now."""
        for watch in self._by_uri.values():
            if watch.source is source and watch.concerns(uri):
                for ear in watch.ears:
                    ear.tell("resource", uri or watch.uri)

    def move(self, came: Sequence[Source]) -> None:
        """Servers came anew: what was subscribed at one of the same name is subscribed there again."""
        named = {source.name: source for source in came}
        for watch in self._by_uri.values():
            source = watch.source and named.get(watch.source.name)
            if source is not None and source is not watch.source:
                watch.ready = _quietly(self._subscribe(watch, [source]))

    async def _subscribe(self, watch: _Watch, holders: Sequence[Source]) -> None:
        if leaving := self._leaving.get(watch.uri):
            await asyncio.wait([leaving])  # else its unsubscribing could overtake us
        fault = wire.unknown(watch.uri)
        for source in holders:
            try:
                async with asyncio.timeout(SUBSCRIBE_S):
                    await source.subscribe(watch.uri)
            except Fault as wrong:
                fault = wrong
            except (AfootError, OSError) as error:
                why = str(error) or f"no answer within {SUBSCRIBE_S:g} s"
                fault = Fault(INTERNAL_ERROR, f"server {source.name}: {why}", status=200)
            else:
                watch.source = source
                return
        raise fault

    async def _unsubscribe(self, watch: _Watch) -> None:
        assert watch.ready is not None
        await asyncio.wait([watch.ready])
        if watch.source is not None:
            with suppress(Fault, AfootError, OSError):  # a server that is down has forgotten it
                async with asyncio.timeout(SUBSCRIBE_S):
                    await watch.source.unsubscribe(watch.uri)

    def _left(self, uri: str, task: asyncio.Task[None]) -> None:
        if self._leaving.get(uri) is task:
            del self._leaving[uri]


def _quietly(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task whose error is told to whoever waits for it, and is no news if nobody does."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _: task.cancelled() or task.exception())
    return task
