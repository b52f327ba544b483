"""The facts a call is made of, and the values inside them; what they do to a call is in `call`."""

from msgspec import Raw, Struct

NOTHING = Raw()  # "no value": msgspec leaves out this very object when encoding, and no other empty one


class Limits(Struct, frozen=True, omit_defaults=True):
    """The clocks of one call. `idle_s` None means that silence alone never ends it.

    `patient`: silence counts only once the tool has reported, as it does of servers that are not ours (C1).
    """

    idle_s: float | None = 30.0
    ceiling_s: float = 300.0
    answer_s: float = 600.0
    queue_s: float = 60.0
    grace_s: float = 5.0
    start_s: float = 60.0
    patient: bool = False


class Reading(Struct, frozen=True, omit_defaults=True):
    """Progress as the tool said it: numbers and a message. `source` is "engine" for a notice."""

    at: float
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    source: str = "tool"


class Question(Struct, frozen=True, omit_defaults=True):
    """Something a person, or the caller's model, is asked; or that a call below this one asks somebody."""

    id: str
    key: str
    kind: str  # form, url, sample, roots, approval, below
    message: str = ""
    body: Raw = NOTHING  # form, approval: the schema; url: the address; sample: the whole params
    to: str = ""  # caller or operator, if only one of them is asked
    below: str = ""  # the question of a call below that this one stands for


class Answer(Struct, frozen=True, omit_defaults=True):
    """What came back: accept with content, decline, or cancel."""

    action: str = "accept"
    content: Raw = NOTHING
    by: str = "caller"
    surface: str = ""  # of the operator's: console, terminal, panel, api, python
    who: str = ""  # of the operators it was: a browser's session, or whose token


class Result(Struct, frozen=True, omit_defaults=True):
    """What a tool returned, ready for the wire: a content list, and its structured form."""

    content: Raw
    structured: Raw = NOTHING
    is_error: bool = False


class Failure(Struct, frozen=True, omit_defaults=True):
    """Why a call did not end well, and how far it had come (E2)."""

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


class Trace(Struct, frozen=True, omit_defaults=True):
    """The trace a call is part of, in the words of the W3C: what its caller sent, or that it begins here."""

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
    trusted: bool = True  # whether what the tool says of itself counts
    rerun_of: str = ""  # the call that somebody wanted once more
    key: str = ""  # by which its caller would mean this very call again
    task: bool = False  # whether it may be found again as a task
    trace: Trace | None = None


class Amended(Struct, frozen=True, omit_defaults=True, tag="amended"):
    """A hook changed the arguments before anything ran."""

    at: float
    arguments: Raw
    by: str = ""


class Admitted(Struct, frozen=True, omit_defaults=True, tag="admitted"):
    """It has its slot; what it runs on is being started."""

    at: float
    what: str


class Started(Struct, frozen=True, omit_defaults=True, tag="started"):
    """The tool began to run: the first time, or once more."""

    at: float
    attempt: int = 1
    where: str = ""
    unsent: bool = False  # the attempt before never had the request
    why: str = ""  # what ended the attempt before
    spent_s: float | None = None  # on the clock before, over all attempts; None: all since they began


class Reported(Struct, frozen=True, omit_defaults=True, tag="reported"):
    """Content from the tool: data, a partial result, a checkpoint; maybe with numbers."""

    at: float
    attempt: int = 1
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    data: Raw = NOTHING
    partial: Raw = NOTHING
    checkpoint: Raw = NOTHING
    late: bool = False


class Logged(Struct, frozen=True, omit_defaults=True, tag="logged"):
    """A line the tool printed or logged. It is no report and touches no clock."""

    at: float
    text: str
    level: str = "info"
    logger: str = ""


class Hindered(Struct, frozen=True, omit_defaults=True, tag="hindered"):
    """Something slows what it runs on, or stops it, as a hidden tab does; no `by`: no more."""

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
    who: str = ""  # of the operators it was, if that is known


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
    cpu_s: float = 0.0  # all of it: what was told to stop may have gone on


Fact = (
    Opened
    | Amended
    | Admitted
    | Started
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
    """A fact in its place: `seq` counts within the call, without a hole."""

    call: str
    seq: int
    fact: Fact


class Sample(Struct, frozen=True, omit_defaults=True):
    """A reading taken into the history; `left_out` counts those between it and the one before."""

    call: str
    number: int
    reading: Reading
    left_out: int = 0
