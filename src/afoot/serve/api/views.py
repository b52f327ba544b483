"""The views of a call and of a question as JSON: the same in the API, the side panel and on the command line.

A live call's view also has a forecast: how long it still takes, how fast it goes, and whether it stalls.
"""

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from afoot.core.call import Call, State
from afoot.core.facts import (
    Answered,
    CancelRequested,
    ChildSummary,
    Hindered,
    Question,
    Reading,
    Result,
    Sample,
)
from afoot.core.last_words import last_words
from afoot.core.names import full_name
from afoot.core.notices import is_stalled, waiting_on
from afoot.core.ports import CallRow
from afoot.core.redaction import redacted_pointers
from afoot.core.trace import trace_id
from afoot.engine.approval import question as approval
from afoot.engine.approval.history import ApprovalChanges
from afoot.engine.live_call import LiveCall
from afoot.observe.eta import Eta, ProgressPoint, estimate, recent_rate, usual_gap
from afoot.serve.api.live.clocks import ClockView, clock_view
from afoot.serve.caller_presence import is_detached

# Client commands import these views, and the engine would load jsonschema_rs.
if TYPE_CHECKING:
    from afoot.engine.engine import Engine

_APPROVAL = Raw(approval.operator_form())
_encoder = msgspec.json.Encoder().encode


class AnswerView(Struct, frozen=True):
    """An answer, by whom and when."""

    action: str
    content: Raw | UnsetType
    by: str
    at: float
    surface: (
        str  # caller, or the operator's surface: console, terminal, panel, api, python; empty: no person's
    )
    who: str | None  # the session of that browser


class ResultView(Struct, frozen=True):
    """A tool's result."""

    content: Raw
    structured: Raw | UnsetType
    is_error: bool


class FailureView(Struct, frozen=True):
    """Why a call did not end well; every field is always there."""

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
    hint: str  # what the operator can do about it


class DecisionChoice(Struct, frozen=True):
    """A decision that a reviewer may make."""

    decision: str
    title: str


_CHOICES = [DecisionChoice(decision, title) for decision, title in approval.TITLES.items()]


class QuestionView(Struct, frozen=True):
    """A question, and its answer once there is one."""

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
    # Only of an approval: what is to run, why it needs approval, and the possible decisions.
    arguments: Raw | UnsetType = UNSET
    why: str | UnsetType = UNSET
    choices: list[DecisionChoice] | UnsetType = UNSET
    # Only in the list of questions: the page or plugin that has the tool, whether its author says that it may
    # destroy something, and what has changed since it was last approved.
    source: str | UnsetType = UNSET
    destructive: bool | UnsetType = UNSET
    changed: ApprovalChanges | None | UnsetType = UNSET
    digest: str = ""  # of everything displayed: an answer that names it holds for nothing else (A6)


class ChildCounts(Struct, frozen=True):
    """The numbers of calls that a call has made, that are live, and that did not end well."""

    total: int
    live: int
    failed: int


class CallView(Struct, frozen=True):
    """A call. Unset fields are left out: some in the lines of the history, some in all but the full view."""

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
    settled: list[QuestionView] | UnsetType = UNSET  # questions that are closed
    samples: list[Sample] | UnsetType = UNSET
    stalled: bool = False  # alive, but not advancing
    detached: bool = False  # it continues, but no request of its caller follows it
    task: bool | UnsetType = UNSET  # whether it is also a task
    approved: str | UnsetType = UNSET  # user, caller, allowlist, auto, none
    hindered: Hindered | None = None  # what slows or stops it, and what to do
    rerun_of: str | None | UnsetType = UNSET  # the call that this one repeats
    eta: Eta | None = None  # the seconds it still takes
    rate: float | None = None  # its progress per second
    reported: float | None = None  # when a live call last advanced
    parent: str | None | UnsetType = UNSET  # the call that made it
    children: ChildCounts | None | UnsetType = UNSET  # not in the history's lines
    below: ChildCounts | UnsetType = UNSET  # in lists that ask for it: ended calls at any depth below it
    trace: str | None | UnsetType = UNSET  # the id of the trace it is part of
    trace_url: str | UnsetType = UNSET  # of the page of that trace, where one is configured
    cpu_s: float | UnsetType = UNSET  # processor time of a call in a process of its own
    redacted: list[str] | UnsetType = UNSET  # JSON pointers to what was a secret in its arguments (S4)
    remote: list[ChildSummary] | UnsetType = UNSET  # calls below it at a gateway behind this one
    source: str | UnsetType = UNSET  # "below": its numbers add up those of its child calls
    cancel_due: float | UnsetType = UNSET  # when a pending cancel comes, until which it can be withdrawn
    clocks: ClockView | UnsetType = UNSET  # not in the history's lines


