"""2026-07-28 as a manner of conversation: rounds, their sealed state, who follows, and who may leave when."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.call import State
from afoot.core.facts import Answer, CancelRequested, Limits
from afoot.core.ports import Batch, Run
from afoot.engine.recovery import recover
from afoot.errors import AlreadyAnswered
from afoot.serve.caller_presence import requests_of
from afoot.store.memory import MemoryJournal
from afoot.wire import sealed_state
from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.results import Capabilities
from tests.engine.fake_engine import facts, form
from tests.serve.fake_gateway import (
    KEY,
    YES,
    Tape,
    asks,
    begin,
    call_request,
    faked,
    nap,
    only,
    replies,
    said,
    site_of,
    wanted,
)

TYPED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ADA = {"action": "accept", "content": {"name": "Ada"}}
NOBODY = Capabilities()


async def asks_two(run: Run) -> str:
    """A tool that asks for two things at once."""
    answers = await asyncio.gather(run.ask(form("name", TYPED)), run.ask(form("sure")))
    return "; ".join(said(answer) for answer in answers)


def told(tape: Tape) -> str:
    """The text of a result."""
    return str(tape.result["content"][0]["text"])


@faked
async def test_a_caller_that_leaves_before_the_last_frame_cancels() -> None:
    """Q1 a, X1: by its disconnect, and nothing more is sent."""
    async with site_of(nap) as gateway:
        tape = Tape()
        task = begin(gateway, wanted(token="t"), tape)
        await asyncio.sleep(1)
        live = only(gateway)
        tape.leave()
        await task
        await asyncio.sleep(1)
        assert live.call.end is not None and live.call.end.outcome == "cancelled"
        assert facts(live, CancelRequested)[0].by == "disconnect"
    assert tape.frames == [] and tape.ended == [(1, None)]


@faked
async def test_a_caller_that_leaves_at_once_cancels_too() -> None:
    """Q1 a: even if it went before anybody looked."""
    async with site_of(nap) as gateway:
        tape = Tape()
        task = begin(gateway, wanted(), tape)
        await asyncio.sleep(0)
        live = only(gateway)
        tape.leave()
        await task
        assert live.call.cancel is not None and live.call.cancel.at - live.call.opened.at < 0.1


@faked
async def test_a_caller_that_leaves_while_its_last_frame_is_sent_cancels_nothing() -> None:
    """Q1 a: it is answered from before that frame is handed over; an official client closes first."""
    async with site_of(asks) as gateway:
        first = Tape(slow_s=5)
        task = begin(gateway, wanted(), first)
        await asyncio.sleep(1)
        live = only(gateway)
        assert first.state, "the round is on its way"
        first.leave()
        await task
        assert live.call.state is State.RUNNING and live.call.cancel is None
        second = await call_request(gateway, wanted(state=first.state, answers=replies(sure=YES)))
    assert told(second) == "accept {} by local"


@faked
async def test_between_rounds_a_call_is_parked_until_its_answer_limit() -> None:
    """Q1 b, C6: nobody is attached, only the answer's clock runs, and a retry is told how it ended."""
    async with site_of(asks, limits=Limits(answer_s=600)) as gateway:
        first = await call_request(gateway, wanted())
        live = only(gateway)
        assert (requests_of(live).attached, live.followers, requests_of(live).round) == (0, [], 1)
        await asyncio.sleep(599)
        assert live.call.open
        await asyncio.sleep(2)
        late = await call_request(gateway, wanted(state=first.state, answers=replies(sure=YES)))
    assert late.result["isError"] and late.result["_meta"]["dev.afoot/error"]["clock"] == "answer"


