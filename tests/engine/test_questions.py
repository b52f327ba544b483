"""Questions: clocks that stand still, answers that fit or do not, and what becomes of open ones."""

import asyncio

import pytest
from msgspec import Raw, json

from afoot.core.facts import Answer, Answered, Asked, Question
from afoot.core.ports import Run
from afoot.engine.engine import Engine, Submission
from afoot.engine.live_call import LiveCall
from afoot.engine.questions import check_answer
from afoot.errors import AfootError, AlreadyAnswered, IllegalFact, ToolError, UnknownName
from tests.engine.fake_engine import engine_of, facts, form, over, took

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def asks(run: Run) -> str:
    """Works for 20 s, asks, works for another 20 s."""
    await asyncio.sleep(20)
    answer = await run.ask(form("name", SCHEMA))
    await asyncio.sleep(20)
    return f"{answer.action} {bytes(answer.content).decode()}"


def says(value: object, by: str = "operator") -> Answer:
    """An accepted answer."""
    return Answer("accept", Raw(json.encode(value)), by)


def only(live: LiveCall) -> str:
    """The id of the one open question."""
    [question] = live.call.open
    return question


def words(live: LiveCall) -> str:
    """What the tool returned."""
    assert live.call.end and live.call.end.result
    return bytes(live.call.end.result.content).decode()


async def test_human_time_is_off_the_clock() -> None:
    """C6: 500 s of thinking touch neither the idle limit nor the ceiling."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool", ceiling_s=45))
        await asyncio.sleep(520)
        assert live.call.on_clock(engine.clock.now()) == pytest.approx(20)
        engine.answer(only(live), says({"name": "Ada"}))
        await over(engine, live)
    assert took(live) == 540.0 and "accept" in words(live) and "Ada" in words(live)


async def test_the_ceiling_goes_on_where_it_stopped() -> None:
    """C6: only human time is off the clock."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool", ceiling_s=30))
        await asyncio.sleep(120)
        engine.answer(only(live), says({"name": "Ada"}))
        await over(engine, live)
    assert live.call.end and live.call.end.failure
    assert (live.call.end.failure.clock, took(live)) == ("ceiling", 130.0)


