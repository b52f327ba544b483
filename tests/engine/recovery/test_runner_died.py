"""What ran a tool died under it: when it is run again, when not, and what is told of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from afoot.core.facts import Finished, Limits, Started
from afoot.core.ports import Run, RunnerStart
from afoot.engine.engine import Submission
from afoot.engine.live_call import LiveCall
from afoot.errors import RunnerDied, ToolError
from tests.engine.fake_engine import Bench, Body, facts, offering, over, took

Done = Callable[[], Awaitable[None]]


def dying(times: int, began: bool = True, after_s: float = 1.0) -> Body:
    """A tool whose server dies so often, and then lets it work."""

    async def body(run: Run) -> str:
        await asyncio.sleep(after_s)
        if run.attempt <= times:
            raise RunnerDied("server files was killed", began=began)
        return f"done at attempt {run.attempt}"

    return body


def bench(body: Body, start: Done | None = None, **options: Any) -> Bench:
    """A server that is started anew each time."""
    made = Bench()
    made.add(body, **options)
    if start is not None:
        made.starting = lambda tool, caller: RunnerStart("starting server files", start)
    return made


async def called(body: Body, start: Done | None = None, max_attempts: int = 3, **options: Any) -> LiveCall:
    """One call from its beginning to the end of its work."""
    async with offering(bench(body, start, **options)) as engine:
        engine.max_attempts = max_attempts
        live = await over(engine, engine.submit(Submission("tool")))
        assert not engine.calls() and live.timer is None
        return live


def told(live: LiveCall) -> tuple[str, bool, str]:
    """The outcome, whether it may be tried again, and whether something may have happened."""
    end = live.call.end
    assert end is not None
    return (
        (end.outcome, end.failure.retryable, end.failure.side_effects) if end.failure else ("ok", False, "")
    )


async def test_how_a_runner_died_is_the_code_of_the_failure() -> None:
    """B6: a tab that was closed says so to programs; a server has nothing to say but what became of it."""

    async def closed(run: Run) -> str:
        raise RunnerDied("its tab was closed", code="tab_closed")

    for body, code in ((closed, "tab_closed"), (dying(1), "uncertain")):
        end = (await called(body)).call.end
        assert end is not None and end.failure is not None
        assert (end.outcome, end.failure.code) == ("uncertain", code)


SAFE: list[dict[str, Any]] = [{"read_only": True}, {"idempotent": True}]


@pytest.mark.parametrize("options", SAFE)
async def test_what_is_safe_runs_again(options: dict[str, Any]) -> None:
    """U4: started and safe: the next attempt, in the same call."""
    live = await called(dying(1), **options)
    assert told(live)[0] == "ok" and live.call.end and live.call.end.result
    assert b"done at attempt 2" in bytes(live.call.end.result.content)
    assert [(fact.attempt, fact.unsent) for fact in facts(live, Started)] == [(1, False), (2, False)]


async def test_what_had_not_begun_runs_again_whatever_it_is() -> None:
    """U4: the server never had the request, so nothing can have happened; the history says so."""
    live = await called(dying(2, began=False))
    assert told(live)[0] == "ok"
    assert [(fact.attempt, fact.unsent) for fact in facts(live, Started)] == [
        (1, False),
        (2, True),
        (3, True),
    ]


@pytest.mark.parametrize(
    ("options", "began", "outcome", "retryable", "effects"),
    [
        ({}, True, "uncertain", False, "possible"),
        ({"idempotent": True, "trusted": False}, True, "uncertain", False, "possible"),
        ({"read_only": True, "trusted": False}, True, "uncertain", False, "possible"),
        ({"read_only": True}, True, "lost", True, "none"),
        ({"idempotent": True}, True, "uncertain", True, "possible"),
        ({}, False, "lost", True, "none"),
    ],
    ids=["silent", "untrusted idempotent", "untrusted read-only", "read-only", "idempotent", "not begun"],
)
async def test_what_is_not_run_again_ends_lost_or_uncertain(
    options: dict[str, Any], began: bool, outcome: str, retryable: bool, effects: str
) -> None:
    """U4, E2: read-only is lost, any other uncertain; where nothing had begun, nothing happened."""
    live = await called(dying(99, began), **options)
    assert told(live) == (outcome, retryable, effects)
    assert live.call.end and live.call.end.failure
    failure = live.call.end.failure
    assert (failure.category, failure.code) == ("unavailable", outcome)
    assert failure.message.startswith(f"{outcome}: server files was killed")
    assert ("may have happened" in failure.message) is (outcome == "uncertain")


async def test_only_what_is_safe_and_trusted_is_repeated() -> None:
    """U4: silence means no, and so does the word of a server that nobody trusts."""
    unsafe: list[dict[str, Any]] = [{}, *({**claim, "trusted": False} for claim in SAFE)]
    for options in unsafe:
        live = await called(dying(1), **options)
        assert (live.call.attempt, told(live)[0] == "ok") == (1, False)
        assert live.call.end and live.call.end.failure
        assert "so it was not run again" in live.call.end.failure.message


@pytest.mark.parametrize(("most", "attempts"), [(1, 1), (3, 3), (5, 5)])
@pytest.mark.parametrize("began", [True, False])
async def test_attempts_are_bounded(most: int, attempts: int, began: bool) -> None:
    """U4: max_attempts in a row, then it is told as it is."""
    live = await called(dying(99, began), max_attempts=most, read_only=True)
    assert (live.call.attempt, told(live)[0], took(live)) == (attempts, "lost", float(attempts))


async def test_one_attempt_that_had_begun_makes_it_uncertain_for_good() -> None:
    """U4: the last never had the request, but the first had it."""

    async def body(run: Run) -> str:
        raise RunnerDied("server files was killed", began=run.attempt == 1)

    live = await called(body, idempotent=True)
    assert (live.call.attempt, *told(live)) == (3, "uncertain", True, "possible")


async def test_a_restart_that_fails_ends_the_call() -> None:
    """U4: what the tool ran on does not come back; both reasons are told."""

    async def start() -> None:
        raise ToolError.unavailable("server files failed 3 times in a row")

    live = await called(dying(1), start, read_only=True)
    assert live.call.end and live.call.end.failure and told(live)[0] == "lost"
    message = live.call.end.failure.message
    assert message == "lost: server files was killed; and again: server files failed 3 times in a row"


@pytest.mark.parametrize("error", [RunnerDied("killed again"), OSError("no memory"), ValueError("odd")])
async def test_a_restart_may_raise_anything_and_the_call_still_has_its_end(error: Exception) -> None:
    """U4: no call is left behind."""

    async def start() -> None:
        raise error

    live = await called(dying(1), start, idempotent=True)
    assert told(live)[0] == "uncertain" and live.call.end and live.call.end.failure
    assert str(error) in live.call.end.failure.message


async def test_a_restart_has_the_limit_of_a_start() -> None:
    """C1, U4: start_limit_s is named."""

    async def start() -> None:
        await asyncio.sleep(1000)

    live = await called(dying(1), start, idempotent=True, limits=Limits(idle_s=None, start_s=40.0))
    assert (told(live)[0], took(live)) == ("uncertain", 41.0)
    assert live.call.end and live.call.end.failure
    assert "did not start again in 40 s (raise start_limit_s)" in live.call.end.failure.message


async def test_a_call_can_be_cancelled_while_its_server_is_started_again() -> None:
    """X1, U4: the restart is given up, and the slot is free."""

    async def start() -> None:
        await asyncio.sleep(1000)

    async with offering(bench(dying(1), start, idempotent=True, concurrency=1)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(10)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
        assert (told(live)[0], took(live)) == ("cancelled", 10.0)
        assert not engine.slots.holders


async def test_a_runner_that_dies_of_a_cancel_is_a_cancel() -> None:
    """X1: killing the server was how the call was stopped; it is not run again."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise RunnerDied("server files was killed") from None
        return "done"

    async with offering(bench(body, read_only=True)) as engine:
        live = engine.submit(Submission("tool"))
        await asyncio.sleep(1)
        engine.cancel(live, "caller", "enough")
        await over(engine, live)
    assert (told(live)[0], live.call.attempt) == ("cancelled", 1)