@faked
async def test_the_operator_answers_while_it_is_parked() -> None:
    """Q1 b, Q4, A5: the first answer counts, a second is refused and named, a late retry only follows."""
    async with site_of(asks) as gateway:
        first = await call_request(gateway, wanted())
        live = only(gateway)
        [asked] = live.call.open
        gateway.engine.answer(asked, Answer("decline", by="operator"))
        with pytest.raises(AlreadyAnswered, match="already answered: decline, by operator"):
            gateway.engine.answer(asked, Answer(by="somebody"))
        late = await call_request(gateway, wanted(state=first.state, answers=replies(sure=YES)))
        again = await call_request(gateway, wanted(state=first.state, id=9))
    assert told(late) == "decline  by operator" and again.last["id"] == 9 and told(again) == told(late)


Change = Callable[[sealed_state.RequestState], sealed_state.RequestState]
WRONG_STATES: dict[str, tuple[Change, bytes]] = {
    "another key": (lambda mark: mark, b"x" * 32),
    "another caller": (lambda mark: replace(mark, caller="session:1"), KEY),
    "another tool or other arguments": (lambda mark: replace(mark, digest="0"), KEY),
    "expired": (lambda mark: replace(mark, expires=1.0), KEY),
    "no longer known": (lambda mark: replace(mark, call="0" * 40), KEY),
}


@faked
@pytest.mark.parametrize("case", WRONG_STATES)
async def test_a_state_that_is_not_right_is_refused(case: str) -> None:
    """Q1 c: sealed over call, round, caller, request and expiry; anything wrong is -32602."""
    change, key = WRONG_STATES[case]
    async with site_of(asks) as gateway:
        first = await call_request(gateway, wanted())
        mark = sealed_state.unseal_request_state(first.state, KEY, 0.0)
        with pytest.raises(Fault, match=r"params\.requestState") as refused:
            await call_request(gateway, wanted(state=sealed_state.seal(change(mark), key)))
        assert refused.value.code == INVALID_PARAMS and case.split()[-1] in refused.value.message + " key"
        assert requests_of(only(gateway)).attached == 0 and only(gateway).call.open


@faked
@pytest.mark.parametrize(
    ("parts", "caller"),
    [({"name": "other"}, "local"), ({"arguments": Raw(b'{"a":1}')}, "local"), ({}, "session:1")],
)
async def test_a_state_is_for_one_caller_and_one_request(parts: dict[str, object], caller: str) -> None:
    """Q1 c, S3: sent back by another caller, or with other arguments, or to another tool."""
    async with site_of(asks) as gateway:
        first = await call_request(gateway, wanted())
        with pytest.raises(Fault, match=r"params\.requestState: made for another") as refused:
            await call_request(gateway, replace(wanted(state=first.state), **parts), caller=caller)
    assert refused.value.code == INVALID_PARAMS


@faked
async def test_a_state_expires_once_its_call_cannot_live_any_more() -> None:
    """Q1 c: after the answer limit and the ceiling."""
    async with site_of(asks, limits=Limits(answer_s=10, ceiling_s=20)) as gateway:
        first = await call_request(gateway, wanted())
        await asyncio.sleep(29)
        assert (await call_request(gateway, wanted(state=first.state))).result["isError"]
        await asyncio.sleep(2)
        with pytest.raises(Fault, match="expired"):
            await call_request(gateway, wanted(state=first.state))


@faked
async def test_a_retry_is_asked_again_for_what_is_missing_or_does_not_fit() -> None:
    """Q1 d, f, Q2: one round for all that is open; unknown keys are ignored, and each state is another."""
    async with site_of(asks_two) as gateway:
        first = await call_request(gateway, wanted())
        assert set(first.result["inputRequests"]) == {"name", "sure"}
        misfit = {"action": "accept", "content": {"name": 1}}
        second = await call_request(
            gateway, wanted(state=first.state, answers=replies(name=misfit, sure=YES, x=YES))
        )
        third = await call_request(gateway, wanted(state=second.state, answers=replies(name=12, sure="?")))
        fourth = await call_request(gateway, wanted(state=third.state))
        assert set(second.result["inputRequests"]) == set(fourth.result["inputRequests"]) == {"name"}
        assert len({first.state, second.state, third.state, fourth.state}) == 4
        done = await call_request(gateway, wanted(state=fourth.state, answers=replies(name=ADA)))
        assert gateway.counters == {"answers refused": 2}
    assert told(done) == 'accept {"name": "Ada"} by local; accept {} by local'


