"""The Protocols through which the engine uses all other parts: `Clock`, `Journal`, `Provider`, `Run`, hooks.

The structs beside them are what goes through these ports: tools, reports, queries, rows, batches.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from math import inf
from typing import Protocol

from msgspec import Raw, Struct, UnsetType

from afoot.core.call import Call, ProgressSeries
from afoot.core.facts import NOTHING, Answer, ChildSummary, Entry, Limits, Question, Result, Sample
from afoot.core.owner_commands import OwnerCommand
from afoot.core.redaction import DEFAULT_REDACTOR
from afoot.core.sealing_keys import SealingKey, SealingKeys


class TimerHandle(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A clock that never jumps, in seconds since 1970."""

    def now(self) -> float: ...

    def at(self, when: float, then: Callable[[], object]) -> TimerHandle: ...


class CallOrigin(Struct, frozen=True):
    """The origin of a call: how its caller reached the gateway, and what it proved. It is recorded nowhere.

    A call that goes on after a restart of the gateway has an empty one.
    """

    surface: str = ""  # mcp-http, mcp-stdio, mcp-connect, console, api, python
    client: str = ""  # the name of the client, in its own words
    version: str = ""  # of the client
    scopes: Set[str] = frozenset()
    is_owner: bool = False  # the gateway's own user proved to be there: no scope is needed
    claims: Mapping[str, object] = {}  # of its access token
    headers: Mapping[str, str] = {}  # those that `tool_headers` allows
    secrets: Set[str] = frozenset()  # texts in these headers that are kept and shown nowhere (S4)

    def of_client(self, client: str, version: str) -> "CallOrigin":
        """The same origin with the name of its client."""
        # Not `replace`, which takes three times as long: every call comes through here.
        return CallOrigin(
            self.surface, client, version, self.scopes, self.is_owner, self.claims, self.headers, self.secrets
        )

    def lacks(self, scopes: Sequence[str]) -> list[str]:
        """The scopes of these that the caller does not have."""
        return [] if self.is_owner else [one for one in scopes if one not in self.scopes]


class Tool(Struct, frozen=True):
    """A tool as it is offered: its name, its schemas, its limits. A model sees the `definition`."""

    name: str
    server: str
    definition: Raw  # {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons"}
    limits: Limits = Limits()
    concurrency: int = 0  # 0: no limit
    per_process: bool = False  # whether that is what one machine bears, so that it counts there alone
    server_concurrency: int = 0  # of all tools of its server together
    queue: int = 1000
    read_only: bool = False
    idempotent: bool = False
    destructive: bool = False
    lifecycle: str = "off"  # off, stages
    requires: Mapping[str, object] = {}
    scopes: Sequence[str] = ()  # that a caller must have; it does not see the tool without them
    digest: str = ""
    inner: str = ""  # its name at its provider, where that is another one
    alias: str = ""  # SERVER__NAME, by which settings and calls may name it, whatever it is called here
    bare: str = "anything"  # or stricter, nothing: what its own name, without its server, may set (U12)
    trusted: bool = True  # whether its annotations may lower what is asked, and let it run again
    approval: str = ""  # auto, ask, off; empty: by its annotations
    default_approval: str = (
        ""  # auto, ask, off: the approval of its kind of tool, where nobody has set anything
    )
    source: str = ""  # the page or plugin it is from: page:ORIGIN, plugin:NAME@HASH
    address: str = ""  # another name of it in settings: ORIGIN/NAME
    gone: bool = False  # offered no more; still known, so that a call is told why it cannot run
    starts: bool = False  # whether its server, child process or tab may have to be started first
    isolation: Mapping[str, float] = {}  # limits of a call in its child process; empty: it has none
    task: str = ""  # forbidden, optional, required; empty: by how long it usually takes
    on_disconnect: str = "cancel"  # or detach: it runs on after its caller has left
    join: str = ""  # or same-arguments: a caller that asks for the same again gets the detached call
    worker: str = ""  # the label of the workers that run it, in a cluster
    plain: bool = True  # whether it starts at once: no approval, no slot, nothing to start
    suspects: Callable[[Raw], object] = DEFAULT_REDACTOR.scan(
        NOTHING
    )  # None: no secret in these arguments (S4)


class Report(Struct, frozen=True):
    """A report of a tool, as it came; `data` and `partial` are encoded JSON."""

    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING
    more: Raw = NOTHING  # fields and `_meta` of a server's notification that are passed on as they came (U8)
    children: tuple[ChildSummary, ...] = ()  # calls at a gateway behind this one that have changed


