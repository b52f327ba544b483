"""Who follows all calls for telemetry: told of each once, also of those that it did not see begin."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec import Raw

from afoot.core.call import evolve
from afoot.core.facts import Entry, Fact, Finished, Opened, Released, Reported, Started
from afoot.engine.live_call import LiveCall
from afoot.observe.call_notes import CallNotes
from afoot.observe.telemetry import TelemetryFollower
from tests.observe.sample_calls import ID, Noted


class Calls(dict[str, LiveCall]):
    """Where calls live; what is published reaches who watches."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = self.default_trace = None
        self.quota_refusals: dict[str, int] = {}
        self.watchers: list[TelemetryFollower] = []
        self.at_begin: list[LiveCall] = []

    def own_calls(self) -> list[LiveCall]:
        """Those that live when it is begun to watch."""
        return self.at_begin

    def publish(self, *facts: Fact) -> None:
        """These were recorded."""
        for fact in facts:
            if not isinstance(fact, Opened):
                evolve(self[ID].call, fact)
            for watcher in self.watchers:
                watcher.on_fact(Entry(ID, self[ID].call.seq, fact))
            if isinstance(fact, Released):
                del self[ID]


class Told:
    """What was told, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def opened(self, notes: CallNotes) -> None:
        self.lines.append("opened")

    def finished(self, notes: CallNotes) -> None:
        self.lines.append("finished")

    def ended(self, notes: CallNotes) -> None:
        self.lines.append(f"ended {notes.live.call.end.outcome if notes.live.call.end else 'not'}")


def followed(act: Callable[[Calls], None]) -> list[str]:
    """What is told of a call to which this happens."""
    calls, told = Calls(), Told()
    calls[ID] = Noted().live

    async def main() -> None:
        async with TelemetryFollower(calls, told):
            act(calls)

    asyncio.run(main())
    assert calls.watchers == []
    return told.lines


BEGUN = Opened(100.0, "export", "local", "local", Raw(b"{}"))
OVER = (Finished(102.0, "ok"), Released(102.0))
LATE = Reported(102.5, 1, late=True)


def test_a_call_is_told_of_once() -> None:
    """V3: at its beginning, at its end, and when nothing more comes of it."""
    assert followed(lambda calls: calls.publish(BEGUN, Started(101.0), *OVER)) == [
        "opened",
        "finished",
        "ended ok",
    ]


def test_a_call_of_a_gateway_that_died_is_told_of_though_its_beginning_was_not_seen() -> None:
    """V3, H4: what is settled after a crash has its span."""
    assert followed(lambda calls: calls.publish(*OVER)) == ["opened", "finished", "ended ok"]


@pytest.mark.parametrize(
    ("before", "then", "lines"),
    [
        ((Started(101.0),), OVER, ["opened", "finished", "ended ok"]),
        ((Started(101.0), OVER[0]), (OVER[1],), []),
        ((Started(101.0), OVER[0]), (LATE, OVER[1]), ["opened", "finished", "ended ok"]),
    ],
    ids=["lives", "has ended", "has ended and says more"],
)
def test_a_call_that_lives_when_following_begins_finishes_as_often_as_it_opens(
    before: tuple[Fact, ...], then: tuple[Fact, ...], lines: list[str]
) -> None:
    """V8: else it would be shown as active for ever, if it had ended and its tool had not stopped yet."""
    calls, told = Calls(), Told()
    calls[ID] = Noted().live
    calls.publish(*before)
    calls.at_begin = [calls[ID]]

    async def main() -> None:
        async with TelemetryFollower(calls, told):
            calls.publish(*then)

    asyncio.run(main())
    assert told.lines == lines


def test_a_call_that_nobody_knows_any_more_is_no_bad_day() -> None:
    """V3: a fact that comes after all is over is passed by."""

    def act(calls: Calls) -> None:
        calls.publish(BEGUN, *OVER)
        for watcher in calls.watchers:
            watcher.on_fact(Entry(ID, 9, Released(103.0)))
            watcher.on_fact(Entry("another", 2, Started(103.0)))

    assert followed(act) == ["opened", "finished", "ended ok"]


def test_whoever_stops_following_tells_of_what_has_ended() -> None:
    """V3: also where the tool itself has not stopped yet."""
    assert followed(lambda calls: calls.publish(BEGUN, Started(101.0), OVER[0])) == [
        "opened",
        "finished",
        "ended ok",
    ]
