"""`Soak`: phases of load and trouble over one store, each followed by a judgement and an idle pause."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from anyio.from_thread import BlockingPortal

from tests.soak.clients import Client, answer_as_operator
from tests.soak.figures import Figures, Sampler
from tests.soak.judge import Judge
from tests.soak.notes import Notes
from tests.soak.place import Place
from tests.soak.troubles import ALL_TROUBLES, AWAY, KILL_GATEWAY, TROUBLES, Trouble
from tests.soak.watchers import FeedWatcher

CLIENTS: Final = 6
WATCHERS: Final = 2
SETTLE_S: Final = 120.0  # for all calls to end after a phase; a busy machine takes its time
JOIN_S: Final = 60.0
KEEP_CALLS: Final = 500  # that a purge between two phases leaves
LOST: Final = "the history has a gap"  # in the log of a gateway whose memory was full too


@dataclass
class Phase:
    """One phase and what became of it."""

    number: int
    trouble: str
    load_s: float
    took_s: float = 0.0
    requests: int = 0
    acknowledged: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    figures: Figures | None = None
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The phase in one line."""
        held = self.figures
        state = "ok" if not self.problems else f"{len(self.problems)} WRONG"
        told = "" if held is None else (
            f"{held.rss_mb:6.1f} MB  {held.fds:3} fds  {held.threads:3} threads  {held.children:2} children  "
            f"{held.tasks:3} tasks  {held.objects:6} objects"
        )  # fmt: skip
        return (
            f"{self.number:3}  {self.trouble:14} {self.took_s:6.1f} s  {self.requests:5} requests "
            f"{self.acknowledged:5} calls  {told}  {state}"
        )


def plan(seed: int, seconds: float) -> list[Phase]:
    """The phases of a soak: every trouble in turn, in an order of the seed's own.

    The gateway is killed in the first fifth, in the middle, and at the end: what lies between are long lives,
    whose figures can be compared. A short soak kills it once.
    """
    dice = random.Random(seed)
    load_s = min(12.0, max(1.0, seconds / 30))
    count = max(len(TROUBLES) + 1, round(seconds / (load_s + 5.0)))
    kills = {count // 5, count * 3 // 5} if count >= 20 else {count // 5}
    names = list[str]()
    deck = list[str]()
    for number in range(count):
        if number in kills:
            names.append(KILL_GATEWAY)
            continue
        if not deck:
            deck = dice.sample(list(TROUBLES), len(TROUBLES))
        names.append(deck.pop())
    return [Phase(number, name, load_s) for number, name in enumerate(names)]


class Soak:
    """Runs phases until the time is over or something is wrong."""

    def __init__(self, place: Place, seed: int, portal: BlockingPortal, say: Callable[[str], None]) -> None:
        self._place = place
        self._seed = seed
        self._portal = portal
        self._say = say
        self._log_read = 0
        self.phases: list[Phase] = []
        self.judge = Judge(place)
        self.sampler = Sampler(place)
        self.watchers = [FeedWatcher(place, random.Random(f"{seed} watcher {n}")) for n in range(WATCHERS)]

    def run(self, seconds: float) -> list[str]:
        """All that was wrong; nothing if the soak held."""
        self.sampler.start()
        for watcher in self.watchers:
            watcher.start()
        end = time.monotonic() + seconds
        try:
            for phase in plan(self._seed, seconds):
                if time.monotonic() > end and phase.number > len(TROUBLES):
                    break
                self._run(phase)
                self.phases.append(phase)
                self._say(phase.line())
                if phase.problems:
                    return phase.problems
        finally:
            self.sampler.stop()
            for watcher in self.watchers:
                watcher.stop()
        return self.sampler.problems()

    def _run(self, phase: Phase) -> None:
        began = time.monotonic()
        notes = Notes(phase.number)
        for watcher in self.watchers:
            watcher.notes = notes
        lives = self._place.lives
        self._load(phase, notes)
        self._settle(notes)
        has_gap = LOST in self._new_log()
        phase.problems = notes.faults + self.judge.judge(
            notes, was_killed=self._place.lives > lives, has_gap=has_gap
        )
        phase.requests = len(notes.requests)
        phase.acknowledged = sum(bool(one.call) for one in notes.requests.values())
        phase.counts = notes.counts
        if not phase.problems:
            self.judge.forget()
            self._purge()
            phase.figures = self.sampler.pause(min(3.0, phase.load_s / 2), phase.acknowledged)
        phase.took_s = time.monotonic() - began

    def _load(self, phase: Phase, notes: Notes) -> None:
        is_over = threading.Event()
        trouble = Trouble(self._place, notes, self._dice(phase, "trouble"), is_over)
        operator = Trouble(self._place, notes, self._dice(phase, "operator"), is_over)
        work: list[Callable[[], None]] = [partial(ALL_TROUBLES[phase.trouble], trouble), operator.answer]
        for number in range(CLIENTS):
            client = Client(self._place, notes, self._dice(phase, f"client {number}"), self._portal)
            work.append(partial(client.run, is_over))
        threads = [threading.Thread(target=self._guarded, args=(one, notes), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        try:
            time.sleep(phase.load_s)
        finally:
            is_over.set()
            for thread in threads:
                thread.join(JOIN_S)
        if any(thread.is_alive() for thread in threads):
            notes.fault(f"a client or a trouble has not ended after {JOIN_S:g} s")

    def _guarded(self, work: Callable[[], None], notes: Notes) -> None:
        """Do the work of a thread; an error of the driver itself is no silence."""
        try:
            work()
        except BaseException as error:
            notes.fault(f"the driver has failed: {error!r}")
            raise

    def _dice(self, phase: Phase, who: str) -> random.Random:
        return random.Random(f"{self._seed} {phase.number} {who}")

    def _settle(self, notes: Notes) -> None:
        """Wait until every call has ended; the operator answers what is still asked."""
        end = time.monotonic() + SETTLE_S
        live = [{"tool": "?"}]
        while live and time.monotonic() < end:
            with suppress(*AWAY):
                answer_as_operator(self._place.api, random.Random(0))
                health = self._place.api.get("/healthz").body
                live = self._place.api.get("/api/calls?state=live").body["calls"]
                live = live or ([{"tool": "history"}] if health["status"] != "ok" else [])
            if self._place.gateway.process.poll() is not None:
                notes.fault(f"the gateway has ended by itself: {self._place.gateway.said()[-2000:]}")
                return
            time.sleep(0.1)
        if live:
            notes.fault(
                f"not over after {SETTLE_S:g} s: {[(one.get('tool'), one.get('state')) for one in live]}"
            )

    def _new_log(self) -> str:
        text = self._place.gateway.said()
        new, self._log_read = text[self._log_read :], len(text)
        return new

    def _purge(self) -> None:
        self._place.api.post("/api/purge", {"keep": KEEP_CALLS})
