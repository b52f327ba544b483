"""A connection of the handshake era, on any transport: what it was told, what it asked, what we asked it."""

from collections.abc import Sequence
from functools import partial

from msgspec import UNSET

from afoot.core.facts import NOTHING, Answer, Answered, Question
from afoot.engine.bell import Bell
from afoot.engine.live import Live
from afoot.errors import AfootError, ToolError
from afoot.serve import patience
from afoot.serve.conversation import Conversation
from afoot.serve.listing import SHELVED, definitions, shelved
from afoot.serve.manner import Outlet
from afoot.serve.modern import hand_over
from afoot.serve.shelf_inquiry import Inquiries
from afoot.serve.shelf_lookup import answer_handshake, hold
from afoot.serve.shelf_news import Ear
from afoot.serve.site import Site
from afoot.wire import mcp_2025 as era
from afoot.wire import messages, shelf
from afoot.wire.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, Fault, Id
from afoot.wire.messages import Capabilities, Wanted
from afoot.wire.shelf import LOOKUPS

SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
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
        self.version = self.client = ""
        self.capabilities = Capabilities()
        self.level: str | None = "info"
        self._talks: dict[Id, Conversation] = {}
        self._bells: dict[Id, Bell] = {}  # of requests without a call; cracked when they are cancelled
        self.ear = Ear(Bell())
        self.inquiries = Inquiries()
        self._left: dict[Id, Live] = {}  # calls that run on without their stream
        self._asked: dict[Id, tuple[Conversation, Question, int]] = {}
        self._number = 0

    async def request(self, message: Envelope, outlet: Outlet) -> None:
        """Answer one request; raises Fault."""
        request = message.id
        assert isinstance(request, int | str)
        if message.method == "tools/call":
            await self._call(message, outlet)
        elif message.method in LOOKUPS or message.method in SUBSCRIPTIONS:
            await self._look_up(message, request, outlet)
        else:
            if message.method != "ping":
                await self._site.settled()
            await outlet.finish((), self._plain(request, message))

    def notified(self, message: Envelope) -> None:
        """Take a notification; those we do not know are dropped."""
        if message.method == "notifications/cancelled":
            cancelled = era.read_cancelled(message)
            request = cancelled.requestId
            if request is None:
                return
            if request in self._bells:
                self._bells[request].crack()
                return
            talk = self._talks.get(request)
            reason = cancelled.reason or "the caller cancelled it"
            if talk is not None:
                talk.cancel("caller", reason)
            elif (live := self._left.pop(request, None)) is not None:
                self._site.engine.cancel(live, "caller", reason)

    def responded(self, message: Envelope) -> None:
        """Take the answer to a question of ours; one that does not fit is put again."""
        if self.inquiries.answered(message):
            return
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
                talk.cancel("disconnect", reason)
            talk.stop()
        self.forget()

    def forget(self) -> None:
        """Nobody is there to be told anything: end what starts no call."""
        for bell in (self.ear.bell, *self._bells.values()):
            bell.crack()
        self._site.library.leave(self.ear)

    def ask(self, talk: Conversation, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Put questions to the client as requests of our own; those it cannot answer go to the operator."""
        frames = []
        put = {one.id for asker, one, _ in self._asked.values() if asker is talk}
        for one in asked:
            if one.id in put:
                continue  # it was not on record yet, and comes once more when it is
            if self.capabilities.may_answer(one):
                frames.append(self._put(talk, one, 0))
            elif one.kind in ("sample", "roots"):
                self._site.engine.answer(one.id, Answer("decline", by="engine"))
        return frames, None

    def postpone(self, talk: Conversation) -> bytes:
        """Not in this era: a large result goes as one event."""
        raise AssertionError("a handshake-era stream is not capped")

    def part(self, talk: Conversation) -> bytes:
        """A handle; what the call asked is asked again by whoever waits for it."""
        return hand_over(talk)

    def settled(self, talk: Conversation, fact: Answered) -> list[bytes]:
        """Withdraw a question that somebody else has answered (A5)."""
        asked = [number for number, (_, one, _) in self._asked.items() if one.id == fact.question]
        return [self._withdraw(number, f"answered by {fact.answer.by}") for number in asked]

    def over(self, talk: Conversation) -> list[bytes]:
        """Withdraw what the call asked and needs no more."""
        asked = [number for number, (asker, _, _) in self._asked.items() if asker is talk]
        return [self._withdraw(number, "its request is over") for number in asked]

    def left(self, talk: Conversation) -> None:
        """A lost stream is no cancel in this era; the call runs on, and can still be cancelled (X3)."""
        if self._dies:
            self._site.engine.cancel(talk.live, "disconnect", "the client takes nothing any more")
        talk.live.can_ask = False  # unless it comes back to wait for it
        self._left = {request: live for request, live in self._left.items() if not live.call.is_finished}
        self._left[talk.want.id] = talk.live

    def _plain(self, request: Id, message: Envelope) -> bytes:
        method = str(message.method)
        if method == "initialize":
            hello = era.read_hello(message)
            self.version, self.capabilities = hello.version, hello.capabilities
            self.client = hello.clientInfo.name
            library = self._site.library
            library.listen(self.ear)
            return era.welcome(request, hello, self._site.info, self._site.guidance(), library.capabilities())
        if method == "ping":
            return era.answered(request)
        if method == "logging/setLevel":
            self.level = era.read_level(message)
            return era.answered(request)
        if method == "tools/list":
            asked = era.read_list(message)
            limit_s = patience.limit(self._site.settings, asked.meta.budget, self.client)
            return era.answered(request, tools=patience.offered(definitions(self._site), limit_s))
        if method in SHELVED:
            era.read_list(message)
            return era.answered(request, **shelved(self._site, method))
        raise Fault(METHOD_NOT_FOUND, f"unknown method {method!r}", status=200)

    async def _look_up(self, message: Envelope, request: Id, outlet: Outlet) -> None:
        """Answer a request that starts no call, but may take its time."""
        self._is_free(request)
        if message.method in LOOKUPS:
            lookup = shelf.read(message, self.caller, self.capabilities)
            ask = partial(self.inquiries.ask, outlet)
            work = answer_handshake(self._site, lookup, ask)
        else:
            work = self._subscribe(request, str(message.method), shelf.read_uri(message))
        bell = self._bells[request] = Bell()
        try:
            await hold(self._site, request, outlet, bell, work)
        finally:
            del self._bells[request]

    async def _subscribe(self, request: Id, method: str, uri: str) -> bytes:
        library = self._site.library
        if method == "resources/unsubscribe":
            library.watches.drop(uri, self.ear)
            return era.answered(request)
        try:
            await library.watch(uri, self.ear)
        except Fault as fault:
            raise shelf.passed_on(fault, "", modern=False, uri=uri) from None
        return era.answered(request)

    def _is_free(self, request: Id) -> None:
        """An id names one request at a time; raises Fault."""
        if request in self._talks or request in self._bells:
            raise Fault(INVALID_REQUEST, f"id: {request!r} is the id of a request that still runs")

    async def _call(self, message: Envelope, outlet: Outlet) -> None:
        want = era.read_call(message, self.capabilities, self.level)
        self._is_free(want.id)
        want.client = self.client
        if want.name not in self._site.engine.catalog.known and await self._is_given_up(want.id, outlet):
            await outlet.finish((), None)
            return
        self._one_token(want)
        talk = Conversation(self._site, want, self.caller, outlet, self)
        talk.open()
        self._talks[want.id] = talk
        try:
            await talk.hold()
        finally:
            del self._talks[want.id]
            self.over(talk)

    async def _is_given_up(self, request: Id, outlet: Outlet) -> bool:
        """Wait for servers that are just being opened; True if its caller wants it no more (X1)."""
        bell = self._bells[request] = Bell()
        outlet.watch(bell.ring)
        try:
            await self._site.settled()
        finally:
            del self._bells[request]
        return bell.cracked or (self._dies and outlet.gone)

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