async def asks_then_works(run: Run) -> str:
    """A tool that asks, and then has something to do."""
    await run.ask(form("sure"))
    await asyncio.sleep(10)
    return "worked"


@faked
async def test_the_same_state_twice_gives_two_followers_and_the_last_that_goes_cancels() -> None:
    """Q1 d: of the newest round; one that leaves alone takes nothing from the other."""
    async with site_of(asks_then_works) as gateway:
        state = (await call_request(gateway, wanted())).state
        tapes = [Tape(), Tape()]
        tasks = [begin(gateway, wanted(state=state, answers=replies(sure=YES)), tape) for tape in tapes]
        await asyncio.sleep(1)
        live = only(gateway)
        assert requests_of(live).attached == 2
        tapes[0].leave()
        await asyncio.sleep(1)
        assert live.call.cancel is None
        tapes[1].leave()
        await asyncio.gather(*tasks)
        assert live.call.cancel is not None and live.call.cancel.by == "disconnect"


@faked
async def test_two_followers_get_the_same_end() -> None:
    """Q1 d: each under its own id."""
    async with site_of(asks_then_works) as gateway:
        state = (await call_request(gateway, wanted())).state
        both = [begin(gateway, wanted(id=n, state=state, answers=replies(sure=YES))) for n in (5, 6)]
        first, second = await asyncio.gather(*both)
    assert (first.last["id"], second.last["id"]) == (5, 6) and told(first) == told(second) == "worked"


@faked
async def test_a_request_of_an_older_round_that_goes_cancels_nothing() -> None:
    """Q1 d: it may follow, but the call belongs to the newest round."""

    async def tool(run: Run) -> str:
        await run.ask(form("one"))
        await run.ask(form("two"))
        return await asks_then_works(run)

    async with site_of(tool) as gateway:
        old = await call_request(gateway, wanted())
        newer = await call_request(gateway, wanted(state=old.state, answers=replies(one=YES)))
        newest = await call_request(gateway, wanted(state=newer.state, answers=replies(two=YES)))
        task = begin(gateway, wanted(state=newest.state, answers=replies(sure=YES)))
        await asyncio.sleep(1)
        stray = Tape()
        strayed = begin(gateway, wanted(state=old.state), stray)
        await asyncio.sleep(1)
        stray.leave()
        await strayed
        assert only(gateway).call.cancel is None
        assert told(await task) == "worked"


@faked
async def test_answers_without_a_state_open_a_call_that_has_them() -> None:
    """Q1 e: used when it asks by that key; one that does not fit leaves the question open."""
    async with site_of(asks_two) as gateway:
        done = await call_request(gateway, wanted(answers=replies(name=ADA, sure=YES, other=YES)))
        assert told(done) == 'accept {"name": "Ada"} by local; accept {} by local'
        asked = await call_request(gateway, wanted(answers=replies(name=12345, sure={"action": "decline"})))
    assert set(asked.result["inputRequests"]) == {"name"}


@faked
async def test_a_call_that_waited_through_a_crash_goes_on_if_it_is_safe() -> None:
    """Q1 h, H1, H4: run again with the answers it was given, which were on record before that was told."""
    for safe, end in ((True, 'accept {"name": "Ada"} by local; accept {} by local'), (False, "uncertain")):
        async with site_of(asks_two, idempotent=safe) as gateway:
            first = await call_request(gateway, wanted())
            second = await call_request(gateway, wanted(state=first.state, answers=replies(name=ADA)))
            left = await gateway.engine.journal.facts(only(gateway).call.id)
        journal = MemoryJournal()
        journal.write(Batch(left))
        async with site_of(asks_two, idempotent=safe, journal=journal) as gateway:
            await recover(gateway.engine)
            done = await call_request(gateway, wanted(state=second.state, answers=replies(sure=YES)))
        assert told(done).startswith(end) and bool(done.result.get("isError")) is not safe
