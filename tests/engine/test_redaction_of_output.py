"""What a tool says of its secrets is kept without them, however it says it."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Logged
from afoot.core.ports import Run
from afoot.core.redaction import REDACTED_TEXT, Redactor
from afoot.engine.catalog import EffectiveSettings
from afoot.engine.engine import Submission
from afoot.engine.failures import MAX_ERROR_CHARS, MAX_TRACE_CHARS
from afoot.errors import ToolError
from tests.engine.fake_engine import engine_of, facts, form, over

ODD = 'say "hünter2"\\n\nto line-two'


def given(secret: str) -> Submission:
    """A call with a secret."""
    return Submission("tool", Raw(json.dumps({"password": secret}).encode()))


@pytest.mark.parametrize("say", [str, repr, json.dumps, partial(json.dumps, ensure_ascii=False)])
@pytest.mark.parametrize("kind", [ValueError, ToolError])
async def test_a_secret_in_quotes_is_still_one(say: Callable[[str], str], kind: type[Exception]) -> None:
    """S4: as Python or JSON write it, in a line, an error and a trace."""

    async def body(run: Run) -> str:
        run.log(f"trying {say(ODD)}", "info", "")
        raise kind(f"not {say(ODD)}")

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given(ODD)))
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    for text in (facts(live, Logged)[0].text, failure.message):
        assert REDACTED_TEXT in text and "nter2" not in text and "line-two" not in text
    assert "nter2" not in failure.trace and "line-two" not in failure.trace


async def test_a_secret_of_several_lines_is_none_of_them() -> None:
    """S4: what is printed comes line by line."""

    async def body(run: Run) -> str:
        for line in ODD.splitlines():
            run.log(line, "info", "stdout")
        return ""

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given(ODD)))
    assert [fact.text for fact in facts(live, Logged)] == [REDACTED_TEXT, REDACTED_TEXT]


@pytest.mark.parametrize("beyond", range(1, 12))
async def test_half_a_secret_is_not_left_where_a_text_is_cut(beyond: int) -> None:
    """S4, E3: neither at the end of the line for the caller, nor at the beginning of the trace."""
    secret = "Q7w-Q7w-Q7w-"

    async def body(run: Run) -> str:
        head = "tool tool crashed: ValueError: "
        said = "x" * (MAX_ERROR_CHARS - len(head) - beyond) + secret
        raise ValueError(f"{said}{secret}{'y' * (MAX_TRACE_CHARS - 1 - beyond)}")

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given(secret)))
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    assert len(failure.message) == MAX_ERROR_CHARS and len(failure.trace) == MAX_TRACE_CHARS
    assert "Q" not in failure.message and "7" not in failure.trace[:20]
    assert failure.trace.startswith("…")


async def test_what_a_server_was_given_is_kept_out_of_its_errors() -> None:
    """S4: a variable or a header of its settings."""

    async def body(run: Run) -> str:
        raise ToolError.auth("the key 0123456789abcdef was refused; password: is needed")

    async with engine_of(body) as engine:
        engine.catalog.effective_settings = EffectiveSettings(redactor=(redactor := Redactor()))
        redactor.add_named_secrets({"API_KEY": "0123456789abcdef"})
        live = await over(engine, engine.submit(given("unused")))
    assert live.call.end is not None and live.call.end.failure is not None
    assert live.call.end.failure.message == f"the key {REDACTED_TEXT} was refused; password: is needed"


async def test_what_a_server_was_given_is_kept_out_as_it_is_quoted() -> None:
    """S4: an error may have it as JSON."""

    async def body(run: Run) -> str:
        raise ToolError.auth(f"refused: {json.dumps(ODD)}")

    async with engine_of(body) as engine:
        engine.catalog.effective_settings = EffectiveSettings(redactor=(redactor := Redactor()))
        redactor.add_named_secrets({"API_KEY": ODD})
        live = await over(engine, engine.submit(given("unused")))
    assert live.call.end is not None and live.call.end.failure is not None
    assert live.call.end.failure.message == f'refused: "{REDACTED_TEXT}"'


async def test_half_a_secret_is_not_left_where_a_tools_own_words_are_cut() -> None:
    """S4, E3: they are cut once they are clean."""

    async def body(run: Run) -> str:
        raise ToolError("x" * (MAX_ERROR_CHARS - 5) + "Q7w-Q7w-Q7w-")

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given("Q7w-Q7w-Q7w-")))
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    assert len(failure.message) == MAX_ERROR_CHARS and "Q" not in failure.message


class Mute:
    """What cannot be said."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(("what", "words"), [(ValueError("inside"), "inside"), (Mute(), "cannot be said")])
async def test_a_tool_may_say_what_is_no_text(what: Any, words: str) -> None:
    """E3: its call ends all the same."""

    async def body(run: Run) -> str:
        raise ToolError(what)

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given("unused")))
    assert live.call.end is not None and (failure := live.call.end.failure) is not None
    assert words in failure.message


async def test_the_log_of_the_gateway_has_nothing_that_a_tool_was_given() -> None:
    """S4: while its call lives; other lines are looked through as ever."""
    lines = list[str]()

    async def body(run: Run) -> str:
        lines.append(engine.redact_log_line("trying hunter2, token=abc", run.id))
        return ""

    async with engine_of(body) as engine:
        live = await over(engine, engine.submit(given("hunter2")))
        lines.append(engine.redact_log_line("token=abc", live.call.id))
        lines.append(engine.redact_log_line("token=abc", ""))
    assert lines == [
        f"trying {REDACTED_TEXT}, token={REDACTED_TEXT}",
        f"token={REDACTED_TEXT}",
        f"token={REDACTED_TEXT}",
    ]


async def test_a_message_that_repeats_is_searched_again_once_a_secret_was_answered() -> None:
    """S4, S7: a message that was clean is remembered, but only until there are more secrets."""
    word = "porcupine sonata"
    told: list[str] = []

    async def body(run: Run) -> str:
        for _ in range(2):
            run.report(1, 2, word)
            latest = engine[run.id].call.latest
            told.append("" if latest is None else str(latest.message))
            if len(told) == 1:
                await run.ask(form("password", {"type": "object", "properties": {"password": {}}}))
        return ""

    async with engine_of(body) as engine:
        live = engine.submit(Submission("tool", Raw(b"{}")))
        await asyncio.sleep(1)
        engine.answer(
            next(iter(live.call.open)), Answer("accept", Raw(json.dumps({"password": word}).encode()))
        )
        await over(engine, live)
    assert told == [word, REDACTED_TEXT]
