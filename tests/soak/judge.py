"""`Judge`: reads the history behind the gateway's back, and compares it with marks and with what was told.

Every stored history replays through `decide`; positions and numbers have no gap; every acknowledged call is
there and ended once; an end says what the tool's own marks say.
"""

import asyncio
import json
from pathlib import Path
from typing import Final

from afoot.core.call import Call, evolve
from afoot.core.facts import Entry, Fact, Finished, Opened, Started
from afoot.core.rules import decide
from afoot.errors import AfootError
from afoot.store.sqlite import SqliteJournal
from tests.soak.notes import Notes, Request
from tests.soak.place import Place

PAGE: Final = 5000
# Tools that run where something else may be killed: a child, or a server.
ELSEWHERE: Final = ("boxed", "older_", "newer_", "remote_")
NOTHING_RAN: Final = ("lost", "refused")
Histories = dict[str, list[Fact]]


class Judge:
    """Judges one phase after the other; what it has read, it does not read again."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._position = 0
        self._calls: dict[str, Call] = {}
        self._starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}  # by outcome, of all phases
        self.facts = 0

    def judge(self, notes: Notes, *, was_killed: bool, has_gap: bool) -> list[str]:
        """All that is wrong with a phase. `has_gap`: the log of the gateway says that facts were dropped."""
        problems = self._read(has_gap)
        by_tag: dict[str, list[Call]] = {}
        for call in self._calls.values():
            by_tag.setdefault(tag_of(call), []).append(call)
        by_tag.pop("", None)  # calls of the driver itself
        for request in notes.requests.values():
            problems += self._judge_request(request, by_tag.get(request.tag, []), was_killed, has_gap)
        for tag, calls in by_tag.items():
            problems += [problem for call in calls for problem in self._judge_call(call, tag)]
        for call in self._calls.values():
            assert call.end is not None or problems
            if call.end is not None:
                self.ends[call.end.outcome] = self.ends.get(call.end.outcome, 0) + 1
        return problems

    def forget(self) -> None:
        """Forget what was judged, and its marks."""
        for tag in filter(None, map(tag_of, self._calls.values())):
            (self._place.gateway.marks_folder / tag).unlink(missing_ok=True)
        self._calls.clear()
        self._starts.clear()

    def _read(self, has_gap: bool) -> list[str]:
        problems = list[str]()
        for position, entry in asyncio.run(read_since(self._place.gateway.store, self._position)):
            if position != self._position + 1:
                problems.append(f"position {position} follows {self._position}")
            self._position = position
            self.facts += 1
            problem = self._replay(entry)
            if problem and not has_gap:
                problems.append(problem)
        problems += [
            f"{call.opened.tool} {call.id}: has no end, and is {call.state}"
            for call in self._calls.values()
            if call.end is None
        ]
        return problems

    def _replay(self, entry: Entry) -> str:
        """What is wrong with the next fact, or nothing."""
        fact = entry.fact
        call = self._calls.get(entry.call)
        if call is None:
            if not isinstance(fact, Opened) or entry.seq != 1:
                # A call that was judged before may still say that it was released, or something late.
                is_late = entry.seq > 1 and not isinstance(fact, Finished | Started)
                return "" if is_late else f"{entry.call}: begins with fact {entry.seq}, {fact!r:.200}"
            self._calls[entry.call] = Call(entry.call, fact)
            return ""
        problem = ""
        if entry.seq != call.seq + 1:
            problem = f"{entry.call}: fact {entry.seq} follows {call.seq}"
        try:
            decided = decide(call, fact)
            if decided != (fact,):
                problem = f"{entry.call}: {fact!r:.200} would be {decided!r:.200}"
        except AfootError as error:
            problem = f"{entry.call}: does not replay: {error}"
        if isinstance(fact, Started):
            self._starts[entry.call] = self._starts.get(entry.call, 0) + 1
        evolve(call, fact)
        return problem

    def _judge_request(
        self, request: Request, calls: list[Call], was_killed: bool, has_gap: bool
    ) -> list[str]:
        """Compare what a client was told with the history."""
        said = f"{request.tool} {request.tag}"
        if not calls:
            may_be_lost = has_gap or (was_killed and (request.is_unrecorded or not request.call))
            if request.call and not may_be_lost:
                return [f"{said}: call {request.call} was acknowledged, and is lost"]
            if self._begun(request.tag) and not (was_killed or has_gap):
                return [f"{said}: has run, and the history has no such call"]
            return []
        if len(calls) > 1:
            return [f"{said}: one request made {len(calls)} calls"]
        [call] = calls
        problems = list[str]()
        if request.call and request.call != call.id:
            problems.append(f"{said}: was told call {request.call}, and is {call.id}")
        outcome = "" if call.end is None else "ok" if call.end.outcome == "ok" else "not ok"
        problems += [f"{said}: was told {told}, and is {outcome}" for told in request.told if told != outcome]
        return problems

    def _judge_call(self, call: Call, tag: str) -> list[str]:
        """Compare the end of a call with the marks of its tool."""
        end, begun = call.end, self._begun(tag)
        if end is None:
            return []
        marks = self._place.gateway.marks(tag)
        was_done = any(line.startswith("done") for line in marks)
        starts = self._starts.get(call.id, 0)
        said = f"{call.opened.tool} {tag} {call.id}: {end.outcome}, {starts} starts, marks {marks}"
        problems = list[str]()
        if end.outcome == "ok" and not (was_done or any(line.startswith("stopped") for line in marks)):
            problems.append(f"{said}: was never done")
        if begun > 1 and not call.is_safe:
            problems.append(f"{said}: may not run twice")
        if begun > starts:
            problems.append(f"{said}: began more often than the history knows")
        if begun and end.outcome in NOTHING_RAN:
            problems.append(f"{said}: has run all the same")
        if begun and end.failure is not None and end.failure.side_effects == "none":
            problems.append(f"{said}: says that it has no effects")
        if was_done and end.outcome == "failed" and not call.opened.tool.startswith(ELSEWHERE):
            problems.append(f"{said}: was done, and is told to have failed: {end.failure!r:.300}")
        return problems

    def _begun(self, tag: str) -> int:
        return sum(line.startswith("begun") for line in self._place.gateway.marks(tag))


def tag_of(call: Call) -> str:
    """The tag in the arguments of a call."""
    arguments = json.loads(bytes(call.opened.arguments) or b"{}")
    return str(arguments.get("tag", ""))


async def read_since(store: Path, position: int) -> list[tuple[int, Entry]]:
    """Every fact behind a position, of all calls."""
    found: list[tuple[int, Entry]] = []
    async with SqliteJournal(store) as journal:
        while page := await journal.since(position, PAGE):
            found += page
            position = page[-1][0]
    return found
