"""`SidePanel` makes the content of the extension's side panel, and carries out what its person decides."""

from collections.abc import Callable
from typing import Any, Self

import msgspec
from msgspec import Raw, Struct

from afoot.core.call import Call, without_results
from afoot.core.facts import Answer, Answered, Asked, Finished
from afoot.engine.followers import Watcher
from afoot.errors import UnknownName
from afoot.providers.browser.extension import BrowserRegistry, ExtensionLink
from afoot.providers.browser.views import TabView
from afoot.serve.api.questions.questions import with_review
from afoot.serve.api.request import as_api_error
from afoot.serve.api.views import (
    QuestionView,
    call_view,
    call_view_with_forecast,
    encode_json,
    open_questions,
    with_failure,
)
from afoot.serve.gateway_state import GatewayState
from afoot.wire.extension import PanelAnswer, PanelCancel, PanelReply, PanelState

MAX_FRAMES_PER_S = 4
ENDED_S = 300.0  # how long a finished call is still shown
MAX_CALLS = 100  # the newest calls are shown
MAX_ENDED = 20
ALREADY_OVER = "it is over already"
STOPPED = "stopped in the browser's side panel"


class PanelTab(Struct, frozen=True):
    """A tab of the panel's own browser: its short key, the browser's id, whether tools can run there."""

    key: str
    tab: str
    state: str  # ready, unavailable
    why: str = ""
    tools: int = 0


class SidePanel:
    """The side panel of one browser. While it is closed it gets only open questions, for the badge."""

    def __init__(
        self,
        gateway: GatewayState,
        browsers: BrowserRegistry,
        line: ExtensionLink,
        ring: Callable[[], object],
    ) -> None:
        self._engine = gateway.engine
        self._browsers = browsers
        self._line = line
        self._ring = ring
        self._watcher = Watcher(self._engine.observers, self._on_fact)
        self._ended: list[tuple[float, Call]] = []
        self._last_frame = 0.0
        self._has_changed = True  # whether something happened since the last frame
        self._shown: object = None
        self.is_open = False

    def __enter__(self) -> Self:
        self._watcher.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watcher.__exit__()

    def watch(self, on: bool) -> None:
        """The panel was opened or closed, or is still open."""
        self._has_changed = self._has_changed or on != self.is_open
        self.is_open = on
        self.note_activity()

    def note_activity(self) -> None:
        """The browser sent something: tabs may have changed; a person at an open panel can be asked (A1)."""
        if self.is_open:
            self._engine.policy.seen = self._engine.clock.now()
            self._mark_changed()

    def due(self) -> float | None:
        """The time of the next frame; None if nothing is due before the next event."""
        soonest = self._last_frame + 1 / MAX_FRAMES_PER_S
        if self._has_changed or (self.is_open and self._engine.calls()):
            return soonest
        return max(soonest, self._ended[0][0] + ENDED_S) if self.is_open and self._ended else None

    def next_frame(self) -> bytes | None:
        """The frame with the present state; None if nothing has changed."""
        now = self._last_frame = self._engine.clock.now()
        self._has_changed = False
        found = [
            with_review(self._engine, live, one)
            for live in self._engine.calls()
            for one in open_questions(live.call)
        ]
        questions = [_builtins(one) for one in sorted(found, key=_asked_at)]
        calls, tabs = list[dict[str, Any]](), list[dict[str, Any]]()
        if self.is_open:
            calls, tabs = self._calls(now), [_tab(one) for one in self._browsers.tab_views(self._line)]
        shown = ([_without_time(one) for one in calls], questions, tabs)
        if shown == self._shown:
            return None
        self._shown = shown
        return encode_frame(
            "panel.state", PanelState(now if calls or questions else None, calls, questions, tabs)
        )

    def answer(self, given: PanelAnswer) -> bytes:
        """Answer a question as the operator; returns the reply to the panel."""

        def answer() -> None:
            self._engine.answer(given.question, Answer(given.action, given.content, "operator", "panel"))

        return _perform(given.question, answer)

    def cancel(self, wanted: PanelCancel) -> bytes:
        """Ask a call to stop; returns the reply to the panel."""

        def cancel() -> None:
            self._engine.cancel(self._engine[wanted.call], "operator", wanted.reason or STOPPED)

        return _perform(wanted.call, cancel)

    def _calls(self, now: float) -> list[dict[str, Any]]:
        places = self._browsers.running_tabs(self._line)
        self._ended = [(at, call) for at, call in self._ended if now - at < ENDED_S]
        live = self._engine.calls()[-MAX_CALLS:]
        known = {one.call.id for one in live}
        over = [call for _, call in self._ended if call.id not in known]
        views = [with_failure(call_view_with_forecast(self._engine, one, now), one.call) for one in live]
        views += [with_failure(call_view(call, now), call) for call in over]
        calls = [_builtins(one) for one in views]
        return [{**one, "tab": places[one["id"]]} if one["id"] in places else one for one in calls]

    def _on_fact(self) -> None:
        entry = self._watcher.take()[-1]
        fact = type(entry.fact)
        if not self.is_open and fact not in (Asked, Answered, Finished):
            return
        if self.is_open and fact is Finished:
            ended = without_results(self._engine[entry.call].call)
            self._ended = [*self._ended, (self._engine.clock.now(), ended)][-MAX_ENDED:]
        self._mark_changed()

    def _mark_changed(self) -> None:
        if not self._has_changed:
            self._has_changed = True
            self._ring()


def encode_frame(method: str, params: object) -> bytes:
    """A frame whose texts may contain anything."""
    return encode_json({"jsonrpc": "2.0", "method": method, "params": params})


def _perform(about: str, act: Callable[[], None]) -> bytes:
    try:
        act()
    except UnknownName:
        return encode_frame("panel.said", PanelReply(about, ALREADY_OVER))
    except Exception as error:
        wrong = as_api_error(error)
        if wrong is None:
            raise
        return encode_frame("panel.said", PanelReply(about, wrong.message))
    return encode_frame("panel.said", PanelReply(about))


def _builtins(thing: object) -> dict[str, Any]:
    return msgspec.to_builtins(thing, builtin_types=(Raw,))


def _without_time(shown: dict[str, Any]) -> dict[str, Any]:
    """A call without what time alone changes: the panel counts that on by itself; an estimate to a second."""
    eta = shown.get("eta")
    return {**shown, "elapsed_s": 0, "eta": None if eta is None else round(eta["left_s"])}


def _tab(seen: TabView) -> dict[str, Any]:
    return _builtins(PanelTab(seen.key, seen.tab, seen.state, seen.why, seen.tools))


def _asked_at(question: QuestionView) -> float:
    return question.asked
