"""The facts that a call is made of, and the values inside them; `core.call` says what they do to a call."""

from msgspec import Raw, Struct

NOTHING = Raw()  # "no value": msgspec leaves out this one object when it encodes, and no other empty one


class Limits(Struct, frozen=True, omit_defaults=True):
    """The clocks of one call. `idle_s` None means that silence alone never ends it.

    `patient`: silence counts only after the first report. Tools of other servers are patient (C1).
    `idle_by_caller` and `ceiling_by_caller`: the budget of the caller is that limit (C11).
    """

    idle_s: float | None = 30.0
    ceiling_s: float = 300.0
    answer_s: float = 600.0
    queue_s: float = 60.0
    grace_s: float = 5.0
    start_s: float = 60.0
    patient: bool = False
    idle_by_caller: bool = False
    ceiling_by_caller: bool = False


class Reading(Struct, frozen=True, omit_defaults=True):
    """Progress as the tool reported it: numbers and a message.

    `source` is "engine" for a notice, and "below" for numbers that add up those of the child calls.
    """

    at: float
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    source: str = "tool"


class Question(Struct, frozen=True, omit_defaults=True):
    """A question to a person or to the caller's model, of this call or of a call below it."""

    id: str
    key: str
    kind: str  # form, url, sample, roots, approval, below
    message: str = ""
    body: Raw = NOTHING  # form, approval: the schema; url: the address; sample: the whole params
    to: str = ""  # caller or operator, if only one of them is asked
    below: str = ""  # the question of a call below that this one stands for
    more: Raw = NOTHING  # fields and `_meta` of a server's request that are passed on as they came (U8)


class Answer(Struct, frozen=True, omit_defaults=True):
    """The answer to a question: accept with content, decline, or cancel."""

    action: str = "accept"
    content: Raw = NOTHING
    by: str = "caller"
    surface: str = ""  # where an operator answered: console, terminal, panel, api, python
    who: str = ""  # which operator: a browser's session, or the name of a token
    more: Raw = NOTHING  # fields and `_meta` of a caller's answer that are passed on as they came (U8)


class Result(Struct, frozen=True, omit_defaults=True):
    """The result of a tool, ready for the wire: a content list, and its structured form."""

    content: Raw
    structured: Raw = NOTHING
    is_error: bool = False
    more: Raw = NOTHING  # fields and `_meta` of a server's result that are passed on as they came (U8)


class Failure(Struct, frozen=True, omit_defaults=True):
    """The reason why a call did not end well, and how far it had come (E2)."""

    message: str
    category: str = "internal"
    code: str = "internal"
    retryable: bool = False
    retry_after_s: float | None = None
    clock: str | None = None  # idle, ceiling, answer, queue
    elapsed_s: float = 0.0
    last: Reading | None = None
    side_effects: str = "none"  # none, possible
    trace: str = ""  # for the history and the log; never on the wire
    hint: str = ""  # what the operator can do about it; never on the wire


class Trace(Struct, frozen=True, omit_defaults=True):
    """The W3C trace that a call is part of: the caller's, or one that begins here."""

    parent: str = ""  # traceparent
    state: str = ""
    baggage: str = ""
    begins: bool = False


class Opened(Struct, frozen=True, omit_defaults=True, tag="opened"):
    """Somebody called a tool."""

    at: float
    tool: str
    server: str
    caller: str
    arguments: Raw
    limits: Limits = Limits()
    read_only: bool = False
    idempotent: bool = False
    parent: str | None = None
    weight: float = 1.0
    digest: str = ""
    approval: str = "auto"  # auto, allowlist, ask
    trusted: bool = True  # whether the annotations of the tool count
    rerun_of: str = ""  # the call that this one repeats
    key: str = ""  # the idempotency key that its caller chose
    task: bool = False  # whether its caller may find it again as a task
    trace: Trace | None = None
    can_ask: bool = False  # whether its caller can be asked with a form; older histories do not say
    more: Raw = NOTHING  # fields and `_meta` of the request that are passed on as they came (U8)
    inner: str = ""  # the tool's name at its server, where that is another one (U12)
    arguments_mac: str = ""  # with a key: `sealed.arguments_mac` of the arguments with their secrets


class Amended(Struct, frozen=True, omit_defaults=True, tag="amended"):
    """A hook changed the arguments before anything ran."""

    at: float
    arguments: Raw
    by: str = ""


class Admitted(Struct, frozen=True, omit_defaults=True, tag="admitted"):
    """The call has its slot. Its server, child process or tab is being started."""

    at: float
    what: str


