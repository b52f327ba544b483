"""What the extension's side panel is shown, and what the person at it may do."""

from collections.abc import Callable
from typing import Any, Self

import msgspec
from msgspec import Raw, Struct

from afoot.core.call import Call
from afoot.core.facts import Answer, Answered, Asked, Entry, Finished
from afoot.engine.watch import Watcher
from afoot.errors import UnknownName
from afoot.providers.browser.link import Browsers, Line
from afoot.providers.browser.tabs import TabView
from afoot.serve.request import explained
from afoot.serve.site import Site
from afoot.serve.view import QuestionView, asked, encode, view
from afoot.wire.link import PanelAnswer, PanelCancel, PanelSaid, PanelState

HZ = 4
ENDED_S = 3.0  # so long a call that has ended is still shown
MOST = 100  # calls that are shown, the newest
OVER = "it is over already"
STOPPED = "stopped in the browser's side panel"


class PanelTab(Struct, frozen=True):
    """A tab of the panel's own browser: its short key, the browser's id, whether tools can run there."""

    key: str
    tab: str
    state: str  # ready, unavailable
    why: str = ""
    tools: int = 0


class Panel:
    """The side panel of one browser. Closed, it is told of open questions only: they make the badge."""

    def __init__(self, site: Site, browsers: Browsers, line: Line, ring: Callable[[], object]) -> None:
        self._engine = site.engine
        self._browsers, self._line = browsers, line
        self._ring = ring
        self._watcher = Watcher(self._engine.watchers, self._see)
        self._ended: list[tuple[float, Call]] = []
        self._looked = 0.0
        self._is_new = True  # whether something happened since it looked
        self._shown: object = None
        self.is_open = False

    def __enter__(self) -> Self:
        self._watcher.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watcher.__exit__()

    def watch(self, on: bool) -> None:
        """It was opened or closed, or is still open."""
        self._is_new = self._is_new or on != self.is_open
        self.is_open = on
        self.here()

    def here(self) -> None:
        """The browser said something: tabs may be other, and who has the panel open could be asked (A1)."""
        if self.is_open:
            self._engine.policy.seen = self._engine.clock.now()
            self._note()

    def due(self) -> float | None:
        """When to look again; None: not before something happens."""
        if self._is_new or (self.is_open and (self._ended or self._engine.calls())):
            return self._looked + 1 / HZ
        return None

    def look(self) -> bytes | None:
        """The frame that shows how things are now; None if nothing has changed."""
        now = self._looked = self._engine.clock.now()
        self._is_new = False
        found = [one for live in self._engine.calls() for one in asked(live.call)]
        questions = [_plain(one) for one in sorted(found, key=_when)]
        calls, tabs = list[dict[str, Any]](), list[dict[str, Any]]()
        if self.is_open:
            calls, tabs = self._calls(now), [_tab(one) for one in self._browsers.tab_views(self._line)]
        shown = ([{**one, "elapsed_s": 0} for one in calls], questions, tabs)
        if shown == self._shown:
            return None
        self._shown = shown
        return framed("panel.state", PanelState(calls, questions, tabs))

    def answer(self, given: PanelAnswer) -> bytes:
        """Answer a question by the operator's word; says what came of it."""

        def answer() -> None:
            self._engine.answer(given.question, Answer(given.action, given.content, "operator", "panel"))

        return _done(given.question, answer)

    def cancel(self, wanted: PanelCancel) -> bytes:
        """Ask a call to stop; says what came of it."""

        def cancel() -> None:
            self._engine.cancel(self._engine[wanted.call], "operator", wanted.reason or STOPPED)

        return _done(wanted.call, cancel)

    def _calls(self, now: float) -> list[dict[str, Any]]:
        places = self._browsers.places(self._line)
        self._ended = [(at, call) for at, call in self._ended if now - at < ENDED_S]
        live = {one.call.id: (one.call, one.heard) for one in self._engine.calls()[-MOST:]}
        over = {call.id: (call, 0.0) for _, call in self._ended if call.id not in live}
        calls = list[dict[str, Any]]()
        for call, heard in (*live.values(), *over.values()):
            told = _plain(view(call, now, heard))
            calls.append({**told, "tab": places[call.id]} if call.id in places else told)
        return calls

    def _see(self) -> None:
        entry: Entry = self._watcher.entries.pop()
        fact = type(entry.fact)
        if not self.is_open and fact not in (Asked, Answered, Finished):
            return
        if self.is_open and fact is Finished and len(self._ended) < MOST:
            self._ended.append((self._engine.clock.now(), self._engine[entry.call].call))
        self._note()

    def _note(self) -> None:
        if not self._is_new:
            self._is_new = True
            self._ring()


def framed(method: str, params: object) -> bytes:
    """A frame whose texts may be anybody's."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def _done(about: str, act: Callable[[], None]) -> bytes:
    try:
        act()
    except UnknownName:
        return framed("panel.said", PanelSaid(about, OVER))
    except Exception as error:
        wrong = explained(error)
        if wrong is None:
            raise
        return framed("panel.said", PanelSaid(about, wrong.message))
    return framed("panel.said", PanelSaid(about))


def _plain(thing: object) -> dict[str, Any]:
    return msgspec.to_builtins(thing, builtin_types=(Raw,))


def _tab(seen: TabView) -> dict[str, Any]:
    return _plain(PanelTab(seen.key, seen.tab, seen.state, seen.why, seen.tools))


def _when(question: QuestionView) -> float:
    return question.asked