class ReadingEvent(Struct, frozen=True, omit_defaults=True):
    """A reading in a stream of events; `left_out` counts those before it that the history does not have."""

    call: str
    reading: Reading
    left_out: int = 0
    eta: Eta | None = None  # only with a new reading


class CallForecast(Struct, frozen=True):
    """The forecast of one call: its ETA, its rate, and whether it has stopped advancing.

    `detached`: it continues while no request of its caller follows it, and none is due (X3).
    """

    eta: Eta | None = None
    rate: float | None = None
    stalled: bool = False
    detached: bool = False


NO_FORECAST = CallForecast()


def call_view(call: Call, now: float, heard: float = 0.0) -> CallView:
    """The call at this time; `heard` is when its tool last gave a sign of life."""
    opened = call.opened
    latest = call.latest
    end = call.end
    return CallView(
        call.id, opened.tool, opened.server, opened.caller, call.state.value,
        end.outcome if end else None,
        latest.progress if latest else None,
        latest.total if latest else None,
        last_words(call),
        opened.at, call.started, end.at if end else None,
        round(max(0.0, (end.at if end else now) - opened.at), 3),
        waiting_on(call), [question_view(call, one) for one in call.open.values() if one.kind != "below"],
        call.attempt, call.seq, call.readings, stalled=is_stalled(call, now, heard), approved=call.approved,
        hindered=call.hindered, rerun_of=opened.rerun_of or None, parent=opened.parent,
        reported=latest.at if latest else None, trace=trace_id(call),
        cpu_s=call.cpu_s or UNSET, task=call.is_task,
        source="below" if latest and latest.source == "below" else UNSET,
        remote=list(call.remote.values()) or UNSET, clocks=clock_view(call, heard),
    )  # fmt: skip


def full_call_view(call: Call, samples: list[Sample], now: float) -> CallView:
    """The call with everything that is known of it."""
    end = call.end
    return msgspec.structs.replace(
        call_view(call, now),
        arguments=call.opened.arguments or Raw(b"{}"),
        limits=msgspec.structs.asdict(call.opened.limits),
        result=_result_view(end.result) if end and end.result else None,
        failure=FailureView(**msgspec.structs.asdict(end.failure)) if end and end.failure else None,
        cancel=call.cancel,
        partials=call.partials,
        settled=[question_view(call, one) for one in call.questions.values() if one.id not in call.open],
        samples=samples,
        redacted=redacted_pointers(call.opened.arguments),
    )


def with_failure(shown: CallView, call: Call) -> CallView:
    """The view with why the call did not end well: in words, without the trace and the operator's hint."""
    if call.end is None or call.end.failure is None:
        return shown
    told = FailureView(**msgspec.structs.asdict(call.end.failure))
    return replace(shown, failure=replace(told, trace="", hint=""))


def row_view(row: CallRow, now: float) -> CallView:
    """A call of the history that is not live."""
    ended = row.finished if row.finished is not None else now
    return CallView(
        row.id, row.tool, row.server, row.caller, row.state, row.outcome, row.progress,
        row.total, row.message, row.opened, row.started, row.finished, round(max(0.0, ended - row.opened), 3),
        approved=row.approved or UNSET, parent=row.parent or None,
    )  # fmt: skip


def question_view(call: Call, asked: Question) -> QuestionView:
    """A question of a call."""
    at = call.asked_at[asked.id]
    answered = call.answers.get(asked.id)
    body = asked.body or UNSET
    is_form = asked.kind == "form"
    seen = QuestionView(
        asked.id, call.id, call.opened.tool, asked.key, asked.kind, asked.message,
        at, at + call.opened.limits.answer_s,
        body if is_form else UNSET, UNSET if is_form else body,
        _answer_view(answered) if answered else UNSET, call.opened.server, call.opened.caller,
        asked.to or None, digest=_digest(call, asked),
    )  # fmt: skip
    if asked.kind != approval.KIND:
        return seen
    return msgspec.structs.replace(
        seen,
        schema=_APPROVAL,
        params=UNSET,
        arguments=(call.arguments or Raw(b"{}")) if approval.is_own_approval(asked) else UNSET,
        why=approval.why_asked(asked),
        choices=_CHOICES,
    )


def open_questions(call: Call) -> list[QuestionView]:
    """The questions of this call that somebody may answer; those of its child calls are asked there."""
    found = [one for one in call.open.values() if one.kind != "below" and not one.below]
    return [question_view(call, one) for one in found]