class MessageLog(Protocol):
    """Keeps the messages on the wires of calls, where the settings want that."""

    def add(self, call: str, side: str, way: str, message: bytes) -> None: ...


class Run(Protocol):
    """One attempt of one call, as its provider sees it; to be used on the engine's loop alone."""

    @property
    def id(self) -> str: ...

    @property
    def attempt(self) -> int: ...

    @property
    def caller(self) -> str: ...

    @property
    def origin(self) -> CallOrigin: ...

    @property
    def cancelled(self) -> str | None: ...

    @property
    def wire_log(self) -> MessageLog | None: ...

    @property
    def resumed_from(self) -> Raw: ...

    @property
    def more(self) -> Raw:
        """Fields and `_meta` of the caller's request that are passed on to a server as they came (U8)."""
        ...

    @property
    def trace(self) -> dict[str, str]:
        """The trace of this call, for the `_meta` of requests to other servers (V3)."""
        ...

    def report(self, progress: float | None, total: float | None, message: str | None) -> None: ...

    def content(self, report: Report) -> None: ...

    def alive(self) -> None: ...

    def log(self, text: str, level: str, logger: str, more: Raw = NOTHING) -> None: ...

    def ask(self, question: Question) -> Awaitable[Answer]: ...

    def budget(self) -> tuple[float | None, float]:
        """Return the idle limit, and the seconds that are left on the clock (C3)."""
        ...

    def waiting(self, message: str | None) -> None:
        """Stop the clocks while the server asks somebody; None: it does no more (C3)."""
        ...

    def hindered(self, by: str, hint: str) -> None:
        """Say what slows or stops the tool, and what to do about it; both empty: nothing does any more."""
        ...

    def holds_loop(self) -> None:
        """Say, from any thread, that the tool holds the engine's loop now: this time is its own (G4)."""
        ...

    def resource_changed(self, uri: str) -> None:
        """Say that a resource of this gateway's own functions has changed (F3)."""
        ...

    def spent(self, cpu_s: float) -> None:
        """Add processor time that was used in a process of its own."""
        ...

    def call(self, tool: str, arguments: Raw, weight: float, key: str = "") -> Awaitable[Result]:
        """Call another tool below this call (P8); raises UnknownName, Refused, ToolError.

        `key` names the request, so that the next owner of this call finds the call that was made for it.
        """
        ...


Work = Callable[[Run], Awaitable[Result]]


# A request that opened a call: its id, the version of its protocol, and its progress token.
OpeningRequest = tuple[int | str, str, int | str | UnsetType]


class CallerPresence(Protocol):
    """The requests by which a call's caller follows it. `serve` keeps them; others only read this."""

    @property
    def can_ask(self) -> bool:
        """Whether the caller can be asked with a form now."""
        ...

    @property
    def is_followed(self) -> bool:
        """Whether a request of its caller follows the call here."""
        ...

    @property
    def opened_by(self) -> OpeningRequest | None:
        """The request that opened the call."""
        ...

    @property
    def series(self) -> ProgressSeries:
        """The progress numbers that the caller has been sent (P4)."""
        ...


class RunnerStart(Struct, frozen=True):
    """A start under way of what a tool runs on; `done` raises ToolError or RunnerDied where it fails."""

    what: str  # "starting server files"
    done: Callable[[], Awaitable[None]]


class Provider(Protocol):
    """Runs tools of one kind."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool]: ...

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """Check the arguments and return the work of one call; raises ToolError.validation.

        The work raises RunnerDied when its server, child process or tab died, so that nothing runs any more.
        """
        ...

    def start(self, tool: str, caller: str) -> "RunnerStart | None":
        """Return what must be started before this tool can run for this caller; None if everything runs.

        Once that is done, `tools` gives the tools as they are now: the call is judged by them (A7).
        """
        ...


class BeforeCallHooks(Protocol):
    """Hooks that see a call before it starts, and may refuse or change it (K1)."""

    def before(self, call: Call, tool: Tool) -> Awaitable[Raw | None]:
        """Return the changed arguments, None if unchanged; raises ToolError.refused."""
        ...


class QuestionHooks(Protocol):
    """Hooks that see a question before a person does, and may answer it (K1)."""

    def answer(self, call: Call, tool: Tool, question: Question) -> Awaitable[Answer | None]:
        """Return the answer; None if it is left to a person."""
        ...


class ClusterMemberInfo(Struct, frozen=True):
    """A gateway or a worker of a cluster, as it was heard of last."""

    id: str
    role: str  # gateway, worker
    left_s: float  # of its lease; below 0 it may be dead
    host: str = ""
    pid: int = 0
    version: str = ""
    url: str = ""
    calls: int = 0  # that it owns or runs
    slots: int = 0  # of a worker: calls at once
    draining: bool = False  # it takes no new calls
    lag: int = 0  # of a gateway: facts of the cluster that it does not know yet


class ClusterFigures(Struct, frozen=True):
    """The state of a gateway's part in its cluster, as it was at the last look."""

    is_heard: bool = False  # whether Redis answered
    lag: int = 0  # facts of the cluster that are on record, and not known here yet
    waiting: int = 0  # functions in the queue that no worker has begun
    taken_over: int = 0  # calls of gateways that died, since the start
    skew_s: float = 0.0  # by which the clock of Redis is ahead of this machine's


