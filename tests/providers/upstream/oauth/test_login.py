"""Logins from end to end: a gateway, a server that wants one, and a browser (U7)."""

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp.shared.auth import OAuthClientInformationFull

from afoot.config.settings import Server, Settings
from afoot.core.call import Call
from afoot.core.facts import Reading
from afoot.errors import CallerError, ToolError, UnknownName
from afoot.gateway import MEMORY, Gateway
from afoot.providers.upstream.oauth.logins import LoginAttempt
from tests.providers.upstream.oauth_server import Office, browse, open_shop
from tests.providers.upstream.started_servers import sdk_on_http


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own."""
    monkeypatch.setenv("AFOOT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def office(home: Path) -> Iterator[Office]:
    """The authorization server, with its shop."""
    with open_shop() as opened:
        yield opened


@asynccontextmanager
async def at(office: Office, **more: Any) -> AsyncIterator[Gateway]:
    """A gateway in front of the shop, which has been asked for its tools."""
    servers = {"shop": Server(url=f"{office.url}/mcp", auth="oauth", **more)}
    async with Gateway(settings=Settings(store=MEMORY, servers=servers, idle_s=20)) as gateway:
        await gateway.servers.wait_until_opened(20)
        yield gateway


async def log_in(gateway: Gateway) -> LoginAttempt:
    """Log in as a person does."""
    attempt = await gateway.servers.login("shop")
    assert attempt.url, attempt.error
    status, page = await asyncio.to_thread(browse, attempt.url)
    assert (status, "close this window" in page) == (200, True)
    await attempt.ended(20)
    return attempt


async def outcome(gateway: Gateway, tool: str, **arguments: Any) -> str:
    """How a call ends."""
    call = await gateway.call(tool, arguments)
    assert call.end is not None
    return call.end.outcome


def text(call: Call) -> str:
    """What a call ended with."""
    assert call.end is not None
    if call.end.failure is not None:
        return call.end.failure.message
    assert call.end.result is not None
    return bytes(call.end.result.content).decode()


def kept(home: Path) -> list[Path]:
    """The files of logins."""
    return sorted((home / "logins").glob("*"))


async def test_without_a_login_the_server_says_what_to_do(office: Office) -> None:
    """U7: nothing is opened and nothing waits: the call ends at once, and names the command."""
    async with at(office) as gateway:
        shop = gateway.servers.get("shop")
        assert (shop.state, shop.login) == ("failed", "needed")
        for _ in range(10):  # there is no back-off: whoever logs in does not want to wait
            with pytest.raises(ToolError, match="run `afoot servers login shop`"):
                await shop.request("tools/list", {})
        assert not office.asked


async def test_after_a_login_calls_report_and_the_tokens_are_kept(home: Path, office: Office) -> None:
    """U7, P1, S4: in a file for its owner's eyes; the next start needs no other login."""
    async with at(office) as gateway:
        attempt = await log_in(gateway)
        assert (attempt.state, attempt.error) == ("done", "")
        assert gateway.servers.get("shop").login == "logged in"
        call = gateway.submit("count", {"n": 5})
        heard = [one async for one in gateway.follow(call, hz=0) if isinstance(one, Reading)]
        assert [one.progress for one in heard] == [1, 2, 3, 4, 5]
    (file,) = kept(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    async with at(office) as gateway:
        assert await outcome(gateway, "whoami") == "ok"
    assert len(office.asked) == len(office.clients) == 1


async def test_calls_do_not_wait_for_each_other(office: Office) -> None:
    """U7, X1: two calls that need each other both end, as they do without a login."""
    async with at(office) as gateway:
        await log_in(gateway)
        both = await asyncio.gather(gateway.call("meet"), gateway.call("meet"))
        assert [one.end and one.end.outcome for one in both] == ["ok", "ok"]


async def test_a_token_that_ends_is_renewed_once_for_all(office: Office) -> None:
    """U7: the person is not asked again, and what is renewed is kept for the next start."""
    office.lives_s = 5  # it counts as over at once
    async with at(office) as gateway:
        await log_in(gateway)
        office.lives_s = 3600
        office.revoke(refresh=False)
        before = office.renewals
        many = await asyncio.gather(*(gateway.call("whoami") for _ in range(10)))
        assert {one.end and one.end.outcome for one in many} == {"ok"}
        assert office.renewals == before + 1
    async with at(office) as gateway:
        assert await outcome(gateway, "whoami") == "ok"
    assert len(office.asked) == 1


async def test_a_token_that_is_refused_is_renewed(office: Office) -> None:
    """U7: a server may forget a token long before its time."""
    async with at(office) as gateway:
        await log_in(gateway)
        office.revoke(refresh=False)
        assert await outcome(gateway, "whoami") == "ok"
        assert office.renewals == 1


async def test_a_login_that_is_over_is_told_and_can_be_made_again(home: Path, office: Office) -> None:
    """U7: a revoked login fails calls at once; the tokens are gone, and the next login is as the first."""
    async with at(office) as gateway:
        await log_in(gateway)
        office.revoke()
        for _ in range(2):
            call = await gateway.call("whoami")
            assert call.end is not None and call.end.failure is not None
            assert call.end.failure.category == "auth"
            assert "run `afoot servers login shop`" in text(call)
        assert gateway.servers.get("shop").login == "needed"
        assert b"access" not in kept(home)[0].read_bytes()
        assert (await log_in(gateway)).state == "done"
        assert await outcome(gateway, "whoami") == "ok"
        assert len(office.clients) == 1  # the registration was good, and the port was free


async def test_logging_out_forgets_everything(home: Path, office: Office) -> None:
    """U7: tokens and registration; the next call says that a login is needed."""
    async with at(office) as gateway:
        await log_in(gateway)
        assert await gateway.servers.clear_tokens("shop")
        assert kept(home) == []
        with pytest.raises(ToolError, match="run `afoot servers login shop`"):
            await gateway.servers.get("shop").request("tools/list", {})
        assert not await gateway.servers.clear_tokens("shop")
        with pytest.raises(UnknownName):
            await gateway.servers.clear_tokens("shoe")


async def test_another_address_does_not_get_the_tokens(home: Path, office: Office) -> None:
    """U7, S4: a login belongs to the address that it was made for, whatever the server is called."""
    async with at(office) as gateway:
        await log_in(gateway)
    with open_shop() as other:
        async with at(other) as gateway:
            assert gateway.servers.get("shop").login == "needed"
            assert gateway.servers.logins.clear("shop")
        assert not other.tokens


async def test_who_refuses_to_log_in_is_believed(home: Path, office: Office) -> None:
    """U7: the attempt ends with the reason, and nothing is kept."""
    office.is_refusing = True
    async with at(office) as gateway:
        attempt = await log_in(gateway)
        assert (attempt.state, attempt.error) == ("failed", "the login was refused: access_denied")
        assert kept(home) == []


async def test_a_second_login_ends_the_first(office: Office) -> None:
    """U7: somebody closed the window, and begins anew."""
    async with at(office) as gateway:
        first = await gateway.servers.login("shop")
        assert (await log_in(gateway)).state == "done"
        assert (first.state, first.error) == ("failed", "it was begun anew")


async def test_a_client_of_ones_own_is_used_with_its_secret(office: Office) -> None:
    """U7: where nobody may register, the settings say who we are, and which scopes are wanted."""
    with_secret = {"client_id": "mine", "client_secret": "hush-hush", "scopes": ["buy"]}
    async with at(office, **with_secret) as gateway:
        attempt = await gateway.servers.login("shop")
        assert attempt.url, attempt.error
        back = parse_qs(urlsplit(attempt.url).query)["redirect_uri"][0]
        office.clients["mine"] = client_of(back)
        await asyncio.to_thread(browse, attempt.url)
        await attempt.ended(20)
        assert (attempt.error, list(office.clients)) == ("", ["mine"])
        office.revoke(refresh=False)
        assert "mine" in text(await gateway.call("whoami"))


def client_of(back: str) -> OAuthClientInformationFull:
    """The client as its authorization server knows it."""
    return OAuthClientInformationFull.model_validate(
        {"client_id": "mine", "client_secret": "hush-hush", "redirect_uris": [back], "scope": "buy",
         "token_endpoint_auth_method": "client_secret_basic"}
    )  # fmt: skip


async def test_a_server_that_needs_no_login_is_served_without(home: Path) -> None:
    """U7: `auth = "oauth"` harms nobody; who wants to log in even so is told that there is nothing to do."""
    with sdk_on_http() as url:
        servers = {"shop": Server(url=url, auth="oauth")}
        async with Gateway(settings=Settings(store=MEMORY, servers=servers)) as gateway:
            await gateway.servers.wait_until_opened(20)
            assert gateway.servers.get("shop").login == ""
            assert await outcome(gateway, "echo", text="hi") == "ok"
            attempt = await gateway.servers.login("shop")
            assert attempt.error.startswith("server shop asked for no login")
    assert kept(home) == []


async def test_a_server_with_a_key_of_its_own_takes_no_login(home: Path, office: Office) -> None:
    """U7: an Authorization header in the settings is an answer already; that it is refused is told."""
    url = f"{office.url}/mcp"
    servers = {"shop": Server(url=url, headers={"authorization": "Bearer stale"})}
    async with Gateway(settings=Settings(store=MEMORY, servers=servers)) as gateway:
        await gateway.servers.wait_until_opened(20)
        assert "refuses the Authorization header" in gateway.servers.get("shop").error
        with pytest.raises(CallerError, match="Authorization header"):
            await gateway.servers.login("shop")


async def test_secrets_are_in_no_log_and_no_text(
    office: Office, caplog: pytest.LogCaptureFixture, home: Path
) -> None:
    """S4: not when all goes well, and not when the authorization server fails in the middle."""
    caplog.set_level(logging.DEBUG)
    async with at(office) as gateway:
        attempt = await log_in(gateway)
        said = [attempt.error, repr(attempt), *(repr(one) for one in gateway.servers.list())]
        access = gateway.servers.get("shop").tokens
        assert access is not None and access.login is not None
        hidden = [access.login.access, access.login.refresh, *office.tokens, *office.refreshes]
        said += [repr(access.login), str(access.login.client)]
        office.revoke()
        said.append(text(await gateway.call("whoami")))
    for secret in hidden:
        assert secret not in caplog.text
        assert not any(secret in one for one in said)


async def test_a_bad_answer_is_told_without_what_was_in_it(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    """S4, U7: an authorization server that sends half of a token spoils only this login."""
    office.half = "top-secret"
    async with at(office) as gateway:
        attempt = await log_in(gateway)
        assert attempt.error.startswith("server shop: the login failed: Invalid token response")
        assert "top-secret" not in attempt.error + caplog.text