def call_view_with_forecast(
    engine: "Engine", live: LiveCall, now: float, shown: CallView | None = None
) -> CallView:
    """The call at this time, with its forecast."""
    ahead = forecast(engine, live, now)
    shown = call_view(live.call, now) if shown is None else shown
    below = live.below
    children = None if below is None else ChildCounts(below.total, len(below.children), below.failed)
    return replace(
        shown, eta=ahead.eta, rate=ahead.rate, stalled=ahead.stalled, detached=ahead.detached,
        children=children, clocks=clock_view(live.call, live.heard),
    )  # fmt: skip


def forecast(engine: "Engine", live: LiveCall, now: float) -> CallForecast:
    """The whole forecast of a call."""
    call = live.call
    if call.state is not State.RUNNING or call.open:
        return NO_FORECAST
    requests = live.caller_requests
    return CallForecast(
        call_eta(engine, live, now),
        recent_rate(_points(live), call.on_clock(now)),
        is_stalled(call, now, live.heard, usual_gap_s(live), live.advanced),
        requests is not None and requests.opened_by is not None and is_detached(live, now),
    )


def call_eta(engine: "Engine", live: LiveCall, now: float) -> Eta | None:
    """The time that a call still takes; None while it does not run, or if it is unknown."""
    call = live.call
    if call.state is not State.RUNNING or call.open:
        return None
    return estimate(_newest_points(live), call.on_clock(now), engine.durations.of(full_name(live.tool)))


def eta_range(eta: Eta | None) -> tuple[float, float] | None:
    """The ends of an estimate, if it has a range."""
    if eta is None or eta.low_s is None or eta.high_s is None:
        return None
    return eta.low_s, eta.high_s


def usual_gap_s(live: LiveCall) -> float | None:
    """The longest usual time between two advances; None if too little is known (C5)."""
    return usual_gap(_points(live))


def encode_json(thing: object) -> bytes:
    """The value as JSON; a lone surrogate, which JSON cannot hold, becomes a question mark."""
    try:
        body = _encoder(thing)
    except UnicodeEncodeError:
        return _encoder(_storable(msgspec.to_builtins(thing, builtin_types=(Raw,))))
    if b'":,' in body or b'":}' in body:
        return _repaired(thing, body)
    return body


def _digest(call: Call, asked: Question) -> str:
    opened = call.opened
    shown = (asked.id, asked.kind, opened.tool, opened.server, call.definition.digest, asked.message)
    whole = sha256(msgspec.json.encode([one.encode(errors="replace") for one in shown]))
    whole.update(bytes(asked.body) + b"\0" + bytes(call.arguments))
    return whole.hexdigest()


def _answer_view(answered: Answered) -> AnswerView:
    said = answered.answer
    surface = said.surface or ("" if said.by in ("operator", "engine", "tool", "upstream") else "caller")
    return AnswerView(said.action, said.content or UNSET, said.by, answered.at, surface, said.who or None)


def _result_view(result: Result) -> ResultView:
    return ResultView(result.content or Raw(b"[]"), result.structured or UNSET, result.is_error)


def _points(live: LiveCall) -> list[ProgressPoint]:
    return [ProgressPoint(*one) for one in live.points]


def _newest_points(live: LiveCall) -> list[ProgressPoint]:
    """The readings that the history has, and the newest one, which it may not have."""
    points, call = _points(live), live.call
    latest = call.latest
    if latest is None or latest.progress is None or call.since is None:
        return points
    at = call.spent_s + max(0.0, latest.at - call.since)
    if points and latest.progress < points[-1].done:
        points.clear()  # it begins again, as in `Recorder.sample`
    elif points and latest.progress == points[-1].done:
        at = points.pop().at  # the same, maybe of another total by now
    points.append(ProgressPoint(at, latest.progress, latest.total))
    return points


def _repaired(thing: object, body: bytes) -> bytes:
    """Return `body`, or encode the value again if an empty Raw that is not NOTHING made it invalid JSON."""
    try:
        msgspec.json.decode(body)
    except msgspec.DecodeError:
        return _encoder(_storable(msgspec.to_builtins(thing, builtin_types=(Raw,))))
    return body


def _storable(thing: Any) -> Any:
    match thing:
        case str():
            return thing.encode(errors="replace").decode()
        case Raw():
            return thing if bytes(thing) else None
        case list():
            return [_storable(one) for one in thing]
        case dict():
            return {_storable(key): _storable(value) for key, value in thing.items()}
        case _:
            return thing
