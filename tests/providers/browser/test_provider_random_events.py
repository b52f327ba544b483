"""Browsers that do anything in any order: every call ends, with its own result or a reason; nothing mixes."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, json

from afoot.core.facts import Reading
from afoot.engine.live_call import LiveCall
from afoot.errors import CallerError
from afoot.testing import run
from afoot.wire.browser_data import PageReport, RunPosition
from afoot.wire.extension import (
    PageContextGone,
    PageContextOpened,
    PageContextTools,
    RunDispatch,
    RunProgress,
    RunResult,
    RunWaiting,
)
from tests.engine.fake_engine import over
from tests.providers.browser.fake_browser import Scene, page_tool, pause, room, scene

ROOMS = ("r1", "r2", "r3")
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "open",
                "gone",
                "call",
                "report",
                "end",
                "evil",
                "ask",
                "leave",
                "join",
                "cancel",
                "wait",
                "late",
            ]
        ),
        st.integers(0, 7),
    ),
    max_size=40,
)


class Play:
    """One browser under random orders, which knows what is true."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.open: set[str] = set()
        self.is_up = True
        self.lives: list[LiveCall] = []
        self.seqs: dict[str, int] = {}
        self.ended: set[str] = set()

    def sent(self) -> list[RunDispatch]:
        """Runs that the page was sent and has not ended."""
        return [
            one
            for one in self.scene.puppet.got(RunDispatch)
            if one.run not in self.ended and one.room in self.open
        ]

    async def step(self, what: str, number: int) -> None:
        """Do one thing."""
        name = ROOMS[number % 3]
        match what:
            case "open" if self.is_up and name not in self.open:
                self.open.add(name)
                self.scene.tell(PageContextOpened(room(name, name, document=f"d{len(self.seqs)}-{number}")))
                self.scene.tell(PageContextTools(name, [page_tool()]))
            case "gone" if self.is_up and name in self.open:
                self.open.discard(name)
                self.scene.tell(PageContextGone(name, "closed"))
            case "call":
                self.call()
            case "leave" if self.is_up:
                self.is_up = False
                self.scene.browser.on_disconnect(self.scene.puppet, "lost", 5.0)
            case "join" if not self.is_up:
                self.join(number)
            case "cancel" if self.lives:
                self.scene.engine.cancel(self.lives[number % len(self.lives)], "caller", "enough")
            case "wait":
                await asyncio.sleep(number)
            case _ if self.sent() and self.is_up:
                self.say(what, self.sent()[number % len(self.sent())])
        await pause(3)

    def call(self) -> None:
        """Call the tool, if it is known."""
        try:
            self.lives.append(self.scene.submit("shop_example_add", {"call": len(self.lives)}))
        except CallerError:
            pass

    def join(self, number: int) -> None:
        """Come back with some of the rooms, and what runs there."""
        self.is_up = True
        kept = {name for name in self.open if (number >> ROOMS.index(name)) & 1}
        runs = [RunPosition(one.run, one.room) for one in self.sent() if one.room in kept]
        documents = {one.info.id: one.info for one in self.scene.browser._profiles.contexts()}
        rooms = [
            documents.get(name) or room(name, name, document=f"j{len(self.seqs)}") for name in sorted(kept)
        ]
        self.open = kept
        welcome = self.scene.join(*rooms, running=runs)
        self.ended |= set(welcome.abort)
        for one in rooms:
            self.scene.tell(PageContextTools(one.id, [page_tool()]))

    def say(self, what: str, sent: RunDispatch) -> None:
        """A page says something of a run, its own or another's."""
        seq = self.seqs[sent.run] = self.seqs.get(sent.run, 0) + 1
        other = next(name for name in ROOMS if name != sent.room)
        if what == "report":
            self.scene.progress(sent, seq, PageReport(seq, 100, sent.run))
        elif what == "evil":
            self.scene.tell(RunProgress(other, sent.run, seq + 5, [PageReport(99, message="evil")]))
            self.scene.tell(RunWaiting(other, sent.run, "evil"))
            self.scene.tell(RunResult(other, sent.run, seq + 6, Raw(b'"evil"')))
        elif what == "ask":
            self.scene.tell(RunWaiting(sent.room, sent.run, "well?" if seq % 2 else None))
        else:
            self.ended.add(sent.run)
            self.scene.tell(RunResult(sent.room, sent.run, seq, Raw(json.encode({"given": Raw(sent.input)}))))


async def played(orders: list[tuple[str, int]]) -> None:
    """Play these orders, then wait for the end of everything."""
    async with scene() as setting:
        play = Play(setting)
        for what, number in orders:
            await play.step(what, number)
        for number, live in enumerate(play.lives):
            await over(setting.engine, live) if live.call.id in setting.engine else None
            _is_right(live, number)
        await asyncio.sleep(10)  # who did not come back in the grace is gone
        left = {run for one in setting.browser._profiles.contexts() for run in one.runs}
        assert left <= {one.run for one in play.sent()}


def _is_right(live: LiveCall, number: int) -> None:
    end = live.call.end
    assert end is not None
    if end.result is not None:
        assert json.decode(end.result.structured) == {"given": {"call": number}}
    assert isinstance(live.call.latest, Reading | None)
    assert live.call.latest is None or live.call.latest.message != "evil"
    assert all(question.message != "evil" for question in live.call.questions.values())
    limit = 300 + 5 + 60 + 600 * len(live.call.questions)
    assert end.at - live.call.opened.at <= limit


@settings(max_examples=150, deadline=None)
@given(steps)
def test_whatever_a_browser_does_every_call_ends_with_its_own_result_or_a_reason(
    orders: list[tuple[str, int]],
) -> None:
    """B6, B7, C8: by chance."""
    run(played(orders))