class Started(Struct, frozen=True, omit_defaults=True, tag="started"):
    """The tool began to run: the first time, or once more."""

    at: float
    attempt: int = 1
    where: str = ""
    unsent: bool = False  # the attempt before never had the request
    why: str = ""  # what ended the attempt before
    spent_s: float | None = None  # seconds on the clock before, over all attempts; None: all since the first


class Interrupted(Struct, frozen=True, omit_defaults=True, tag="interrupted"):
    """The gateway that had the call died, and another one found it; nothing runs it now.

    `at` is the time at which it was found. `spent_s` counts the seconds on the clock, over all attempts, up
    to the last sign of life; the time without a gateway is not in it.
    """

    at: float
    spent_s: float = 0.0


class Redefined(Struct, frozen=True, omit_defaults=True, tag="redefined"):
    """The tool is not any more what it was: its server or page has another definition of it now (A7).

    From here on the call is judged by this definition. `attempt` is the last one that began before.
    """

    at: float
    digest: str
    attempt: int = 0
    approval: str = "auto"  # auto, allowlist, ask
    read_only: bool = False
    idempotent: bool = False
    trusted: bool = True  # whether the annotations of the tool count


class HandedOver(Struct, frozen=True, omit_defaults=True, tag="handed_over"):
    """A request of the caller ended before the call, and the caller was told how to find its call again.

    A caller may thus come back although its connection is gone, also to the next gateway (H4, H7).
    """

    at: float
    what: str = "task"  # task, handle, round: a request state without a question


class ChildSummary(Struct, frozen=True, omit_defaults=True):
    """A call below another one, as the followers of the upper one see it (P8)."""

    id: str
    tool: str
    state: str
    outcome: str | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    parent: str | None = None  # the call right above it, if that is not the one that is followed


class Reported(Struct, frozen=True, omit_defaults=True, tag="reported"):
    """A report with content: data, a partial result, a checkpoint, child calls; maybe with numbers."""

    at: float
    attempt: int = 1
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING
    late: bool = False
    more: Raw = NOTHING  # fields and `_meta` of a server's notification that are passed on as they came (U8)
    children: tuple[ChildSummary, ...] = ()  # calls at a gateway behind this one that have changed (P8)


class Logged(Struct, frozen=True, omit_defaults=True, tag="logged"):
    """A line the tool printed or logged. It is no report and touches no clock."""

    at: float
    text: str
    level: str = "info"
    logger: str = ""
    more: Raw = NOTHING  # fields and `_meta` of a server's notification that are passed on as they came (U8)


class Hindered(Struct, frozen=True, omit_defaults=True, tag="hindered"):
    """Something slows or stops the place where it runs, as a hidden tab does; an empty `by` ends that."""

    at: float
    by: str = ""  # "its tab is hidden"
    hint: str = ""  # what to do


class Asked(Struct, frozen=True, omit_defaults=True, tag="asked"):
    """A question was opened."""

    at: float
    question: Question


class Answered(Struct, frozen=True, omit_defaults=True, tag="answered"):
    """An open question was answered."""

    at: float
    question: str
    answer: Answer


class CancelRequested(Struct, frozen=True, omit_defaults=True, tag="cancel_requested"):
    """Somebody, or a clock, wants the call to stop."""

    at: float
    by: str  # caller, operator, parent, disconnect, shutdown, idle, ceiling, answer
    reason: str
    who: str = ""  # which operator, if that is known


class Finished(Struct, frozen=True, omit_defaults=True, tag="finished"):
    """The end that the caller is told."""

    at: float
    outcome: str  # ok, failed, refused, cancelled, timed_out, lost, uncertain
    result: Result | None = None
    failure: Failure | None = None
    cpu_s: float = 0.0  # processor time, where it ran in a process of its own


class Released(Struct, frozen=True, omit_defaults=True, tag="released"):
    """The work has really stopped, or its grace has passed; the slot is free."""

    at: float
    how: str = "stopped"  # stopped, grace
    cpu_s: float = 0.0  # all of it: a tool that was told to stop may have gone on for a while


Fact = (
    Opened
    | Amended
    | Admitted
    | Started
    | Interrupted
    | Redefined
    | HandedOver
    | Reported
    | Logged
    | Hindered
    | Asked
    | Answered
    | CancelRequested
    | Finished
    | Released
)


class Entry(Struct, frozen=True):
    """A fact with its call and its number; `seq` counts within the call, without a gap."""

    call: str
    seq: int
    fact: Fact


class Sample(Struct, frozen=True, omit_defaults=True):
    """A reading in the history; `left_out` counts the readings between it and the sample before."""

    call: str
    number: int
    reading: Reading
    left_out: int = 0
