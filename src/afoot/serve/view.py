"""A call and a question as JSON: one form, in the API and on the command line."""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from afoot.core.call import Call
from afoot.core.facts import Answered, CancelRequested, Hindered, Question, Reading, Result, Sample
from afoot.core.notices import is_stalled, waiting_on
from afoot.core.ports import Row
from afoot.core.redact import redacted
from afoot.core.trace import trace_id
from afoot.engine import review
from afoot.engine.approved import Changed
from afoot.observe.eta import Eta


class AnswerView(Struct, frozen=True):
    """What was answered, by whom and when."""

    action: str
    content: Raw | UnsetType
    by: str
    at: float
    surface: str  # caller, or where the operator was: console, terminal, panel, api, python; or nobody's
    who: str | None  # the session of that browser


class ResultView(Struct, frozen=True):
    """What a tool returned."""

    content: Raw
    structured: Raw | UnsetType
    is_error: bool


class FailureView(Struct, frozen=True):
    """Why a call did not end well; every field is there."""

    message: str
    category: str
    code: str
    retryable: bool
    retry_after_s: float | None
    clock: str | None
    elapsed_s: float
    last: Reading | None
    side_effects: str
    trace: str


class Choice(Struct, frozen=True):
    """What a reviewer may decide."""

    decision: str
    title: str


class QuestionView(Struct, frozen=True):
    """A question, and the answer once there is one."""

    id: str
    call: str
    tool: str
    key: str
    kind: str
    message: str
    asked: float
    expires: float
    schema: Raw | UnsetType = UNSET  # of a form
    params: Raw | UnsetType = UNSET  # of everything else
    answer: AnswerView | UnsetType = UNSET
    server: str = ""
    caller: str = ""
    to: str | None = None  # caller or operator, if only one of them is asked
    # Of an approval: what is to run, why that is asked, and what may be decided.
    arguments: Raw | UnsetType = UNSET
    why: str | UnsetType = UNSET
    choices: list[Choice] | UnsetType = UNSET
    source: str | UnsetType = UNSET  # the page or plugin whose tool it is; only in the list of questions
    changed: Changed | None | UnsetType = UNSET  # since it was last approved; only in the list of questions
    digest: str = ""  # of all that is shown here: an answer may name it, and holds for nothing else (A6)


class Children(Struct, frozen=True):
    """How many calls a call has made, how many of them live, and how many did not end well."""

    total: int
    live: int
    failed: int


class CallView(Struct, frozen=True):
    """A call. What may be unset is left out of the history's lines, or of all but the full view."""

    id: str
    tool: str
    server: str
    caller: str
    state: str
    outcome: str | None
    progress: float | None
    total: float | None
    message: str | None
    opened: float
    started: float | None | UnsetType
    finished: float | None
    elapsed_s: float
    waiting: str | None = None
    questions: list[QuestionView] = []
    attempt: int | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    readings: int | UnsetType = UNSET
    arguments: Raw | UnsetType = UNSET
    limits: dict[str, float | None] | UnsetType = UNSET
    result: ResultView | None | UnsetType = UNSET
    failure: FailureView | None | UnsetType = UNSET
    cancel: CancelRequested | None | UnsetType = UNSET
    partials: list[Raw] | UnsetType = UNSET
    settled: list[QuestionView] | UnsetType = UNSET  # questions that are open no more
    samples: list[Sample] | UnsetType = UNSET
    stalled: bool = False  # alive, but not advancing
    detached: bool = False  # it runs on, and no request of its caller follows it
    task: bool | UnsetType = UNSET  # whether its id is that of a task, too
    approved: str | UnsetType = UNSET  # user, allowlist, auto, none
    hindered: Hindered | None = None  # what slows or stops it, and what to do
    rerun_of: str | None | UnsetType = UNSET  # the call that was wanted once more
    eta: Eta | None = None  # the seconds it still takes, at least and at most
    rate: float | None = None  # what it does a second
    reported: float | None = None  # when it last advanced, of a call that lives
    parent: str | None | UnsetType = UNSET  # the call that made it
    children: Children | None | UnsetType = UNSET  # not in the history's lines
    trace: str | None | UnsetType = UNSET  # the id of the trace it is part of
    cpu_s: float | UnsetType = UNSET  # processor time, of a call in a process of its own
    redacted: list[str] | UnsetType = UNSET  # JSON pointers to what was a secret in its arguments (S4)


class ReadingEvent(Struct, frozen=True, omit_defaults=True):
    """A reading in a stream of events; `left_out` counts those before it that the history does not have."""

    call: str
    reading: Reading
    left_out: int = 0
    eta: Eta | None = None  # of a reading that is new


