"""`LiveCall` is a call that has not ended: its work, its timer, its newest facts, and its followers.

`Submission` is what a caller wants run, as `Engine.submit` takes it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Set
from functools import partial
from math import inf
from typing import Protocol

from msgspec import Raw, Struct, field

from afoot.core.call import Call, is_advance, without_results
from afoot.core.fact_size import fact_bytes
from afoot.core.facts import (
    NOTHING,
    Answer,
    ChildSummary,
    Entry,
    Finished,
    Logged,
    Reading,
    Reported,
    Trace,
)
from afoot.core.ports import CallerPresence, CallOrigin, Provider, TimerHandle, Tool, Work
from afoot.core.rate_limit import RateLimit
from afoot.core.redaction import hidden_texts

BACKLOG = 1024  # facts, and readings at progress_hz 0, kept for followers that lag
BACKLOG_BYTES = 16 * 1024 * 1024  # of these facts together; one larger fact is kept alone
_COUNTED = frozenset((Reported, Logged))  # facts of which a call may have many large ones
SAMPLE_S = 1.0  # at most one reading a second goes into the history
NO_ORIGIN = CallOrigin()
MAX_CHANGES_KEPT = 1000  # changed calls below a call that are remembered for those who follow it


class Claim(Struct, frozen=True):
    """The way by which a caller finds its call again: a key that it chose, or a task."""

    key: str = ""
    task: bool = False
    arguments_mac: str = ""  # with a key: tells whether another request has the same arguments


class Submission(Struct, frozen=True):
    """A tool, its arguments, who calls it, and on which terms. Limits can only be lowered here (C3)."""

    tool: str
    arguments: Raw = Raw(b"{}")
    caller: str = "local"
    idle_s: float | None = None
    ceiling_s: float | None = None
    answers: dict[str, Answer] = {}  # to questions not asked yet, by key
    parent: str | None = None
    weight: float = 1.0
    can_ask: bool = False  # whether the caller can be asked with a form
    rerun_of: str = ""  # the call that is wanted once more
    claim: Claim | None = None
    trace: Trace | None = None  # that the caller's request is part of
    inner: bool = False  # made by a call of ours, whose caller has paid for it
    more: Raw = NOTHING  # fields and `_meta` of the caller's request for the tool's server (U8)
    offer: tuple[Provider, Tool] | None = None  # a resource or prompt of ours, which is in no catalog (F3)
    origin: CallOrigin = NO_ORIGIN
    stays: bool = False  # a refusal sends its client to no other gateway


class FactListener(Protocol):
    """A follower of a call. `wake` is called once for the facts of the call that a write has recorded.

    After reports with content, `on_content` is called instead: these may be many.
    """

    @property
    def wake(self) -> Callable[[], object]: ...

    def on_content(self) -> None: ...


class ReadingListener(Protocol):
    """A listener to all readings of a call. It is called for every one, so it must be quick."""

    def on_reading(self, now: float) -> None: ...


class Mirror(Struct):
    """The state of a live call that mirrors a call of another gateway, which owns it or has taken it over."""

    owner: str
    answered: set[str] = set()  # questions that were answered here; their owner has not said so yet


class LiveCall(Struct, eq=False):
    """A call, its work, its newest facts and its followers."""

    call: Call
    tool: Tool
    arguments: Raw = Raw()  # what the tool gets; the facts hold what may be kept of it (S4)
    given: dict[str, Answer] = {}  # answers that came before their questions
    more: Raw = NOTHING  # fields and `_meta` of its request, as its server gets them
    origin: CallOrigin = NO_ORIGIN
    said: dict[str, Answer] = {}  # by question: answers not kept as they were given (S4), or come late
    clean_message: str = ""  # the last message in which no secret was found
    orphaned: int = 0  # how many of its questions, the first ones, were asked by attempts that died
    provider: Provider | None = None
    work: Work | None = None
    task: asyncio.Task[None] | None = None
    timer: TimerHandle | None = None
    gate: asyncio.Future[None] | None = None  # opened when it has its slot
    waiters: dict[str, asyncio.Future[Answer]] = {}  # by question: the attempt that waits for the answer
    heard: float = 0.0  # when its tool last gave a sign of life
    due: float = inf  # no clock fires before; later a report counts only once they were looked at
    sampled: float = 0.0  # when a reading was last taken into the history
    sampled_number: int = 0  # how many readings there had been then
    # Of those sampled: seconds on the clock, what was done, of what, and the seconds since the one before.
    points: list[tuple[float, float, float | None, float]] = []
    advance: Reading | None = None  # the newest of those sampled that said more than the one before
    late_at: float = 0.0  # when its last report after its end was recorded
    late: int = 0  # lines that it has logged since its end
    log_rate: RateLimit | None = None  # once it has logged a line
    lines_left_out: int = 0  # since the last line that was recorded: it logs too many
    recorded: int = 0  # the seq of the last fact that may be seen
    unrecorded: bool = False  # whether a fact was shown that the history does not have yet
    backlog: deque[Entry] = field(default_factory=partial(deque, maxlen=BACKLOG))
    backlog_bytes: int = 0  # of reports and lines that were put into it
    readings: deque[Reading] | None = None  # kept only while a follower wants every one
    followers: list[FactListener] = []
    watchers: list[ReadingListener] = []
    caller_requests: CallerPresence | None = None  # kept by `serve`, once a request follows this call
    is_recovered: bool = False  # it comes from the history: its caller had no time to come back yet
    mirror: Mirror | None = None  # another gateway owns it; None: this one does
    followed_at: set[str] = set()  # the other gateways at which requests of its caller follow it
    inner: bool = False  # made by a call of ours: its caller has paid for that one (G2)
    parent: "LiveCall | None" = None
    below: "Subtree | None" = None  # once it has called a tool itself
    hidden: tuple[tuple[Raw, Raw, int], Set[str]] | None = None  # the answer of `secrets`, and to what

    def remember_content(self, entries: list[Entry]) -> None:
        """Keep facts with content for followers that lag. The oldest go if all are too large together.

        Followers then see a gap; the history has it. The end of a call stays.
        """
        backlog = self.backlog
        backlog.extend(entries)
        self.backlog_bytes += sum(fact_bytes(one.fact) for one in entries if type(one.fact) in _COUNTED)
        if self.backlog_bytes > BACKLOG_BYTES:
            # Counted anew: facts may have fallen out by their number since.
            size = sum(fact_bytes(one.fact) for one in backlog)
            while size > BACKLOG_BYTES and len(backlog) > 1 and type(backlog[0].fact) is not Finished:
                size -= fact_bytes(backlog.popleft().fact)
            self.backlog_bytes = size

    def keep_answer(self, question_id: str, answer: Answer) -> None:
        """Store an answer unchanged, with its secrets; the facts have it without them."""
        self.said[question_id] = answer
        self.clean_message = ""  # the answer may have secrets that it says

    @property
    def advanced(self) -> float | None:
        """The time at which the call, or one below it, last advanced; None if that is not known."""
        latest, before = self.call.latest, self.advance
        if latest is None:
            return None
        own = latest.at if before is None or is_advance(before, latest) else before.at
        return own if self.below is None else max(own, self.below.advanced)

    @property
    def can_ask(self) -> bool:
        """Whether its caller can be asked with a form: as its requests are now, else as it was opened."""
        requests = self.caller_requests
        return self.call.opened.can_ask if requests is None else requests.can_ask

    @property
    def depth(self) -> int:
        """The number of calls on the way from the top to this one, with itself."""
        depth, above = 1, self.parent
        while above is not None:
            depth, above = depth + 1, above.parent
        return depth

    def without_results(self) -> "LiveCall":
        """A copy of this ended call without its results, for readers that do not need them."""
        return LiveCall(
            without_results(self.call),
            self.tool,
            recorded=self.recorded,
            unrecorded=self.unrecorded,
            caller_requests=self.caller_requests,
        )

    def secrets(self) -> Set[str]:
        """The texts in its arguments and in the answers to it that are not kept (S4).

        They are found again only when either has changed: both may be large, and a tool may log many lines.
        """
        given = self.arguments, self.call.arguments, len(self.said)
        if self.hidden is None or self.hidden[0] != given:
            texts = hidden_texts(self.arguments, self.call.arguments)
            texts |= hidden_texts(self.more, self.call.opened.more)
            texts |= self.origin.secrets
            for question, answer in tuple(self.said.items()):
                texts |= hidden_texts(answer.content, self.call.answers[question].answer.content)
            self.hidden = given, texts
        return self.hidden[1]


class Subtree(Struct, eq=False):
    """The calls below a call: its children, what they have done, and which of all below have changed."""

    children: dict[str, LiveCall] = {}  # those that live
    shares: "dict[str, ChildShare]" = {}  # of those that live
    total: int = 0  # children there have been
    failed: int = 0  # of them, those that did not end well
    weights: float = 0.0
    done: float = 0.0  # what the children have done, by weight
    shown: float = 0.0  # what of it was shown as the progress of the call
    advanced: float = 0.0  # when one of them last advanced, or ended
    is_own: bool = False  # whether the call has told numbers itself: those count
    version: int = 0
    changed: dict[str, tuple[int, LiveCall | ChildSummary]] = {}  # every call below, the newest change last

    def touch(self, call_id: str, now_is: LiveCall | ChildSummary) -> None:
        """Note that a call below has changed."""
        self.version += 1
        self.changed.pop(call_id, None)
        self.changed[call_id] = self.version, now_is
        if len(self.changed) > MAX_CHANGES_KEPT:
            del self.changed[next(iter(self.changed))]


class ChildShare(Struct, eq=False):
    """The part of a child that its parent has counted: its share, from 0 to 1, and its newest reading."""

    share: float = 0.0
    latest: Reading | None = None
