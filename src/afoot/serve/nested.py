"""Questions that a client of the handshake era was asked by requests of our own, until it answers."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Protocol

from afoot.core.facts import NOTHING, Answer, Question
from afoot.engine.live import Live
from afoot.errors import AfootError, ToolError
from afoot.serve.manner import Outlet
from afoot.serve.site import Site
from afoot.serve.taping import envelope
from afoot.wire import mcp_2025 as era
from afoot.wire import messages
from afoot.wire.jsonrpc import Envelope, Fault, Id
from afoot.wire.messages import Capabilities

TRIES = 3  # how often a question is put again after an answer that does not fit


class Rung(Protocol):
    """Something to wake whoever sends what an asker has to say."""

    def set(self) -> object: ...


class Asker(Protocol):
    """Who asks: a request that follows its call, or a task on the stream of its session."""

    live: Live
    extra: list[bytes]

    @property
    def outlet(self) -> Outlet: ...

    @property
    def bell(self) -> Rung: ...


class TaskAsker:
    """A task that asks where nobody follows it: on the stream that its session holds open."""

    def __init__(self, live: Live, outlet: Outlet, ring: Callable[[], object]) -> None:
        self.live = live
        self.extra: list[bytes] = []
        self.outlet = outlet
        self.bell = self
        self._ring = ring

    def set(self) -> None:
        """There is something to send."""
        self._ring()


class Nested:
    """What one client was asked, and by which of its requests."""

    def __init__(self, site: Site, caller: str) -> None:
        self._site = site
        self._caller = caller
        self._asked: dict[Id, tuple[Asker, Question, int]] = {}
        self._name = "afoot"
        self._number = 0

    def renew(self) -> None:
        """Another gateway has asked this client before, by numbers that are not ours."""
        self._name = f"afoot-{token_hex(4)}"

    def put(self, talk: Asker, asked: Sequence[Question], can: Capabilities) -> list[bytes]:
        """Put questions, each once a request; what the client cannot answer goes to the operator."""
        asked_by = self._asked.values()
        known = {one.id for asker, one, _ in asked_by if asker is talk or not asker.outlet.gone}
        frames: list[bytes] = []
        for one in asked:
            if one.id in known:
                continue  # it was not on record yet, and comes once more when it is; or another asks it
            if can.may_answer(one):
                frames.append(self._put(talk, one, 0))
            elif one.kind in ("sample", "roots"):
                with suppress(AfootError):  # it was answered meanwhile, or its call is being cancelled
                    self._site.engine.answer(one.id, Answer("decline", by="engine"))
        return frames

    def answered(self, message: Envelope) -> None:
        """Take an answer; one that does not fit is asked for again."""
        known = self._asked.pop(message.id, None) if isinstance(message.id, int | str) else None
        if known is None:
            self._site.count("answers to nothing")
            return
        talk, asked, tries = known
        if self._site.engine.tapes is not None:
            self._site.engine.tapes.add(asked.id.partition(".")[0], "caller", "in", envelope(message))
        try:
            given = messages.answer(asked, message.result, self._caller) if message.result else None
            self._site.engine.answer(asked.id, given or Answer("cancel", by=self._caller))
        except (ToolError, Fault):
            self._again(talk, asked, tries + 1)
        except AfootError:
            self._site.count("answers too late")

    def withdraw(self, question: str, reason: str) -> list[bytes]:
        """Take a question back, whoever was asked it."""
        asked = [number for number, (_, one, _) in self._asked.items() if one.id == question]
        return [self._withdraw(number, reason) for number in asked]

    def over(self, talk: Asker, reason: str) -> list[bytes]:
        """Take back what a request asked."""
        asked = [number for number, (asker, _, _) in self._asked.items() if asker is talk]
        return [self._withdraw(number, reason) for number in asked]

    def pass_on(self, talk: Asker, received: set[str]) -> None:
        """A request goes on, on another stream: what was received there is not asked again."""
        for number, (_, one, tries) in list(self._asked.items()):
            if one.id in received:
                self._asked[number] = talk, one, tries
            elif one.id in talk.live.call.questions:
                del self._asked[number]

    def _put(self, talk: Asker, asked: Question, tries: int) -> bytes:
        ended = [number for number, (asker, _, _) in self._asked.items() if asker.live.call.is_finished]
        for number in ended:  # whose request broke, and was never resumed
            del self._asked[number]
        self._number += 1
        number = f"{self._name}-{self._number}"
        self._asked[number] = talk, asked, tries
        return era.ask(number, asked)

    def _withdraw(self, number: Id, reason: str) -> bytes:
        del self._asked[number]
        return era.withdrawn(number, reason)

    def _again(self, talk: Asker, asked: Question, tries: int) -> None:
        if tries >= TRIES:
            self._site.engine.answer(asked.id, Answer("cancel", NOTHING, self._caller))
            return
        self._site.count("answers refused")
        if not talk.outlet.gone:  # else it is asked again when it comes back
            talk.extra.append(self._put(talk, asked, tries))
            talk.bell.set()
