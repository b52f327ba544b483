"""Whoever was let in stays as long as what let them in: then streams end, and say why."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec import Raw

from afoot.core.facts import CancelRequested
from afoot.engine.engine import Submission
from afoot.serve.access.browser_sessions import BrowserSessions
from afoot.serve.access.guard import Guard, accepted_hosts
from afoot.serve.access.principal import CALL, OPERATOR_PRINCIPAL, Denied, Principal
from afoot.serve.access.tokens import CHECK_S, NamedTokens, TokenChecks
from afoot.serve.api.history.purge_export import export
from afoot.serve.api.request import ApiRequest
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.asgi import HttpResponse, Message
from afoot.serve.mcp.http import McpHttp
from afoot.serve.mcp.sessions_2025 import Sessions2025
from tests.engine.fake_engine import facts, over
from tests.serve.fake_gateway import TOKEN, faked, nap, now, only, site_of
from tests.serve.raw_transports import Exchange, Web, call, hello, modern, older

LISTEN = modern("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 7)


class Shelf:
    """Tokens, or sessions, that nobody else changes."""

    def held(self) -> nullcontext[None]:
        """Nobody else is there."""
        return nullcontext()

    def read(self) -> None:
        """Nothing is new."""

    def write(self, things: list[Any]) -> None:
        """They are known already."""


class Office:
    """An issuer whose tokens are a name and when they end."""

    metadata_url = "https://gate.example/metadata"

    def metadata(self) -> dict[str, object]:
        """Nothing of interest."""
        return {}

    def issuer_scope(self, scope: str) -> str:
        """A scope as it is called there."""
        return f"gate:{scope}"

    async def check(self, token: bytes) -> Principal:
        """Whose token it is."""
        name, _, until = token.decode().partition("-")
        if now() >= float(until):
            raise Denied(401, "it has expired")
        return Principal(f"oauth:{name}", frozenset([CALL]), until=self.began + float(until))

    def end_reason(self, who: Principal) -> str:
        """Whether it has ended for good."""
        return "the access token has expired" if self.began + now() >= who.until + 2 else ""

    began = 0.0


class Closed(Web):
    """A gateway that wants to know who calls."""

    def __init__(self, gateway: GatewayState, office: Office | None = None) -> None:
        super().__init__(gateway)
        clock = gateway.engine.clock
        self.tokens = NamedTokens(Shelf(), clock.now)
        gateway.token_checks = TokenChecks(self.tokens, clock, office, gateway.wakeups)
        if office is not None:
            office.began = clock.now() - now()
        guard = Guard(accepted_hosts(23668, []), frozenset(), "", TOKEN, None, gateway.token_checks, True)
        self.application = McpHttp(gateway, guard, Sessions2025(gateway))

    def let_in(self, name: str = "ada", lasts_s: float | None = None) -> str:
        """The header of somebody with a new token."""
        return f"Bearer {self.tokens.add(name, [CALL], lasts_s)[0]}"


async def told(exchange: Exchange, within_s: float = 2 * CHECK_S) -> Exchange:
    """An exchange that ends soon, and whole."""
    began = now()
    await exchange.done()
    assert now() - began <= within_s and exchange.is_whole
    return exchange


@faked
@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_revoked_token_ends_the_call_of_its_owner_and_says_why(is_stream: bool) -> None:
    """S2, X1: as a disconnect does; on a stream as an error, before there is one with 401."""
    async with site_of(nap) as gateway:
        web = Closed(gateway)
        exchange = web.post(call(5, progressToken=1), authorization=web.let_in())
        await asyncio.sleep(6 if is_stream else 3)
        live = only(gateway)
        web.tokens.revoke("ada")
        last = (await told(exchange)).messages[-1]
        assert (exchange.is_stream, exchange.status) == ((True, 200) if is_stream else (False, 401))
        assert last["id"] == 5 and last["error"]["message"] == "the token 'ada' was revoked"
        [cancel] = facts(live, CancelRequested)
        assert (cancel.by, cancel.reason) == ("disconnect", "the token 'ada' was revoked")


@faked
async def test_what_detaches_goes_on_without_its_caller() -> None:
    """S2, X3: nobody reads along any more, and nothing is lost."""
    async with site_of(nap, on_disconnect="detach") as gateway:
        web = Closed(gateway)
        exchange = web.post(call(), authorization=web.let_in())
        await asyncio.sleep(1)
        live = only(gateway)
        web.tokens.revoke("ada")
        assert (await told(exchange)).status == 401
        await asyncio.sleep(20)
    assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_others_are_left_alone() -> None:
    """S2: neither those with another token, nor one of the same name that was made anew."""
    async with site_of(nap) as gateway:
        web = Closed(gateway)
        kept = web.post(call(1), authorization=web.let_in("bob"))
        gone = web.post(LISTEN, authorization=web.let_in("ada"))
        await asyncio.sleep(1)
        secret, _ = web.tokens.add("ada", [CALL], is_renewed=True)
        new = web.post(LISTEN, authorization=f"Bearer {secret}")
        assert (await told(gone)).messages[-1]["error"]["message"] == "the token 'ada' was revoked"
        assert (await kept.done()).messages[-1]["result"]["content"][0]["text"] == "slept"
        await asyncio.sleep(60)
        assert not new.is_whole
        new.leave()
        await new.done()


@faked
async def test_a_listener_whose_token_expires_is_let_go() -> None:
    """S2: within seconds, though nothing happens that could wake it."""
    async with site_of(nap, settings={"keepalive_s": 3600.0}) as gateway:
        web = Closed(gateway)
        exchange = web.post(LISTEN, authorization=web.let_in(lasts_s=100.0))
        await asyncio.sleep(99)
        assert not exchange.is_whole
        last = (await told(exchange, 1 + 2 * CHECK_S)).messages[-1]
        assert last["id"] == 7 and "'ada' has expired" in last["error"]["message"]


@faked
async def test_streams_of_a_session_end_and_its_calls_go_on() -> None:
    """S2, X3: in the handshake era a stream that ends is no cancel, whoever ended it."""
    async with site_of(nap) as gateway:
        web = Closed(gateway)
        header = web.let_in()
        web.session = (await web.ask(hello(), authorization=header)).headers["mcp-session-id"]
        news = web.open("GET", authorization=header)
        exchange = web.post(older(3, progressToken=1), authorization=header)
        await asyncio.sleep(6)
        live = only(gateway)
        web.tokens.revoke("ada")
        for one in (exchange, news):
            assert b": the token 'ada' was revoked" in (await told(one)).body
        again = await web.ask(older(4), authorization=header)
        assert again.status == 401
        await asyncio.sleep(20)
    assert live.call.end is not None and live.call.end.outcome == "ok"


@faked
async def test_a_call_outlives_the_access_token_it_began_with() -> None:
    """S2, H5: its request ends in time with a round, which the client repeats with a newer token."""
    async with site_of(nap) as gateway:
        web = Closed(gateway, Office())
        first = await web.ask(call(1), authorization="Bearer ada-4")
        state = first.messages[-1]["result"]["requestState"]
        assert 4 <= now() < 5
        stale = await web.ask(call(2, requestState=state), authorization="Bearer ada-4")
        assert stale.status == 401
        other = await web.ask(call(2, requestState=state), authorization="Bearer eve-99")
        assert other.messages[-1]["error"]["code"] == -32602
        again = await web.ask(call(2, requestState=state), authorization="Bearer ada-99")
        assert again.messages[-1]["result"]["content"][0]["text"] == "slept" and now() == 10


@faked
async def test_what_listens_ends_with_its_access_token() -> None:
    """S2: also where its owner has another by now: a stolen one is of use until its end, and no longer."""
    async with site_of(nap) as gateway:
        web = Closed(gateway, Office())
        old = web.post(LISTEN, authorization="Bearer ada-50")
        new = web.post(LISTEN, authorization="Bearer ada-9999")
        await asyncio.sleep(49)
        assert not old.is_whole
        last = (await told(old, 3 + 2 * CHECK_S)).messages[-1]
        assert last["error"]["message"] == "the access token has expired" and not new.is_whole
        new.leave()
        await new.done()


@faked
@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_request_that_was_held_back_begins_nothing_any_more(is_modern: bool) -> None:
    """S2: whoever is let in says all of it while they are, or it was not said."""
    async with site_of(nap) as gateway:
        web = Closed(gateway)
        header = web.let_in()
        if not is_modern:
            web.session = (await web.ask(hello(), authorization=header)).headers["mcp-session-id"]
        exchange = web.open("POST", call() if is_modern else older(), pieces=0, authorization=header)
        await asyncio.sleep(1)
        web.tokens.revoke("ada")
        await asyncio.sleep(60)
        exchange.say(b" ")
        assert (await exchange.done()).status == 401 and not gateway.engine.calls()
        assert exchange.messages[0]["error"]["message"] == "the token 'ada' was revoked"


@faked
async def test_a_browser_goes_with_the_token_that_let_it_in() -> None:
    """S2: its streams end within seconds, also where nothing happens."""
    async with site_of(nap) as gateway:
        web = Closed(gateway)
        _, made = web.tokens.add("chief", [CALL])
        admission = gateway.browser_sessions = BrowserSessions(
            Shelf(), gateway.engine.clock.now, web.tokens.is_valid
        )
        token, _ = admission.log_in(
            admission.code(Principal("token:chief", frozenset((CALL,)), token=made.id))[0]
        )
        guard = Guard(
            accepted_hosts(23668, []), frozenset(), "", TOKEN, admission, gateway.token_checks, True
        )
        named = [(b"host", b"127.0.0.1:23668"), (b"authorization", f"Bearer {token}".encode())]
        reply = HttpResponse(Exported().send, 1.0)
        await guard.identify_operator({"headers": named}, reply)
        web.tokens.revoke("chief")
        await asyncio.sleep(2 * CHECK_S)
        assert reply.denied == "the token that let this browser in was revoked"


class Exported:
    """What is sent of an export, and what happens after its first piece."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self._then = then
        self.sent: list[Message] = []

    async def send(self, message: Message) -> None:
        """Keep it."""
        self.sent.append(message)
        if len(self.sent) == 2:
            self._then()

    async def receive(self) -> Message:
        """Nothing more is said."""
        raise AssertionError


@faked
async def test_an_export_ends_with_the_session_of_who_asked() -> None:
    """S2: it may take minutes."""
    async with site_of(nap) as gateway:
        for _ in range(3):
            await over(gateway.engine, gateway.engine.submit(Submission("tool", Raw(b"{}"))))
        admission = gateway.browser_sessions = BrowserSessions(Shelf(), gateway.engine.clock.now)
        _, session = admission.log_in(admission.code(OPERATOR_PRINCIPAL)[0])
        exported = Exported(lambda: admission.revoke(session.id))
        scope: Message = {"query_string": b"", "headers": []}
        reply, who = HttpResponse(exported.send, 1.0), session.principal
        await export(ApiRequest(gateway, scope, exported.receive, reply, {}, who))
    assert [one.get("more_body") for one in exported.sent] == [None, True]