async def test_an_answer_counts_as_heard() -> None:
    """C6: the idle limit starts anew when the work goes on."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool", idle_s=25))
        await asyncio.sleep(100)
        engine.answer(only(live), says({"name": "Ada"}))
        await over(engine, live)
    assert live.call.end and (live.call.end.outcome, took(live)) == ("ok", 120.0)


async def test_nobody_answers() -> None:
    """C6, C1: the answer limit ends it, named with its value and setting."""
    async with engine_of(asks) as engine:
        live = await over(engine, engine.submit(Submission("tool")))
    end = live.call.end
    assert end and end.failure and took(live) == 620.0
    assert (end.outcome, end.failure.clock) == ("timed_out", "answer")
    assert "600 s" in end.failure.message and "answer_s" in end.failure.message


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(action: str) -> None:
    """Q2: the tool is told which no it was."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(30)
        engine.answer(only(live), Answer(action, by="operator"))
        await over(engine, live)
    assert f"{action} " in words(live)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (says({}), "content: .*name.*required"),
        (says({"name": 5}), r"content\.name: 5 is not of type"),
        (says([1]), "content: .*object"),
        (Answer("accept"), "content: .*name.*required"),
        (Answer("maybe"), "answer.action: must be one of accept, decline, cancel"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays_open(
    answer: Answer, told: str
) -> None:
    """Q2: the fields are named, nothing is recorded, the next one may fit."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(30)
        with pytest.raises(ToolError, match=told) as caught:
            engine.answer(only(live), answer)
        assert caught.value.category == "validation" and not facts(live, Answered)
        engine.answer(only(live), says({"name": "Ada"}))
        await over(engine, live)
    assert "Ada" in words(live)


async def test_the_first_answer_wins_and_the_second_is_told_which() -> None:
    """Q4: answered from anywhere, once."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(30)
        question = only(live)
        engine.answer(question, says({"name": "Ada"}, "caller"))
        with pytest.raises(AlreadyAnswered, match="accept, by caller"):
            engine.answer(question, says({"name": "Bob"}))
        await over(engine, live)
    assert "Ada" in words(live) and len(facts(live, Answered)) == 1


async def test_open_questions_go_when_their_call_ends() -> None:
    """Q4: nothing is left to answer, and an answer is refused."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(30)
        question = only(live)
        engine.cancel(live, "operator", "enough")
        with pytest.raises(IllegalFact):
            engine.answer(question, says({"name": "Ada"}))
        await over(engine, live)
        assert live.call.open == {} and live.waiters == {}
        with pytest.raises(UnknownName):
            engine.answer(question, says({"name": "Ada"}))


async def test_an_unknown_question_names_the_nearest() -> None:
    """Q4, E5: which questions there are."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(30)
        with pytest.raises(UnknownName, match="nearest"):
            engine.answer(only(live) + "1", says({}))


async def test_answers_that_came_with_the_call_are_used_when_it_asks() -> None:
    """Q1 e: inputResponses without a state; the question is on record all the same."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool", answers={"name": says({"name": "Ada"}), "other": says({})}))
        await over(engine, live)
    assert took(live) == 40.0 and "Ada" in words(live)
    assert len(facts(live, Asked)) == len(facts(live, Answered)) == 1


async def test_an_early_answer_that_does_not_fit_leaves_the_question_open() -> None:
    """Q1 d, e: it is asked for again."""
    async with engine_of(asks) as engine:
        live = engine.submit(Submission("tool", answers={"name": says({"name": 12345})}))
        await asyncio.sleep(30)
        engine.answer(only(live), says({"name": "Ada"}))
        await over(engine, live)
    assert "Ada" in words(live)


async def test_questions_of_one_pass_are_open_together_and_answered_in_any_order() -> None:
    """Q1 f: two at once."""

    async def body(run: Run) -> str:
        both = await asyncio.gather(run.ask(form("first")), run.ask(form("second")))
        return " ".join(bytes(answer.content).decode() for answer in both)

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        first, second = live.call.open
        engine.answer(second, says({"n": 2}))
        assert list(live.call.open) == [first]
        await asyncio.sleep(100)
        engine.answer(first, says({"n": 1}))
        await over(engine, live)
    assert words(live).index("1") < words(live).rindex("2")


async def test_a_tool_that_asks_the_same_again_is_asked_again() -> None:
    """Q1: a tool may insist; only an attempt after a crash gets the answers of the one before."""

    async def body(run: Run) -> str:
        tries = 0
        answer = Answer("decline")
        while answer.action != "accept" and tries < 10:
            tries += 1
            answer = await run.ask(form("password"))
        return f"after {tries}"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        for answer in (Answer("decline"), Answer("decline"), Answer("accept")):
            await asyncio.sleep(1)
            engine.answer(only(live), answer)
        await over(engine, live)
    assert "after 3" in words(live)


async def test_too_many_questions_are_refused_with_the_setting() -> None:
    """G3: questions have a limit."""

    async def body(run: Run) -> str:
        for _ in range(10):
            await run.ask(form("again"))
        return "done"

    async with engine_of(body) as engine:
        engine.questions.max_questions = 3
        live = engine.submit(Submission("tool", answers={}))
        for _ in range(3):
            await asyncio.sleep(1)
            engine.answer(only(live), Answer("decline"))
        await over(engine, live)
    assert live.call.end and live.call.end.failure and live.call.end.failure.category == "refused"
    assert "max_questions" in live.call.end.failure.message


async def test_a_question_that_no_form_answers_takes_what_comes() -> None:
    """Q1: what the caller's model said is not checked against a schema."""

    async def body(run: Run) -> str:
        question = form("model").__class__("", "model", "sample", body=Raw(b'{"messages":[]}'))
        return bytes((await run.ask(question)).content).decode()

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.answer(only(live), says([1, "anything"]))
        await over(engine, live)
    assert "anything" in words(live)


async def test_an_answer_wakes_exactly_its_own_call() -> None:
    """C8, Q4: two calls with the same key."""
    async with engine_of(asks) as engine:
        lives = [engine.submit(Submission("tool")) for _ in range(2)]
        await asyncio.sleep(30)
        _answer_all(engine, lives)
        for live in lives:
            await over(engine, live)
    for live in lives:
        assert live.call.id in words(live)


def _answer_all(engine: Engine, lives: list[LiveCall]) -> None:
    for live in lives:
        engine.answer(only(live), says({"name": live.call.id}))


async def test_a_tool_cancelled_while_it_asks_can_clean_up_but_not_ask() -> None:
    """X1, Q4: a question after the cancel is refused."""
    refused: list[AfootError] = []

    async def body(run: Run) -> str:
        try:
            await run.ask(form("first"))
        except asyncio.CancelledError:
            try:
                await run.ask(form("second"))
            except AfootError as error:
                refused.append(error)
        return "cleaned up"

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert len(refused) == 1 and live.call.end and live.call.end.outcome == "cancelled"
    assert "cleaned up" in words(live)


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://127.0.0.1:9/x"}, {"type": "nonsense"}, {"pattern": "("}, []]
)
def test_a_servers_schema_is_neither_fetched_nor_feared(schema: object) -> None:
    """S1, Q2: anything fits a schema that is none; whoever asked has to look."""
    question = Question("c.1", "k", "form", "?", Raw(json.encode(schema)))
    assert check_answer(question, says({"a": 1})).action == "accept"


def test_an_answer_with_a_number_out_of_range_is_refused() -> None:
    """Q2, S8: it is JSON, and nothing here can hold it; found by the fuzzer's rule."""
    asked = Question("", "k", "form", "m", Raw(json.encode(SCHEMA)))
    with pytest.raises(ToolError, match="content: "):
        check_answer(asked, Answer("accept", Raw(b'{"name":1e999}')))


def test_anything_fits_a_schema_that_cannot_be_read() -> None:
    """Q2, S8: a server may ask with a number out of range; its question can be answered all the same."""
    asked = Question("", "k", "form", "m", Raw(b'{"type":"object","maximum":1e999}'))
    assert check_answer(asked, says({"name": "x"})).action == "accept"


def test_an_answer_that_does_not_fit_is_refused_however_deep_it_is() -> None:
    """Q2, S8: the library does not describe a deep value, and so every deep answer was taken."""
    asked = Question("", "k", "form", "m", Raw(json.encode(SCHEMA)))
    for depth in (1, 300, 900, 5000):
        with pytest.raises(ToolError, match="content"):
            check_answer(asked, Answer("accept", Raw(b'{"name":' + b"[" * depth + b"]" * depth + b"}")))
