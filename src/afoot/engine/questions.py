"""`Questions` opens the questions of calls and waits for their answers; `check_answer` checks one (Q2)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Set
from itertools import islice

import jsonschema_rs
from msgspec import DecodeError, Raw, json
from msgspec.structs import replace

from afoot.core.call import INSTEAD, Call, State
from afoot.core.facts import Answer, Answered, Asked, Fact, Question
from afoot.core.owner_commands import AnswerCommand
from afoot.core.ports import Clock, QuestionHooks
from afoot.core.redaction import declared_in_schema, redacted_pointers
from afoot.core.rules import decide
from afoot.core.schema_cost import schema_cost
from afoot.engine.approval.question import decision_of
from afoot.engine.catalog import Catalog
from afoot.engine.child_calls import ChildCalls
from afoot.engine.deadlines import Deadlines
from afoot.engine.json_schema import find_misfits
from afoot.engine.live_call import LiveCall
from afoot.errors import ToolError, UnknownName

ACTIONS = ("accept", "decline", "cancel")
TOOL = "tool"  # closes a question that it waits for no more
ENGINE = "engine"  # closes a question that is not to be answered any more: its tool has changed
UPSTREAM = "upstream"  # the key of a question that a server asks somebody, out of our sight

log = logging.getLogger("afoot.engine")


class Questions:
    """Asks and answers. `commit` records a fact of a call; `find` gives a living call by its id.

    `send` sends an answer to the gateway that owns the call.
    """

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        child_calls: ChildCalls,
        catalog: Catalog,
        commit: Callable[[LiveCall, Fact], object],
        find: Callable[[str], LiveCall],
        send: Callable[[LiveCall, AnswerCommand], object],
    ) -> None:
        self.max_questions = 100  # of one call
        self.hooks: QuestionHooks | None = None
        self._at_hooks: Counter[str] = Counter()  # questions that hooks are asked about now, by call
        self._clock = clock
        self._deadlines = deadlines
        self._child_calls = child_calls
        self._catalog = catalog
        self._commit = commit
        self._find = find
        self._send = send

    async def ask(self, live: LiveCall, question: Question) -> Answer:
        """Open a question and wait for its answer; a known one, or one that a hook gives, counts at once."""
        call = live.call
        # An approval is given for a call that is known (A6), and only the operator answers for the operator.
        known = None if question.kind == "approval" or question.to else _known_answer(live, question.key)
        if question.kind in ("sample", "roots") and call.opened.caller == "operator":
            known = Answer("decline", by=ENGINE)  # an operator has no model, and no roots
        # A hook answers for a tool. What to do in place of a call is the person's word who rejected it.
        is_of_tool = question.kind in ("form", "url") and question.key != INSTEAD
        if known is None and self.hooks is not None and is_of_tool:
            known = await self._ask_hooks(self.hooks, live, question)
        question_id = self._next_id(live)  # after the hooks: another question may have been opened meanwhile
        if question_id is None:
            raise self._too_many()
        redactor = self._catalog.effective_settings.redactor
        message = redactor.prose(question.message, live.secrets())
        question = replace(question, id=question_id, message=message)
        self._commit(live, Asked(self._clock.now(), question))
        if live.parent is not None:
            self._child_calls.on_question(live, question)
        if known is not None:
            try:
                return self._record_answer(live, question, known)
            except ToolError:  # it does not fit after all: the question stays open
                log.warning("call %s: the answer of the %s does not fit its question", call.id, known.by)
        return await self.wait(live, question)

    async def _ask_hooks(self, hooks: QuestionHooks, live: LiveCall, question: Question) -> Answer | None:
        """Return the answer of the hooks; raises ToolError.refused for a question over the limit of its call.

        A server may ask without end, and each question would start a program.
        """
        call, asking = live.call, self._at_hooks[live.call.id]
        if len(call.questions) - live.orphaned + asking >= self.max_questions:
            raise self._too_many()
        self._at_hooks[call.id] += 1
        try:
            return await hooks.answer(call, live.tool, question)
        finally:
            self._at_hooks[call.id] -= 1
            if not self._at_hooks[call.id]:
                del self._at_hooks[call.id]

    def _too_many(self) -> ToolError:
        return ToolError.refused(f"over {self.max_questions} questions in one call (raise max_questions)")

    async def ask_again(self, live: LiveCall, question: Question, place: int) -> Answer:
        """Wait for the answer to a question of this attempt that an owner before may have asked, or ask it.

        `place`: how many questions of its key the attempt had asked before.
        """
        name = asked_at_place(live.call, question.key, place)
        if name is None:
            return await self.ask(live, question)
        if name in live.call.open:
            return await self.wait(live, live.call.questions[name])
        return _repeatable_answer(live, name) or await self.ask(live, question)

    def close_unclaimed(self, live: LiveCall, claimed: Set[str]) -> None:
        """Close the questions of a call that nothing waits for: an owner before had asked them."""
        for one in list(live.call.open.values()):
            is_below = one.kind == "below" or bool(one.below)
            if is_below and one.below.partition(".")[0] not in (live.below.children if live.below else ()):
                self._child_calls.close_question(live, one.id, Answer("cancel", by=ENGINE))
            elif not is_below and one.id not in claimed and live.call.state is State.RUNNING:
                self._record_answer(live, one, Answer("cancel", by=TOOL))

    async def wait(self, live: LiveCall, question: Question) -> Answer:
        """Wait for the answer to a question that is open; it is closed when this wait ends without one."""
        call = live.call
        self._deadlines.arm(live)
        waiter = live.waiters[question.id] = asyncio.get_running_loop().create_future()
        try:
            return await waiter
        finally:
            live.waiters.pop(question.id, None)
            if question.id in call.open and call.state in (State.RUNNING, State.QUEUED):
                self._record_answer(live, question, Answer("cancel", by=TOOL))

    def answer(self, question_id: str, given: Answer) -> LiveCall | None:
        """Answer an open question; gives the call if nothing runs that waits for it: it must run again.

        Raises UnknownName, AlreadyAnswered, ToolError.validation.
        """
        live = self._find(question_id.partition(".")[0])
        question = live.call.questions.get(question_id)
        if question is None:
            raise UnknownName("question", question_id, live.call.questions)
        if question.below and question_id in live.call.open:
            return self.answer(question.below, given)  # which answers this one, too
        if question.kind == "below":
            raise ToolError.refused("it is asked further down, and can only be answered there")
        if live.mirror is not None:
            checked = check_answer(question, given) if question_id in live.call.open else given
            decide(live.call, Answered(self._clock.now(), question_id, checked))  # raises if it is answered
            live.mirror.answered.add(question_id)
            self._send(live, AnswerCommand(question_id, checked))
            return None
        checked = self._record_answer(live, question, given)
        waiter = live.waiters.get(question_id)
        if waiter is not None and not waiter.done():
            waiter.set_result(checked)
            return None
        return live if live.task is None and not live.call.open else None

    def withdraw(self, live: LiveCall, question: Question) -> None:
        """Close an open question without an answer from a person; the attempt that waits for it continues."""
        closed = self._record_answer(live, question, Answer("cancel", by=ENGINE))
        waiter = live.waiters.get(question.id)
        if waiter is not None and not waiter.done():
            waiter.set_result(closed)

    def wait_upstream(self, live: LiveCall, message: str | None) -> None:
        """Stop the clocks of a call while its server asks somebody out of our sight; None: no more (C3)."""
        call = live.call
        asked_now = [one for one in call.open.values() if one.kind == "below" and one.key == UPSTREAM]
        if message is None:
            for one in asked_now:
                self._child_calls.close_question(live, one.id, Answer("accept", by=UPSTREAM))
        elif not asked_now and call.state is State.RUNNING and (question_id := self._next_id(live)):
            question = Question(question_id, UPSTREAM, "below", message)
            self._commit(live, Asked(self._clock.now(), question))
            self._deadlines.arm(live)
            self._child_calls.on_question(live, question)

    def _next_id(self, live: LiveCall) -> str | None:
        """The id of the next question of this call; None if it has asked too many."""
        number = len(live.call.questions) + 1
        return f"{live.call.id}.{number}" if number - live.orphaned <= self.max_questions else None

    def _record_answer(self, live: LiveCall, question: Question, given: Answer) -> Answer:
        """Record an answer as it may be kept (S4); gives it as the tool gets it."""
        checked = check_answer(question, given) if question.id in live.call.open else given
        kept = checked
        redactor = self._catalog.effective_settings.redactor
        if question.kind == "form":
            content = redactor.value(checked.content, declared_in_schema(question.body))
            kept = replace(checked, content=content, more=redactor.value(checked.more))
        elif checked.more:
            kept = replace(checked, more=redactor.value(checked.more))
        self._commit(live, Answered(self._clock.now(), question.id, kept))
        if kept is not checked and redacted_pointers(kept.content) + redacted_pointers(kept.more):
            live.keep_answer(question.id, checked)
            redactor.lend(live.secrets())
        if live.parent is not None:
            self._child_calls.on_answer(live, question.id, checked)
        self._deadlines.arm(live)
        return checked


def check_answer(question: Question, answer: Answer) -> Answer:
    """The answer, if it fits the question; raises ToolError.validation naming the fields (Q2)."""
    if answer.action not in ACTIONS:
        raise ToolError.validation(
            f"answer.action: must be one of {', '.join(ACTIONS)}, not {answer.action!r}"
        )
    if question.kind == "approval":
        decision_of(answer)
    if answer.action != "accept" or question.kind != "form":
        return answer
    try:
        content = json.decode(answer.content) if answer.content else {}
    except RecursionError:
        raise ToolError.validation("content: nested too deep") from None
    except DecodeError as error:  # JSON all the same: a number that is out of range
        raise ToolError.validation(f"content: cannot be read: {error}") from None
    if errors := misfits(question, content, len(answer.content)):
        raise ToolError.validation("; ".join(f"{where}: {what}" for where, what in errors))
    return replace(answer, content=answer.content or Raw(b"{}"))


def misfits(question: Question, content: object, size: int) -> list[tuple[str, str]]:
    """The places where content of so many bytes does not fit the schema of a question, and why.

    Anything fits an invalid schema, or one that takes too many steps. Nothing is fetched for one.
    """
    try:
        schema = json.decode(question.body) if question.body else {"type": "object"}
        if not schema_cost(schema).allows(content):
            return []
        validator = jsonschema_rs.validator_for(schema, offline=True)
    except Exception:  # a server may ask with any schema, and the library raises many things
        return []
    if validator.is_valid(content):
        return []
    try:
        errors = find_misfits(validator, content, size)
    except ValueError:  # the library describes no value that is nested over 255 deep
        return [("content", "does not fit, and is nested too deep to say where")]
    return [(".".join(["content", *map(str, error.instance_path)]), error.message) for error in errors]


def questions_open_at(live: LiveCall, had: int) -> list[Question]:
    """The questions that a retry answers, if its caller has seen the first `had` questions of the call.

    They are the questions that were open then, each in its newest form: the attempt after a dead one may have
    asked the same question again, in the same place. If it has not asked yet, the old question is returned,
    and `keep_answer` keeps its answer until then.
    """
    call, places = live.call, _places(live.call)
    seen = list(islice(places, had))
    newest = {place: name for name, place in places.items()}
    now = dict.fromkeys(newest[places[name]] for name in seen if _was_open(call, name, seen[-1]))
    return [call.questions[name] for name in now if name in call.open or _is_orphan(live, name)]


def asked_at_place(call: Call, key: str, place: int) -> str | None:
    """The question that this attempt asked after so many others of its key, if it has asked it."""
    mine = [name for name, one in call.questions.items() if call.asked_by[name] == call.attempt]
    same = [name for name in mine if call.questions[name].key == key]
    return same[place] if place < len(same) else None


def keep_answer(live: LiveCall, question: Question, given: Answer) -> None:
    """Have an answer ready for when the question is asked again; the first one counts."""
    if question.id not in live.said:
        live.keep_answer(question.id, given)


def _known_answer(live: LiveCall, key: str) -> Answer | None:
    """The answer to the next question of this key, if an attempt that died had it there, or it came early.

    Where there is none, as nobody gave it or a secret was not kept, it is asked for again.
    """
    call, places = live.call, _places(live.call)
    mine = [name for name, place in places.items() if place[0] == key and call.asked_by[name] == call.attempt]
    for name in reversed(places):
        if places[name] == (key, len(mine)) and (answer := _repeatable_answer(live, name)) is not None:
            return answer
    return live.given.pop(key, None)


def _places(call: Call) -> dict[str, tuple[str, int]]:
    """Map each question to its key and to the number of earlier questions of its attempt with that key."""
    asked = Counter[tuple[str, int]]()
    found: dict[str, tuple[str, int]] = {}
    for name, question in call.questions.items():
        # An answer to an approval counts for that one question alone, not for the next in its place (A6).
        key = name if question.kind == "approval" else question.key
        whose = key, call.asked_by[name]
        found[name] = key, asked[whose]
        asked[whose] += 1
    return found


def _repeatable_answer(live: LiveCall, name: str) -> Answer | None:
    """The answer to a question, if it can be given again."""
    said, answered = live.said.get(name), live.call.answers.get(name)
    if said is None and answered is not None and answered.answer.action != "cancel":
        said = answered.answer
    return None if said is None or redacted_pointers(said.content) or redacted_pointers(said.more) else said


def _was_open(call: Call, name: str, last: str) -> bool:
    """Whether a question was open when the last one was asked."""
    answered = call.answers.get(name)
    return name == last or answered is None or answered.at > call.asked_at[last]


def _is_orphan(live: LiveCall, name: str) -> bool:
    """Whether the attempt that asked has died, and nobody had answered."""
    is_old = name in islice(live.call.questions, live.orphaned)
    return is_old and live.call.is_safe and _is_dropped(live.call.answers.get(name))


def _is_dropped(answered: Answered | None) -> bool:
    """Whether nobody answered: the tool waited for it no more."""
    return answered is not None and (answered.answer.action, answered.answer.by) == ("cancel", TOOL)
