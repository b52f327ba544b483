"""What the engine needs of the world, as Protocols: a clock, a journal, providers and their runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Raw, Struct

from afoot.core.facts import NOTHING, Answer, Entry, Limits, Question, Result, Sample


class Handle(Protocol):
    """Something that can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time, in seconds since 1970, that never jumps."""

    def now(self) -> float: ...

    def at(self, when: float, then: Callable[[], object]) -> Handle: ...


class Tool(Struct, frozen=True):
    """A tool as it is offered: its name, its schemas, its limits. `definition` is what a model sees."""

    name: str
    server: str
    definition: Raw  # {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons"}
    limits: Limits = Limits()
    concurrency: int = 0  # 0: no limit
    queue: int = 1000
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    lifecycle: str = "off"  # off, stages
    requires: Mapping[str, object] = {}
    digest: str = ""


class Report(Struct, frozen=True):
    """What a tool says of its progress, before any hygiene; `data` and `partial` are encoded JSON."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING


class Run(Protocol):
    """One attempt of one call, as its provider sees it. All of it must be used on the engine's loop."""

    @property
    def id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def cancelled(self) -> str | None: ...

    @property
    def resumed_from(self) -> Raw: ...

    def report(self, progress: float | None, total: float | None, message: str | None) -> None: ...

    def content(self, report: Report) -> None: ...

    def alive(self) -> None: ...

    def log(self, text: str, level: str, logger: str) -> None: ...

    def ask(self, question: Question) -> Awaitable[Answer]: ...


Work = Callable[[Run], Awaitable[Result]]


class Provider(Protocol):
    """Runs tools of one kind."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool]: ...

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one call, its arguments checked; raises ToolError.validation."""
        ...


class Query(Struct, frozen=True, omit_defaults=True):
    """Which calls of the history are wanted, newest first."""

    text: str = ""
    tool: str = ""
    server: str = ""
    state: str = ""
    outcome: str = ""
    caller: str = ""
    before: float | None = None
    limit: int = 100


class Row(Struct, frozen=True, omit_defaults=True):
    """A call in a list: enough for a line."""

    id: str
    tool: str
    server: str
    caller: str
    opened: float
    state: str = "queued"
    outcome: str | None = None
    finished: float | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    started: float | None = None


class Batch(Struct):
    """What one loop pass adds to the history. Writing an entry, sample or row again changes nothing."""

    entries: list[Entry] = []
    samples: list[Sample] = []
    rows: dict[str, Row] = {}


class Journal(Protocol):
    """Keeps facts. `epoch` changes whenever positions start anew."""

    @property
    def epoch(self) -> str: ...

    @property
    def position(self) -> int:
        """The number of the last fact written, in one series for the whole journal."""
        ...

    def write(self, batch: Batch) -> Awaitable[None] | None:
        """Record a batch whole or not at all: now, or when the awaitable is done; raises StoreError."""
        ...

    def facts(self, call: str, after: int = 0) -> Awaitable[list[Entry]]: ...

    def samples(self, call: str) -> Awaitable[list[Sample]]: ...

    def since(self, position: int, limit: int = 1000) -> Awaitable[list[tuple[int, Entry]]]: ...

    def find(self, query: Query) -> Awaitable[list[Row]]: ...

    def unfinished(self) -> Awaitable[list[str]]: ...

    def close(self) -> Awaitable[None]: ...
