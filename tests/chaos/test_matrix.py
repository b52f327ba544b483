"""Every state of a call, and the death of what it runs on: what was promised, and what is seen (U4, H4)."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.chaos.ground import Ground, ground
from tests.e2e.gateway import until

pytestmark = pytest.mark.timeout(120)
_tags = count(1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One store for all of them."""
    with ground(tmp_path_factory.mktemp("matrix")) as one:
        yield one


@pytest.fixture
def tag() -> str:
    """What a test's marks are called."""
    return f"t{next(_tags)}"


# The gateway dies


def test_what_had_not_begun_is_begun_by_the_next_gateway(place: Ground, tag: str) -> None:
    """U4: queued again, whatever it does; once."""
    blocker = place.api.start("narrow", tag=f"{tag}-first")
    place.until_begun(f"{tag}-first")
    waiting = place.api.start("narrow", tag=tag)
    until(lambda: place.api.call(waiting)["state"] == "queued", "it to queue")
    place.restart()
    place.until_begun(tag)
    place.let_go(tag)
    assert (place.ended(waiting)["outcome"], len(place.begun(tag))) == ("ok", 1)
    assert place.ended(blocker)["outcome"] == "uncertain"  # this one had


def test_what_waited_for_approval_waits_on(place: Ground, tag: str) -> None:
    """H4: the question is open again, and the answer has it run, once."""
    waiting = place.api.start("risky", tag=tag)
    place.api.asked(waiting)
    place.restart()
    assert place.begun(tag) == []
    place.decide(waiting)
    place.until_begun(tag)
    place.let_go(tag)
    assert (place.ended(waiting)["outcome"], len(place.begun(tag))) == ("ok", 1)


@pytest.mark.parametrize("tool", ["safe", "boxed_safe", "far_safe"])
def test_what_ran_and_is_safe_is_run_again(place: Ground, tag: str, tool: str) -> None:
    """U4, H4: a second attempt, which the history tells of."""
    running = place.api.start(tool, tag=tag)
    place.until_begun(tag)
    place.restart()
    place.until_begun(tag, 2)
    place.let_go(tag)
    ended = place.ended(running)
    assert (ended["outcome"], ended["attempt"], len(place.begun(tag))) == ("ok", 2, 2)


@pytest.mark.parametrize("tool", ["unsafe", "boxed_unsafe", "far_unsafe"])
def test_what_ran_and_is_not_safe_is_not(place: Ground, tag: str, tool: str) -> None:
    """U4: nobody knows what it did, and that is said."""
    running = place.api.start(tool, tag=tag)
    place.until_begun(tag)
    place.restart()
    ended = place.ended(running)
    assert (ended["outcome"], ended["failure"]["side_effects"]) == ("uncertain", "possible")
    place.let_go(tag)
    assert len(place.begun(tag)) == 1


def test_what_asked_and_is_safe_is_told_without_asking_again(place: Ground, tag: str) -> None:
    """H4, Q1 h: one question, one answer, two attempts."""
    running = place.api.start("ask_safe", tag=tag)
    question = place.api.asked(running)["id"]
    place.restart()
    assert place.api.asked(running)["id"] == question
    place.tell(running, "Ada")
    assert place.ended(running)["outcome"] == "ok"
    assert [line for line in place.front.marks(tag) if line.startswith("done")][0].startswith("done Ada")


def test_what_asked_and_is_not_safe_is_uncertain(place: Ground, tag: str) -> None:
    """U4: its question is closed with it."""
    running = place.api.start("ask_unsafe", tag=tag)
    place.api.asked(running)
    place.restart()
    assert place.ended(running)["outcome"] == "uncertain"
    assert place.api.question(running) is None and len(place.begun(tag)) == 1


def test_what_was_being_stopped_is_not_begun_again(place: Ground, tag: str) -> None:
    """X1, U4: nobody wants it any more; what it did before is not known."""
    running = place.api.start("stubborn", tag=tag)
    place.until_begun(tag)
    assert place.api.post(f"/api/calls/{running}/cancel", {}).status == 202
    place.front.until_marked(tag, "told")
    place.restart()
    ended = place.ended(running)
    assert (ended["outcome"], ended["failure"]["side_effects"]) == ("cancelled", "possible")
    assert len(place.begun(tag)) == 1


def test_what_had_ended_has_ended(place: Ground, tag: str) -> None:
    """H1: with its result."""
    place.let_go(tag)
    done = place.api.start("unsafe", tag=tag)
    before = place.ended(done)
    place.restart()
    after = place.ended(done)
    assert (after["outcome"], after["result"]) == ("ok", before["result"])
    assert len(place.begun(tag)) == 1


# What it runs on dies


@pytest.mark.parametrize("tool", ["boxed_safe", "far_safe"])
def test_a_runner_that_dies_under_a_safe_call_is_replaced(place: Ground, tag: str, tool: str) -> None:
    """U4, G1: child or server, the call goes on with the next."""
    running = place.api.start(tool, tag=tag)
    first = place.until_begun(tag)
    place.kill(first)
    second = place.until_begun(tag, 2)
    place.let_go(tag)
    assert (place.ended(running)["outcome"], first == second) == ("ok", False)


@pytest.mark.parametrize("tool", ["boxed_unsafe", "far_unsafe"])
def test_a_runner_that_dies_under_an_unsafe_call_ends_it(place: Ground, tag: str, tool: str) -> None:
    """U4, G1: once, and with what may have happened."""
    running = place.api.start(tool, tag=tag)
    place.kill(place.until_begun(tag))
    ended = place.ended(running)
    assert (ended["outcome"], ended["failure"]["side_effects"]) == ("uncertain", "possible")
    place.let_go(tag)
    assert len(place.begun(tag)) == 1


def test_a_server_that_dies_while_a_person_decides_is_there_when_they_have(place: Ground, tag: str) -> None:
    """U4: nothing had begun, so nothing is uncertain."""
    place.let_go(f"{tag}-before")
    place.ended(place.api.start("far_safe", tag=f"{tag}-before"))
    waiting = place.api.start("risky", tag=tag)
    place.api.asked(waiting)
    gone = place.begun(f"{tag}-before")[-1]
    place.kill(gone)
    # Until its death is known here, a call is sent to it, and then nobody knows what became of that.
    until(lambda: place.api.get("/api/servers/far").body.get("pid") != gone, "its death to be noticed")
    place.decide(waiting)
    place.let_go(tag)
    assert place.ended(waiting)["outcome"] == "ok"
    place.let_go(f"{tag}-after")
    assert place.ended(place.api.start("far_unsafe", tag=f"{tag}-after"))["outcome"] == "ok"