class KeyRotation(Struct, frozen=True):
    """A new sealing key, and how long the older ones open what they sealed."""

    id: str
    seals_in_s: float
    old_expire_s: float  # after the new one seals
    keys: int  # that open now


class SharedSessions(Protocol):
    """The sessions of the handshake era, as gateways of a cluster tell each other of them (D1).

    A session is named by a digest of its id.
    """

    def listen(self, take: Callable[[str, bytes], object]) -> None:
        """Give messages that clients sent to other gateways to this function; an empty one ends a session."""
        ...

    def pass_on(self, session: str, message: bytes) -> None:
        """Pass on what a client said, and this gateway did not expect."""
        ...

    def end(self, session: str, keep_s: float) -> Awaitable[None]:
        """Tell all gateways, for so long, that a session is over; raises StoreError."""
        ...

    def has_ended(self, session: str) -> Awaitable[bool]:
        """Whether a session was ended at any gateway; raises StoreError."""
        ...


class Cluster(Protocol):
    """The cluster, as the surfaces of one of its gateways see it."""

    @property
    def id(self) -> str:
        """The id of this gateway."""
        ...

    @property
    def figures(self) -> ClusterFigures:
        """The state of this gateway's part."""
        ...

    def members(self) -> Sequence[ClusterMemberInfo]:
        """The gateways and workers, as they were heard of last."""
        ...

    @property
    def sessions(self) -> SharedSessions:
        """What clients of the handshake era say to other gateways."""
        ...

    @property
    def sealing_keys(self) -> SealingKeys:
        """The keys that seal what clients keep, as this gateway read them last."""
        ...

    def find_key(self, id: str) -> Awaitable[SealingKey | None]:
        """The key with this id, which another gateway may have made just now; raises StoreError."""
        ...

    def rotate_keys(self, keep_s: float, by: str) -> Awaitable[KeyRotation]:
        """Make a new sealing key; raises Conflict, StoreError."""
        ...

    def hand_over(self) -> Awaitable[None]:
        """Leave the calls that can go on elsewhere to other gateways; raises StoreError."""
        ...

    def drain(self, name: str, by: str, *, drains: bool) -> Awaitable[ClusterMemberInfo]:
        """Have a member take no new calls, or take them again; raises CallerError, StoreError."""
        ...

    def declare_dead(self, name: str, by: str, *, force: bool) -> Awaitable[tuple[ClusterMemberInfo, int]]:
        """Take over the calls of a member that is gone; gives it, and how many of its calls came here.

        Raises CallerError, StoreError.
        """
        ...


class OtherGateways(Protocol):
    """The other gateways of a cluster, as the engine reaches those that own calls (D1)."""

    @property
    def id(self) -> str:
        """The id of this gateway."""
        ...

    @property
    def lives(self) -> Callable[[str], bool]:
        """Tell whether another gateway lives."""
        ...

    def send(self, call: str, command: OwnerCommand) -> None:
        """Send a command to the owner of a call. It is kept until the owner, whoever that is, takes it."""
        ...

    def sent(self) -> Awaitable[None]:
        """Wait until the commands so far are kept."""
        ...

    def caught_up(self) -> Awaitable[None]:
        """Wait until all is known here that was recorded before, but not for long; raises StoreError."""
        ...

    def turn(self, caller: str, key: str) -> AbstractAsyncContextManager[None]:
        """Let requests with one idempotency key take turns over all gateways.

        Inside, every call that was recorded before is known here.
        """
        ...