def view(call: Call, now: float, heard: float = 0.0) -> CallView:
    """The call as it is now; `heard` is when its tool last gave a sign of life."""
    opened, latest, end = call.opened, call.latest, call.end
    return CallView(
        call.id, opened.tool, opened.server, opened.caller, call.state.value,
        end.outcome if end else None,
        latest.progress if latest else None,
        latest.total if latest else None,
        end.failure.message if end and end.failure else latest.message if latest else None,
        opened.at, call.started, end.at if end else None,
        round(max(0.0, (end.at if end else now) - opened.at), 3),
        waiting_on(call), [question(call, one) for one in call.open.values() if one.kind != "below"],
        call.attempt, call.seq, call.readings, stalled=is_stalled(call, now, heard), approved=call.approved,
        hindered=call.hindered, rerun_of=opened.rerun_of or None, parent=opened.parent,
        reported=latest.at if latest else None, trace=trace_id(call),
        cpu_s=call.cpu_s or UNSET, task=opened.task,
    )  # fmt: skip


def full(call: Call, samples: list[Sample], now: float) -> CallView:
    """The call with everything that is known of it."""
    end = call.end
    return msgspec.structs.replace(
        view(call, now),
        arguments=call.opened.arguments or Raw(b"{}"),
        limits=msgspec.structs.asdict(call.opened.limits),
        result=_result(end.result) if end and end.result else None,
        failure=FailureView(**msgspec.structs.asdict(end.failure)) if end and end.failure else None,
        cancel=call.cancel,
        partials=call.partials,
        settled=[question(call, one) for one in call.questions.values() if one.id not in call.open],
        samples=samples,
        redacted=redacted(call.opened.arguments),
    )


def line(row: Row, now: float) -> CallView:
    """A call of the history that lives no more."""
    ended = row.finished if row.finished is not None else now
    return CallView(
        row.id, row.tool, row.server, row.caller, row.state, row.outcome, row.progress,
        row.total, row.message, row.opened, row.started, row.finished, round(max(0.0, ended - row.opened), 3),
        approved=row.approved or UNSET, parent=row.parent or None,
    )  # fmt: skip


def question(call: Call, asked: Question) -> QuestionView:
    """A question of a call."""
    at = call.asked_at[asked.id]
    answered = call.answers.get(asked.id)
    body = asked.body or UNSET
    is_form = asked.kind == "form"
    seen = QuestionView(
        asked.id, call.id, call.opened.tool, asked.key, asked.kind, asked.message,
        at, at + call.opened.limits.answer_s,
        body if is_form else UNSET, UNSET if is_form else body,
        _answer(answered) if answered else UNSET, call.opened.server, call.opened.caller,
        asked.to or None, digest=_digest(call, asked),
    )  # fmt: skip
    if asked.kind != review.KIND:
        return seen
    return msgspec.structs.replace(
        seen,
        schema=_APPROVAL,
        params=UNSET,
        arguments=(call.arguments or Raw(b"{}")) if review.is_own(asked) else UNSET,
        why=review.why_asked(asked),
        choices=_CHOICES,
    )


def asked(call: Call) -> list[QuestionView]:
    """What somebody may answer for this call; what it asks for a call below it is asked there."""
    found = [one for one in call.open.values() if one.kind != "below" and not one.below]
    return [question(call, one) for one in found]


def _digest(call: Call, asked: Question) -> str:
    opened = call.opened
    shown = (asked.id, asked.kind, opened.tool, opened.server, opened.digest, asked.message)
    whole = sha256(msgspec.json.encode([one.encode(errors="replace") for one in shown]))
    whole.update(bytes(asked.body) + b"\0" + bytes(call.arguments))
    return whole.hexdigest()


def _answer(answered: Answered) -> AnswerView:
    said = answered.answer
    surface = said.surface or ("" if said.by in ("operator", "engine", "tool", "upstream") else "caller")
    return AnswerView(said.action, said.content or UNSET, said.by, answered.at, surface, said.who or None)


def _result(result: Result) -> ResultView:
    return ResultView(result.content or Raw(b"[]"), result.structured or UNSET, result.is_error)


def encode(thing: object) -> bytes:
    """The thing as JSON; half a character, which JSON cannot hold, becomes a question mark."""
    try:
        body = _encode(thing)
    except UnicodeEncodeError:
        return _encode(_cleaned(msgspec.to_builtins(thing, builtin_types=(Raw,))))
    if b'":,' in body or b'":}' in body:
        return _mended(thing, body)
    return body


def _mended(thing: object, body: bytes) -> bytes:
    """The body again, if an empty Raw that is not NOTHING itself made it unreadable."""
    try:
        msgspec.json.decode(body)
    except msgspec.DecodeError:
        return _encode(_cleaned(msgspec.to_builtins(thing, builtin_types=(Raw,))))
    return body


def _cleaned(thing: Any) -> Any:
    match thing:
        case str():
            return thing.encode(errors="replace").decode()
        case Raw():
            return thing if bytes(thing) else None
        case list():
            return [_cleaned(one) for one in thing]
        case dict():
            return {_cleaned(key): _cleaned(value) for key, value in thing.items()}
        case _:
            return thing


_APPROVAL = Raw(review.operators_form())
_CHOICES = [Choice(decision, title) for decision, title in review.TITLES.items()]
_encode = msgspec.json.Encoder().encode
