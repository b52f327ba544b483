"""A connection of the handshake era, on any transport: what it was told, what it asked, what we asked it."""

from collections.abc import Sequence

from msgspec import UNSET

from afoot.core.facts import NOTHING, Answer, Answered, Question
from afoot.engine.live import Live
from afoot.errors import AfootError, ToolError
from afoot.serve.conversation import Conversation
from afoot.serve.listing import EMPTY, definitions
from afoot.serve.manner import Outlet
from afoot.serve.site import Site
from afoot.wire import mcp_2025 as era
from afoot.wire import messages
from afoot.wire.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, Fault, Id
from afoot.wire.messages import Capabilities, Wanted

TRIES = 3  # how often a question is put again after an answer that does not fit


class Session:
    """One client of the handshake era; also the manner in which its calls are told."""

    def __init__(self, site: Site, caller: str, *, dies: bool) -> None:
        """`dies`: the transport's end is the caller's end, and ends its calls."""
        self._site = site
        self._dies = dies
        self.capped = False
        self.modern = False
        self.caller = caller
        self.version = ""
        self.capabilities = Capabilities()
        self.level: str | None = "info"
        self._talks: dict[Id, Conversation] = {}
        self._left: dict[Id, Live] = {}  # calls that run on without their stream
        self._asked: dict[Id, tuple[Conversation, Question, int]] = {}
        self._number = 0

    async def request(self, message: Envelope, outlet: Outlet) -> None:
        """Answer one request; raises Fault."""
        request = message.id
        assert isinstance(request, int | str)
        if message.method == "tools/call":
            await self._call(message, outlet)
        else:
            await outlet.finish((), self._plain(request, message))

    def notified(self, message: Envelope) -> None:
        """Take a notification; those we do not know are dropped."""
        if message.method == "notifications/cancelled":
            cancelled = era.read_cancelled(message)
            request = cancelled.requestId
            if request is None:
                return
            talk = self._talks.get(request)
            live = talk.live if talk is not None else self._left.pop(request, None)
            if live is not None:
                self._site.engine.cancel(live, "caller", cancelled.reason or "the caller cancelled it")
            if talk is not None:
                talk.stop()

    def responded(self, message: Envelope) -> None:
        """Take the answer to a question of ours; one that does not fit is put again."""
        known = self._asked.pop(message.id, None) if isinstance(message.id, int | str) else None
        if known is None:
            self._site.count("answers to nothing")
            return
        talk, asked, tries = known
        try:
            given = messages.answer(asked, message.result, self.caller) if message.result else None
            self._site.engine.answer(asked.id, given or Answer("cancel", by=self.caller))
        except (ToolError, Fault):
            self._again(talk, asked, tries + 1)
        except AfootError:
            self._site.count("answers too late")

    def close(self, reason: str) -> None:
        """The connection is over."""
        for talk in list(self._talks.values()):
            if self._dies:
                self._site.engine.cancel(talk.live, "disconnect", reason)
            talk.stop()

    def ask(self, talk: Conversation, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Put questions to the client as requests of our own; those it cannot answer go to the operator."""
        frames = []
        for one in asked:
            if self.capabilities.can(one.kind):
                frames.append(self._put(talk, one, 0))
            elif one.kind in ("sample", "roots"):
                self._site.engine.answer(one.id, Answer("decline", by="engine"))
        return frames, None

    def postpone(self, talk: Conversation) -> bytes:
        """Not in this era: a large result goes as one event."""
        raise AssertionError("a handshake-era stream is not capped")

    def settled(self, talk: Conversation, fact: Answered) -> list[bytes]:
        """Withdraw a question that somebody else has answered (A5)."""
        asked = [number for number, (_, one, _) in self._asked.items() if one.id == fact.question]
        return [self._withdraw(number, f"answered by {fact.answer.by}") for number in asked]

    def over(self, talk: Conversation) -> list[bytes]:
        """Withdraw what the call asked and needs no more."""
        asked = [number for number, (asker, _, _) in self._asked.items() if asker is talk]
        return [self._withdraw(number, "its call is over") for number in asked]

    def left(self, talk: Conversation) -> None:
        """A lost stream is no cancel in this era; the call runs on, and can still be cancelled (X3)."""
        if self._dies:
            self._site.engine.cancel(talk.live, "disconnect", "the client takes nothing any more")
        self._left = {request: live for request, live in self._left.items() if not live.call.is_finished}
        self._left[talk.want.id] = talk.live

    def _plain(self, request: Id, message: Envelope) -> bytes:
        method = str(message.method)
        if method == "initialize":
            hello = era.read_hello(message)
            self.version, self.capabilities = hello.version, hello.capabilities
            return era.welcome(request, hello, self._site.info, self._site.instructions)
        if method == "ping":
            return era.answered(request)
        if method == "logging/setLevel":
            self.level = era.read_level(message)
            return era.answered(request)
        if method == "tools/list":
            era.read_list(message)
            return era.answered(request, tools=definitions(self._site))
        if method in EMPTY:
            era.read_list(message)
            return era.answered(request, **{EMPTY[method]: []})
        raise Fault(METHOD_NOT_FOUND, f"unknown method {method!r}", status=200)

    async def _call(self, message: Envelope, outlet: Outlet) -> None:
        want = era.read_call(message, self.capabilities, self.level)
        if want.id in self._talks:
            raise Fault(INVALID_REQUEST, f"id: {want.id!r} is the id of a request that still runs")
        self._one_token(want)
        talk = Conversation(self._site, want, self.caller, outlet, self)
        talk.open()
        self._talks[want.id] = talk
        try:
            await talk.hold()
        finally:
            del self._talks[want.id]
            self.over(talk)

    def _one_token(self, want: Wanted) -> None:
        """A token that is in use is served without progress: nobody could tell the two apart."""
        if want.token is not UNSET and any(talk.want.token == want.token for talk in self._talks.values()):
            self._site.count("tokens used twice")
            want.token = UNSET

    def _put(self, talk: Conversation, asked: Question, tries: int) -> bytes:
        self._number += 1
        number = f"afoot-{self._number}"
        self._asked[number] = (talk, asked, tries)
        return era.ask(number, asked)

    def _withdraw(self, number: Id, reason: str) -> bytes:
        del self._asked[number]
        return era.withdrawn(number, reason)

    def _again(self, talk: Conversation, asked: Question, tries: int) -> None:
        if tries >= TRIES:
            self._site.engine.answer(asked.id, Answer("cancel", NOTHING, self.caller))
            return
        talk.extra.append(self._put(talk, asked, tries))
        self._site.count("answers refused")
        talk.bell.set()