class CallQuery(Struct, frozen=True, omit_defaults=True):
    """A search for calls of the history, newest first."""

    text: str = ""
    tool: str = ""
    server: str = ""
    state: str = ""
    outcome: str = ""  # several are joined by commas
    caller: str = ""
    before: float | None = None
    limit: int = 100
    parent: str = ""
    after: float | None = None  # opened after: then the oldest of them are found, though newest first
    is_answered: bool = False  # its facts may have an answer; only the newest calls are searched for this
    since: float | None = None  # opened at this time or later
    ended_since: float | None = None  # ended at this time or later
    is_root: bool = False  # no other call made it
    is_asked: bool = False  # a person was asked, for an approval or with a form or link
    slower_than: Mapping[tuple[str, str], float] | None = None  # by server and tool: seconds on the clock
    sort: str = "-opened"  # or duration, tool, caller; with a minus the other way round
    skip: int = 0  # calls before the first that is wanted
    ids: Set[str] | None = None  # only these


class PurgeRule(Struct, frozen=True):
    """A rule by which calls of the history are taken out. One that has not ended always stays (H6)."""

    calls: Sequence[str] = ()
    before: float | None = None  # opened and ended before
    keep: int | None = None  # all but this many, the newest
    most_bytes: int | None = None  # the oldest, until the history is no larger
    spare: Set[str] = frozenset()  # calls that stay in any case
    claimed: float = inf  # tasks, and calls with a key, go only if they ended before


class CallRow(Struct, frozen=True, omit_defaults=True):
    """A call that has ended, as a line of a list."""

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
    approved: str = ""  # user, allowlist, auto, none; empty: an older version did not write it down
    parent: str = ""  # the call that made it
    key: str = ""  # the idempotency key that its caller chose
    ran_s: float | None = None  # seconds on the clock, without the time of people; None: it never started


class CallOutline(Struct, frozen=True):
    """A call that has ended, with no more than what sums and drawings of many calls need."""

    id: str
    tool: str
    server: str
    caller: str
    opened: float
    started: float | None
    finished: float | None
    outcome: str | None
    approved: str
    parent: str
    ran_s: float | None
    is_asked: bool  # a person was asked, for an approval or with a form or link


class Batch(Struct):
    """The additions of one loop pass to the history. Writing one of them again changes nothing."""

    entries: list[Entry] = []
    samples: list[Sample] = []
    rows: dict[str, CallRow] = {}
    # By call, up to where the facts so far have what its function on a worker said (`cluster.runs`).
    places: dict[str, str] = {}
    content_bytes: int | None = None  # of its facts together (`fact_size`), where its writer has counted them


class Journal(Protocol):
    """A store of facts. `epoch` changes whenever the positions start again from 0."""

    @property
    def epoch(self) -> str: ...

    @property
    def position(self) -> int:
        """The number of the last fact written, in one series for the whole journal."""
        ...

    @property
    def written_bytes(self) -> int:
        """About the bytes that were written since it was opened."""
        ...

    def write(self, batch: Batch) -> Awaitable[None] | None:
        """Record a batch whole or not at all: now, or when the awaitable is done; raises StoreError."""
        ...

    def check(self) -> None:
        """Raise StoreError if nothing that is written now would be there for the next gateway."""
        ...

    def facts(self, call: str, after: int = 0) -> Awaitable[list[Entry]]: ...

    def samples(self, call: str) -> Awaitable[list[Sample]]: ...

    def since(self, position: int, limit: int = 1000) -> Awaitable[list[tuple[int, Entry]]]:
        """Read facts of all calls behind a position, oldest first; only the next ones if they are large."""
        ...

    def find(self, query: CallQuery) -> Awaitable[list[CallRow]]: ...

    def unfinished(self) -> Awaitable[list[str]]: ...

    def keyed(self, caller: str, key: str) -> Awaitable[str | None]:
        """The newest listed call that this caller opened with this idempotency key."""
        ...

    def children(self, call: str) -> Awaitable[tuple[int, int]]:
        """Count the calls below this one that have ended, and those of them that did not end well."""
        ...

    def outlines(self, query: CallQuery) -> Awaitable[list[CallOutline]]:
        """All calls that match, newest first, in short; `limit`, `sort` and `skip` do not count."""
        ...

    def descendants(self, calls: Sequence[str]) -> Awaitable[dict[str, tuple[int, int]]]:
        """Count the ended calls at any depth below each of these, and those that did not end well.

        Calls without any are left out.
        """
        ...

    def retried(self, calls: Sequence[str]) -> Awaitable[list[str]]:
        """The calls of these whose tool was started more than once."""
        ...

    def purge(self, rule: PurgeRule) -> Awaitable[int]:
        """Take out some calls that a rule means; gives how many, 0 when all have gone. Raises StoreError."""
        ...

    def close(self) -> Awaitable[None]: ...
