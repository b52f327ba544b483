"""Callers behind a bridge: who they are, what is theirs alone, and what their end means."""

import asyncio
from typing import Any

import pytest

from afoot.serve.access.guard import Denied, Guard, accepted_hosts
from afoot.serve.mcp.asgi import Scope
from tests.serve.fake_gateway import TOKEN, faked, nap, only, site_of
from tests.serve.raw_transports import HOST, Exchange, Web, call, modern, older, request

NAME = "connect-" + "0123456789abcdef" * 2
CALLER = NAME.replace("-", ":")
KNOWN = {"authorization": f"Bearer {TOKEN}", "afoot_caller": NAME}
OTHER = {**KNOWN, "afoot_caller": NAME[:-1] + "0"}
GUARD = Guard(accepted_hosts(23668, []), frozenset(), "mcp", TOKEN)


def scope(**headers: str) -> Scope:
    """A request with these headers."""
    sent = {"host": HOST, **headers}
    return {"headers": [(key.replace("_", "-").encode(), value.encode()) for key, value in sent.items()]}


def test_the_operators_token_proves_which_bridge_it_is() -> None:
    """S3: and without the header nobody is anybody, whatever token he has."""
    assert GUARD.bridge_caller(scope(**KNOWN)) == CALLER
    assert GUARD.bridge_caller(scope(authorization=f"Bearer {TOKEN}")) == "local"


@pytest.mark.parametrize(
    "changes",
    [
        {"authorization": ""},
        {"authorization": "Bearer mcp"},
        {"authorization": TOKEN},
        {"afoot_caller": ""},
        {"afoot_caller": "local"},
        {"afoot_caller": "session:1"},
        {"afoot_caller": "connect-short"},
        {"afoot_caller": f"{NAME} "},
        {"afoot_caller": "connect-" + "x" * 65},
    ],
)
def test_a_forged_caller_is_turned_away(changes: dict[str, str]) -> None:
    """S3: the token of /mcp proves nothing, and no other kind of caller can be claimed."""
    with pytest.raises(Denied, match="afoot-caller") as denied:
        GUARD.bridge_caller(scope(**{**KNOWN, **changes}))
    assert denied.value.status == 403


@faked
async def test_a_bridge_is_the_caller_in_both_eras() -> None:
    """S3: its identity goes before the session's."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        new = web.post(call(), **KNOWN)
        await asyncio.sleep(1)
        assert only(gateway).call.opened.caller == CALLER
        new.leave()
        await new.done()
        web.session = (await web.ask(request("initialize", {"protocolVersion": "x"}), **KNOWN)).headers[
            "mcp-session-id"
        ]
        await asyncio.sleep(10)
        web.post(older(), **KNOWN)
        await asyncio.sleep(1)
        assert only(gateway).call.opened.caller == CALLER


@faked
@pytest.mark.parametrize("who", [{}, OTHER], ids=["anybody", "another bridge"])
async def test_the_session_of_a_bridge_is_its_own(who: dict[str, Any]) -> None:
    """S3: knowing its id is not enough, neither to ask, to listen, nor to end it."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        await opened(web)
        for method in ("POST", "GET", "DELETE"):
            assert (await web.open(method, request("ping"), **who).done()).status == 404
        assert (await web.ask(request("ping"), **KNOWN)).status == 200


@faked
@pytest.mark.parametrize("how", ["session ended", "stream lost"])
async def test_the_end_of_a_bridge_ends_its_calls(how: str) -> None:
    """X1: behind it is a process, not a connection that may come back."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        await opened(web)
        running = web.post(older(), **KNOWN)
        await asyncio.sleep(1)
        live = only(gateway)
        if how == "stream lost":
            running.leave()
        else:
            assert (await web.open("DELETE", **KNOWN).done()).status == 200
        await running.done()
        assert live.call.cancel is not None and live.call.cancel.by == "disconnect"


@faked
async def test_a_forged_caller_reaches_no_tool() -> None:
    """S3, S1: 403 in both eras."""
    async with site_of(nap) as gateway:
        for message in (modern("tools/list"), request("initialize", {"protocolVersion": "x"})):
            done: Exchange = await Web(gateway).ask(message, afoot_caller=NAME)
            assert done.status == 403


async def opened(web: Web) -> None:
    """Open a session as a bridge does."""
    hello = await web.ask(request("initialize", {"protocolVersion": "2025-11-25"}), **KNOWN)
    web.session = hello.headers["mcp-session-id"]
