"""An engine with tools that are plain functions of a run, and what the tests want to know of its calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from msgspec import Raw, json

from afoot.core.facts import NOTHING, Entry, Fact, Question, Reading, Released, Result
from afoot.core.ports import Batch, Journal, Report, Run, RunnerStart, Tool, Work
from afoot.engine.admission import Slots
from afoot.engine.catalog import Catalog, EffectiveSettings
from afoot.engine.engine import Engine, Submission
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.errors import StoreError, ToolError
from afoot.store.memory import MemoryJournal

Body = Callable[[Run], Awaitable[object]]
F = TypeVar("F", bound=Fact)


class Bench:
    """A provider whose tools a test writes; `broken` arguments are refused before anything runs."""

    name = "bench"

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._bodies: dict[str, Body] = {}
        self.prepared: list[bytes] = []
        self.starting: Callable[[str, str], RunnerStart | None] = lambda tool, caller: None

    def add(self, body: Body, name: str = "tool", **options: Any) -> None:
        """Offer one more tool; options are those of `Tool`."""
        options = {"digest": f"digest of {name}", **options}
        self._tools[name] = Tool(name, self.name, Raw(b"{}"), **options)
        self._bodies[name] = body

    def tools(self) -> Sequence[Tool]:
        return list(self._tools.values())

    def prepare(self, tool: str, arguments: Raw) -> Work:
        if b"broken" in bytes(arguments):
            raise ToolError.validation("arguments.broken: not wanted here")
        if b"crash" in bytes(arguments):
            raise KeyError("a check of the author's own")
        self.prepared.append(bytes(arguments))
        return partial(_work, self._bodies[tool])

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        return self.starting(tool, caller)


async def _work(body: Body, run: Run) -> Result:
    value = await body(run)
    return value if isinstance(value, Result) else text(str(value))


def text(words: str) -> Result:
    """A result of one text."""
    return Result(content(words))


def content(words: str) -> Raw:
    """A content list of one text."""
    return Raw(json.encode([{"type": "text", "text": words}]))


@asynccontextmanager
async def engine_of(
    body: Body, *, journal: Journal | None = None, terms: EffectiveSettings | None = None, **options: Any
) -> AsyncIterator[Engine]:
    """An engine with one tool, "tool"; `slots` may be among its options."""
    slots = options.pop("slots", 0)
    bench = Bench()
    bench.add(body, **options)
    async with offering(bench, journal=journal, terms=terms, slots=slots) as engine:
        yield engine


@asynccontextmanager
async def offering(
    bench: Bench, *, journal: Journal | None = None, terms: EffectiveSettings | None = None, slots: int = 0
) -> AsyncIterator[Engine]:
    """An engine with the tools of this bench."""
    async with Engine(journal or MemoryJournal(), Catalog(terms), Slots(slots)) as engine:
        engine.catalog.put(bench)
        yield engine


async def over(engine: Engine, live: LiveCall) -> LiveCall:
    """Wait until the call's work is over and that is recorded."""
    wakeup = Wakeup()
    with engine.follow(live, wakeup.wake, None):
        while live.call.id in engine:
            await wakeup.wait()
            await asyncio.sleep(0)
    return live


async def called(body: Body, **options: Any) -> LiveCall:
    """One call from its beginning to the end of its work."""
    async with engine_of(body, **options) as engine:
        return await over(engine, engine.submit(Submission("tool")))


def took(live: LiveCall) -> float:
    """Seconds from the call to its end."""
    assert live.call.end is not None
    return round(live.call.end.at - live.call.opened.at, 3)


def since(live: LiveCall, at: float) -> float:
    """An instant, counted from the call."""
    return round(at - live.call.opened.at, 3)


def facts(live: LiveCall, kind: type[F]) -> list[F]:
    """The facts of one kind that were recorded."""
    return [entry.fact for entry in live.backlog if isinstance(entry.fact, kind)]


def released(live: LiveCall) -> tuple[float, str]:
    """When and how the slot was given back."""
    fact = facts(live, Released)[0]
    return since(live, fact.at), fact.how


async def watched(engine: Engine, live: LiveCall, hz: float, pause_s: float = 0.0) -> list[Fact | Reading]:
    """What a follower gets, to the end; it takes `pause_s` to read each time."""
    wakeup, items = Wakeup(), list[Fact | Reading]()
    with engine.follow(live, wakeup.wake, hz) as follower:
        while live.call.id in engine or live.recorded > follower.seq:
            await wakeup.wait()
            items += follower.take().items
            await asyncio.sleep(pause_s)
    return items


def readings(items: Sequence[Fact | Reading]) -> list[float | None]:
    """The numbers among what a follower got."""
    return [item.progress for item in items if isinstance(item, Reading)]


def form(key: str, schema: object = None) -> Question:
    """A question; by default any object answers it."""
    return Question("", key, "form", "sure?", NOTHING if schema is None else Raw(json.encode(schema)))


def partial_report(words: str) -> Report:
    """A partial result."""
    return Report(partial=content(words))


class Journalist(MemoryJournal):
    """A journal that can fail or be slow."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = False
        self.delay_s = 0.0
        self.batches = 0

    def write(self, batch: Batch) -> Any:
        """Refuse, take a while, or write at once."""
        self.batches += 1
        if self.delay_s:
            return self._later(batch)
        if self.failing:
            raise StoreError("the disk is full")
        return super().write(batch)

    async def _later(self, batch: Batch) -> None:
        await asyncio.sleep(self.delay_s)
        if self.failing:
            raise StoreError("the disk is full")
        super().write(batch)


async def kinds(journal: Journal, call: str) -> list[str]:
    """The names of a call's facts in the journal."""
    return [type(entry.fact).__name__ for entry in await journal.facts(call)]


def seqs(entries: Sequence[Entry]) -> list[int]:
    """The places of these facts."""
    return [entry.seq for entry in entries]


async def works(run: Run) -> str:
    """A tool that does something."""
    return "done"
