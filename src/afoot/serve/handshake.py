"""A connection of the handshake era, on any transport: what it was told, what it asked, what we asked it."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import UNSET

from afoot.core.facts import Answered, Question
from afoot.engine.bell import Bell
from afoot.engine.live import Live
from afoot.serve import patience
from afoot.serve.conversation import Conversation
from afoot.serve.join import opened
from afoot.serve.listing import SHELVED, definitions, shelved
from afoot.serve.manner import Outlet
from afoot.serve.modern import detach, hand_over
from afoot.serve.nested import Nested
from afoot.serve.numbered import Numbered
from afoot.serve.shelf_inquiry import Inquiries
from afoot.serve.shelf_lookup import answer_handshake, hold
from afoot.serve.shelf_news import Ear
from afoot.serve.site import Site
from afoot.serve.tasks_2025 import Telling, answer_older, offered
from afoot.wire import mcp_2025 as era
from afoot.wire import shelf
from afoot.wire.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, Fault, Id
from afoot.wire.messages import Capabilities, Wanted
from afoot.wire.place import Passport
from afoot.wire.shelf import LOOKUPS
from afoot.wire.tasks import CAPABILITY, OLDER

SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
LEAVING_S = 0.01  # how often it is looked whether a request has left its stream: one that is stuck takes long


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
        self._nested = Nested(site, caller)
        self._telling = Telling(site, self, self._nested, self.ear.bell)
        self.watching = self._telling.watching

    async def request(self, message: Envelope, outlet: Outlet) -> None:
        """Answer one request; raises Fault."""
        request = message.id
        assert isinstance(request, int | str)
        if message.method == "tools/call":
            await self._call(message, outlet)
        elif message.method in LOOKUPS or message.method in SUBSCRIPTIONS:
            await self._look_up(message, request, outlet)
        elif message.method in OLDER and self.version == era.LATEST:
            self._is_free(request)
            talk = await answer_older(self._site, self, message, outlet)
            if talk is not None:
                await self.hold(talk)
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
        if not self.inquiries.answered(message):
            self._nested.answered(message)

    def close(self, reason: str) -> None:
        """The connection is over."""
        for talk in list(self._talks.values()):
            if self._dies:
                talk.cancel("disconnect", reason)
            talk.stop()
        self.forget()

    def reopen(self, passport: Passport) -> None:
        """This is a session that another gateway has opened."""
        self.version, self.client = passport.version, passport.client
        self.capabilities = passport.capabilities
        self._nested.renew()
        self._site.library.listen(self.ear)

    def forget(self) -> None:
        """Nobody is there to be told anything: end what starts no call."""
        for bell in (self.ear.bell, *self._bells.values()):
            bell.crack()
        self._site.library.leave(self.ear)
        self.watching.close()

    def ask(self, talk: Conversation, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """Put questions to the client as requests of our own; those it cannot answer go to the operator."""
        return self._nested.put(talk, asked, self.capabilities), None

    def postpone(self, talk: Conversation) -> bytes:
        """Not in this era: a large result goes as one event."""
        raise AssertionError("a handshake-era stream is not capped")

    def part(self, talk: Conversation) -> bytes:
        """A handle; what the call asked is asked again by whoever waits for it."""
        detach(talk)
        return hand_over(talk)

    def settled(self, talk: Conversation, fact: Answered) -> list[bytes]:
        """Withdraw a question that somebody else has answered (A5)."""
        return self._nested.withdraw(fact.question, f"answered by {fact.answer.by}")

    def over(self, talk: Conversation) -> list[bytes]:
        """Withdraw what the call asked and needs no more; not if the stream broke, for it may be resumed."""
        if talk.outlet.gone and not (self._dies or talk.live.call.is_finished):
            return []
        return self._nested.over(talk, "its request is over")

    def left(self, talk: Conversation) -> None:
        """A lost stream is no cancel in this era; the call runs on, and can still be cancelled (X3)."""
        if self._dies and talk.live.tool.on_disconnect != "detach":
            self._site.engine.cancel(talk.live, "disconnect", "the client takes nothing any more")
        talk.live.attached -= 1
        talk.live.can_ask = False  # unless it comes back to wait for it
        self._left = {request: live for request, live in self._left.items() if not live.call.is_finished}
        self._left[talk.want.id] = talk.live

    async def take_over(self, talk: Conversation, asked: set[str]) -> None:
        """A request goes on, on another stream; what it was asked on the one before, it need not be again."""
        request = talk.want.id
        while (before := self._talks.get(request)) is not None:
            if before.live.call.id != talk.live.call.id or not isinstance(before.outlet, Numbered):
                raise _taken(request)
            before.outlet.leave()
            before.bell.set()
            await asyncio.sleep(LEAVING_S)
        self._left.pop(request, None)
        self._nested.pass_on(talk, asked)

    def _plain(self, request: Id, message: Envelope) -> bytes:
        method = str(message.method)
        if method == "initialize":
            hello = era.read_hello(message)
            self.version, self.capabilities = hello.version, hello.capabilities
            self.client = hello.clientInfo.name
            library = self._site.library
            library.listen(self.ear)
            can = library.capabilities()
            if self.version == era.LATEST:
                can = {**can, "tasks": CAPABILITY}
            return era.welcome(request, hello, self._site.info, self._site.guidance(), can)
        if method == "ping":
            return era.answered(request)
        if method == "logging/setLevel":
            self.level = era.read_level(message)
            return era.answered(request)
        if method == "tools/list":
            asked = era.read_list(message)
            limit_s = patience.limit(self._site.settings, asked.meta.budget, self.client)
            tools = offered(self._site) if self.version == era.LATEST else definitions(self._site)
            return era.answered(request, tools=patience.offered(tools, limit_s))
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
            raise _taken(request)

    async def _call(self, message: Envelope, outlet: Outlet) -> None:
        want = era.read_call(message, self.capabilities, self.level)
        self._is_free(want.id)
        want.client = self.client
        want.task = want.task and self.version == era.LATEST
        if want.name not in self._site.engine.catalog.known and await self._is_given_up(want.id, outlet):
            await outlet.finish((), None)
            return
        self._one_token(want)
        talk = Conversation(self._site, want, self.caller, outlet, self)
        if want.key:
            await self._join(talk)
        else:
            talk.open()
        if not want.task:
            await self.hold(talk)
            return
        await self._telling.begin(talk)

    async def _join(self, talk: Conversation) -> None:
        """Find the call of a key, or open it; a cancel that comes while it is looked for counts (X1)."""
        request = talk.want.id
        bell = self._bells[request] = Bell()
        try:
            await opened(talk)
        finally:
            del self._bells[request]
        if bell.cracked and self.ear.bell.cracked and talk.joins:
            talk.stop()  # its session was ended, which is no cancel of what another request opened (X3)
        elif bell.cracked:
            talk.cancel("caller", "the caller cancelled it")

    async def hold(self, talk: Conversation) -> None:
        """Follow a call for one request, which can be cancelled meanwhile."""
        if isinstance(talk.outlet, Numbered) and talk.after is None and not talk.waits:
            talk.outlet.begin(talk)
        with self.named(talk):
            await talk.hold()

    @contextmanager
    def named(self, talk: Conversation) -> Iterator[None]:
        """As long as this lasts, its id is that of this request."""
        self._talks[talk.want.id] = talk
        try:
            yield
        finally:
            if self._talks.get(talk.want.id) is talk:
                del self._talks[talk.want.id]
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
        token = want.token
        if token is UNSET:
            return
        is_used = any(talk.want.token == token for talk in self._talks.values())
        if is_used or token in self._telling.tokens():
            self._site.count("tokens used twice")
            want.token = UNSET


def _taken(request: Id) -> Fault:
    return Fault(INVALID_REQUEST, f"id: {request!r} is the id of a request that still runs")
