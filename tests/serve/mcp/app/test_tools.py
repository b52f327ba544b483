"""The tools that the page of our app calls: a caller sees, stops and answers its own calls, and no others."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Raw, json

from afoot.core.facts import Question
from afoot.core.ports import Run
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.serve.gateway_state import GatewayState
from afoot.wire.jsonrpc import Fault
from afoot.wire.results import APP_PAGE_TYPE, APPS_EXTENSION, Capabilities
from tests.engine.fake_engine import form
from tests.serve.fake_gateway import Tape, asks, call_request, faked, nap, only, said, site_of, wanted

SHOWS = Capabilities(extensions={APPS_EXTENSION: {"mimeTypes": [APP_PAGE_TYPE]}})
ALICE = "token:alice"


async def asked(
    gateway: GatewayState, name: str, arguments: Mapping[str, object], caller: str = ALICE, **parts: Any
) -> Tape:
    """The answer to a tool of the page."""
    want = wanted(name=name, arguments=Raw(json.encode(arguments)), **{"capabilities": SHOWS, **parts})
    return await call_request(gateway, want, caller=caller)


async def view(gateway: GatewayState, caller: str = ALICE, **subject: object) -> list[dict[str, Any]]:
    """The calls that the page is told of."""
    found = (await asked(gateway, "afoot_view", subject, caller)).result["structuredContent"]
    calls: list[dict[str, Any]] = found["calls"]
    return calls


async def started(gateway: GatewayState, caller: str = ALICE, arguments: bytes = b"{}") -> LiveCall:
    """A call of this caller, as soon as it has begun."""
    live = gateway.engine.submit(Submission("tool", Raw(arguments), caller))
    await asyncio.sleep(0)
    return live


def refusal(tape: Tape) -> str:
    """Why a tool did not do it."""
    assert tape.result["isError"]
    return str(tape.result["content"][0]["text"])


@faked
async def test_a_caller_sees_its_own_calls_and_no_others() -> None:
    """V7, S3: also not by an id that it was told."""
    async with site_of(nap) as gateway:
        mine, theirs = await started(gateway), await started(gateway, "token:bob")
        assert [one["id"] for one in await view(gateway)] == [mine.call.id]
        assert [one["id"] for one in await view(gateway, call=mine.call.id)] == [mine.call.id]
        assert [one["id"] for one in await view(gateway, tool="tool")] == [mine.call.id]
        tape = await asked(gateway, "afoot_view", {"call": theirs.call.id})
        assert (
            refusal(tape) == f"no call {theirs.call.id!r} of yours is known; the id is the one in afoot_call"
        )


@faked
async def test_callers_that_cannot_be_told_apart_see_a_call_by_its_id_alone() -> None:
    """V7, S3: nothing is listed for them."""
    async with site_of(nap) as gateway:
        live = await started(gateway, "local")
        assert await view(gateway, "local") == await view(gateway, "local", tool="tool") == []
        assert [one["id"] for one in await view(gateway, "local", call=live.call.id)] == [live.call.id]


@faked
async def test_the_call_of_a_request_is_found_by_its_id_then_by_its_arguments() -> None:
    """V7: two calls of one tool in one conversation are two frames."""
    async with site_of(nap) as gateway:
        first = asyncio.create_task(call_request(gateway, wanted(id=7), caller=ALICE))
        await asyncio.sleep(0)
        by_request = only(gateway).call.id
        by_arguments = (await started(gateway, arguments=b'{"page": 2}')).call.id
        newest = (await started(gateway)).call.id
        assert [one["id"] for one in await view(gateway, tool="tool", request=7)] == [by_request]
        found = await view(gateway, tool="tool", request=8, arguments={"page": 2})
        assert [one["id"] for one in found] == [by_arguments]
        assert [one["id"] for one in await view(gateway, tool="tool", arguments={"page": 3})] == [newest]
        await asyncio.sleep(5)
        assert [one["id"] for one in await view(gateway, tool="tool", age_s=4)] == [newest]
        assert await view(gateway, tool="tool", age_s=1) == [], "the call of this frame is still to come"
        await first


@faked
async def test_the_view_of_a_failure_keeps_the_trace_for_the_operator() -> None:
    """V7, E3: the page has the words, and nothing of the inside."""

    async def fails(run: Run) -> str:
        raise KeyError("an inner name")

    async with site_of(fails) as gateway:
        tape = await call_request(gateway, wanted(), caller=ALICE)
        [shown] = await view(gateway, call=tape.result["_meta"]["dev.afoot/call"])
    assert shown["outcome"] == "failed" and shown["failure"]["message"]
    assert shown["failure"]["trace"] == shown["failure"]["hint"] == ""


@faked
async def test_a_person_answers_in_the_page() -> None:
    """V7, Q4: as the caller, and the history says by which surface."""
    async with site_of(asks) as gateway:
        live = await started(gateway)
        await asyncio.sleep(1)
        [question] = (await view(gateway))[0]["questions"]
        given = {"question": question["id"], "digest": question["digest"], "action": "accept"}
        tape = await asked(gateway, "afoot_answer", {**given, "content": {"sure": True}})
        assert "isError" not in tape.result
        end = await gateway.engine.wait_for_end(live)
        assert end.result is not None and b"accept" in bytes(end.result.content)
        assert live.call.answers[question["id"]].answer.surface == "app"
        assert refusal(await asked(gateway, "afoot_answer", given)) == "this question is not open any more"


@faked
async def test_an_answer_is_for_the_question_that_was_shown() -> None:
    """V7, A6: a digest of anything else answers nothing, and an answer that does not fit is told."""

    async def strict(run: Run) -> str:
        return said(await run.ask(form("q", {"type": "object", "properties": {"sure": {"type": "boolean"}}})))

    async with site_of(strict) as gateway:
        await started(gateway)
        await asyncio.sleep(1)
        [question] = (await view(gateway))[0]["questions"]
        given = {"question": question["id"], "action": "accept", "content": {"sure": "perhaps"}}
        other = await asked(gateway, "afoot_answer", {**given, "digest": "another"})
        assert refusal(other) == "this question is not what was shown; look at it again"
        wrong = await asked(gateway, "afoot_answer", {**given, "digest": question["digest"]})
        assert "content.sure" in refusal(wrong)


@faked
async def test_nobody_answers_for_somebody_else() -> None:
    """V7, S3: the same words as for a question that does not exist."""
    async with site_of(asks) as gateway:
        live = await started(gateway)
        await asyncio.sleep(1)
        given = {"question": f"{live.call.id}.1", "digest": "", "action": "accept"}
        assert "of yours is known" in refusal(await asked(gateway, "afoot_answer", given, "token:bob"))


QUESTIONS: list[tuple[Question, dict[str, Any], str]] = [
    (Question("", "q", "form", "sure?", to="operator"), {}, "only the operator is asked this"),
    (Question("", "q", "sample", "well?", Raw(b"{}")), {}, "for a program, not for a person"),
    (Question("", "q", "approval", "run it?"), {"decision": "always"}, "is for the operator to say"),
    (Question("", "q", "approval", "run it?"), {"decision": "maybe"}, "content.decision"),
]


@pytest.mark.parametrize(
    ("question", "content", "why"), QUESTIONS, ids=["operator", "model", "always", "wrong"]
)
def test_a_page_may_not_give_every_answer(question: Question, content: dict[str, Any], why: str) -> None:
    """V7, A1, A5: a host's model may call the page's tools if its host does not hide them."""

    @faked
    async def check() -> None:
        async def ask(run: Run) -> str:
            return said(await run.ask(question))

        async with site_of(ask) as gateway:
            await started(gateway)
            await asyncio.sleep(1)
            [shown] = (await view(gateway))[0]["questions"]
            given = {
                "question": shown["id"],
                "digest": shown["digest"],
                "action": "accept",
                "content": content,
            }
            assert why in refusal(await asked(gateway, "afoot_answer", given))
            gateway.engine.cancel(only(gateway), "caller", "enough")

    check()


@faked
async def test_to_other_clients_there_are_no_such_tools() -> None:
    """V7: not even by their names."""
    for can in (Capabilities(), Capabilities(extensions={APPS_EXTENSION: {}})):
        async with site_of(nap) as gateway:
            with pytest.raises(Fault, match="afoot_view"):
                await asked(gateway, "afoot_view", {}, capabilities=can)


@faked
async def test_the_setting_takes_the_app_away() -> None:
    """V7: from everybody."""
    async with site_of(nap, settings={"app": "off"}) as gateway:
        with pytest.raises(Fault, match="afoot_view"):
            await asked(gateway, "afoot_view", {})