async def test_a_runner_that_dies_after_a_timeout_changes_nothing() -> None:
    """C7: the caller was told at the limit."""

    async def body(run: Run) -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise RunnerDied("server files was killed") from None
        return "done"

    live = await called(body, read_only=True)
    assert (told(live)[0], took(live), len(facts(live, Finished))) == ("timed_out", 30.0, 1)


async def test_the_ceiling_holds_over_all_attempts_and_the_restarts_between() -> None:
    """C1: nothing extends it."""

    async def start() -> None:
        await asyncio.sleep(20)

    async def body(run: Run) -> str:
        for _ in range(8):
            await asyncio.sleep(10)
            run.alive()
        raise RunnerDied("server files was killed")

    live = await called(body, start, max_attempts=99, idempotent=True)
    assert (told(live)[0], took(live), live.call.attempt) == ("timed_out", 300.0, 3)


async def test_a_safe_call_waits_for_a_server_that_says_when_to_try_again() -> None:
    """U4: within its own limits, however often the server is not back yet."""
    tries = list[float]()

    async def start() -> None:
        now = asyncio.get_running_loop().time()
        tries.append(now)
        if now < 20:
            raise ToolError("server files cannot be reached", "unavailable", retryable=True, retry_after=8.0)

    live = await called(dying(1), start, read_only=True)
    assert told(live)[0] == "ok" and live.call.attempt == 2
    assert tries == [1.0, 9.0, 17.0, 25.0]


async def test_a_safe_call_waits_no_longer_than_a_start_may_take() -> None:
    """U4, C1: the text says what died, and which setting gives it more time."""

    async def start() -> None:
        raise ToolError("server files cannot be reached", "unavailable", retryable=True, retry_after=8.0)

    live = await called(dying(1), start, read_only=True, limits=Limits(start_s=30))
    assert told(live)[0] == "lost" and took(live) == 31.0 and live.call.end and live.call.end.failure
    assert "did not start again in 30 s (raise start_limit_s)" in live.call.end.failure.message
