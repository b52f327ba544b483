"""What the engine needs of the world, as Protocols: a clock, a journal, providers and their runs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from math import inf
from typing import Protocol

from msgspec import Raw, Struct

from afoot.core.call import Call
from afoot.core.facts import NOTHING, Answer, Entry, Limits, Question, Result, Sample
from afoot.core.redact import USUAL


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
    server_concurrency: int = 0  # of all tools of its server together
    queue: int = 1000
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    lifecycle: str = "off"  # off, stages
    requires: Mapping[str, object] = {}
    digest: str = ""
    inner: str = ""  # its name at its provider, where that is another
    trusted: bool = True  # whether its annotations may lower what is asked, and let it run again
    approval: str = ""  # auto, ask, off; empty: by what it is
    usual: str = ""  # auto, ask, off: what it is by its kind, where nobody has set anything
    source: str = ""  # which page or plugin it is from: page:ORIGIN, plugin:NAME@HASH
    address: str = ""  # how settings may call it besides: ORIGIN/NAME
    gone: bool = False  # known, so that a call is told why it cannot run; offered no more
    starts: bool = False  # whether what runs it may have to be started first
    isolation: Mapping[str, float] = {}  # what a call may use in its child process; empty: it has none
    task: str = ""  # forbidden, optional, required; empty: by how long it usually takes
    on_disconnect: str = "cancel"  # or detach: it runs on for nobody
    join: str = ""  # or same-arguments: who asks for the same again gets the call that runs for nobody
    plain: bool = True  # whether it starts at once: no approval, no slot, nothing to start
    suspects: Callable[[Raw], object] = USUAL.scan(NOTHING)  # None: no secret in these arguments (S4)


class Report(Struct, frozen=True):
    """What a tool says of its progress, before any hygiene; `data` and `partial` are encoded JSON."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING


class Tapes(Protocol):
    """Takes down what is said on the wires of calls, where that is wanted."""

    def add(self, call: str, side: str, way: str, message: bytes) -> None: ...


class Run(Protocol):
    """One attempt of one call, as its provider sees it. All of it must be used on the engine's loop."""

    @property
    def id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def caller(self) -> str: ...

    @property
    def cancelled(self) -> str | None: ...

    @property
    def tapes(self) -> Tapes | None: ...

    @property
    def resumed_from(self) -> Raw: ...

    @property
    def trace(self) -> dict[str, str]:
        """What other servers are told of the trace that this is part of, for the `_meta` (V3)."""
        ...

    def report(self, progress: float | None, total: float | None, message: str | None) -> None: ...

    def content(self, report: Report) -> None: ...

    def alive(self) -> None: ...

    def log(self, text: str, level: str, logger: str) -> None: ...

    def ask(self, question: Question) -> Awaitable[Answer]: ...

    def budget(self) -> tuple[float | None, float]:
        """The idle limit, and the seconds that are left on the clock (C3)."""
        ...

    def waiting(self, message: str | None) -> None:
        """Somebody is asked further down, and what; None: no more. The clocks stand still meanwhile (C3)."""
        ...

    def hindered(self, by: str, hint: str) -> None:
        """Something slows it or stops it, and what to do about that; nothing: no more."""
        ...

    def spent(self, cpu_s: float) -> None:
        """So many more seconds of processor time were used, in a process of its own."""
        ...

    def call(self, tool: str, arguments: Raw, weight: float) -> Awaitable[Result]:
        """Call another tool below this call (P8); raises UnknownName, Refused, ToolError."""
        ...


Work = Callable[[Run], Awaitable[Result]]


class Start(Struct, frozen=True):
    """Something that is being started: `done` raises ToolError where it cannot be."""

    what: str  # "starting server files"
    done: Callable[[], Awaitable[None]]


class Provider(Protocol):
    """Runs tools of one kind."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool]: ...

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """The work of one call, its arguments checked; raises ToolError.validation.

        The work raises RunnerDied where what it ran on died: then it is known that nothing runs any more.
        """
        ...

    def start(self, tool: str, caller: str) -> "Start | None":
        """What must be up before this tool can run for this caller; None if everything is."""
        ...


class Hooks(Protocol):
    """What somebody else wants to see, or have a say in, before a call starts (K1)."""

    def before(self, call: Call, tool: Tool) -> Awaitable[Raw | None]:
        """The arguments as they are to be, None if unchanged; raises ToolError.refused."""
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
    parent: str = ""


class Purge(Struct, frozen=True):
    """Which calls of the history are to go: by one of these. One that has not ended never goes (H6)."""

    calls: Sequence[str] = ()
    before: float | None = None  # opened and ended before
    keep: int | None = None  # all but so many, the newest
    most_bytes: int | None = None  # the oldest, until the history is no larger
    spare: Set[str] = frozenset()  # these never
    claimed: float = inf  # tasks, and calls with a key, go only if they ended before


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
    approved: str = ""  # user, allowlist, auto, none; empty: nobody wrote it down
    parent: str = ""  # the call that made it


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

    def children(self, call: str) -> Awaitable[tuple[int, int]]:
        """How many calls that are over a call has made, and how many of them did not end well."""
        ...

    def purge(self, rule: Purge) -> Awaitable[int]:
        """Take out some calls that are to go; gives how many, 0 when all have gone. Raises StoreError."""
        ...

    def close(self) -> Awaitable[None]: ...
