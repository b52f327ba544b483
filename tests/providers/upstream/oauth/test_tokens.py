"""A login as requests use it: sent along, renewed, kept, shared between processes, and over (U7)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import json
from msgspec.structs import replace

from afoot.config.settings import Server
from afoot.errors import CallerError, ToolError
from afoot.providers.upstream.oauth import tokens
from afoot.providers.upstream.oauth.tokens import LoginStore, OAuthClient, StoredLogin, TokenSource
from afoot.providers.upstream.provider import ServerOptions
from tests.providers.fake_run import text_of
from tests.providers.upstream.raw_http_server import Asked, Reply, Site, site, text
from tests.providers.upstream.started_servers import opened, run_tool
from tests.providers.upstream.transport.test_http import modern

NAME = "shop"
ME = OAuthClient("me", "hush", "client_secret_basic")


class Shop:
    """Serves whoever has the right token, and renews; `answers` are its next words about tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, LoginStore(folder)
        self.right = "old"
        self.answers: list[tuple[int, dict[str, Any]]] = []
        self.gate: asyncio.Event | None = None  # to wait for before it answers about a token
        self.asked = asyncio.Event()

    async def __call__(self, asked: Asked, reply: Reply) -> None:
        if asked.path == "/token":
            self.asked.set()
            if self.gate is not None:
                await self.gate.wait()
            status, body = self.answers.pop(0)
            self.right = body.get("access_token", self.right)
            await reply.json(body, status)
        elif asked.headers.get("authorization") != f"Bearer {self.right}":
            await reply.status(401, www_authenticate="Bearer")
        elif asked.method == "tools/call" and asked.body["params"]["arguments"].get("more"):
            header = 'Bearer error="insufficient_scope", scope="more"'
            await reply.status(403, www_authenticate=header)
        elif not await modern(asked, reply):
            await reply.json(text(asked, "gone"))

    def keep(self, place: Site, lasts_s: float | None = 3600, **more: Any) -> TokenSource:
        """Somebody has logged in."""
        until = None if lasts_s is None else time.time() + lasts_s
        login = StoredLogin(
            place.url, "old", "again", until, "some", place.url.replace("/mcp", "/token"), "", ME
        )
        self.store.write(NAME, replace(login, **more))
        return TokenSource(NAME, place.url, self.store)

    def kept(self, place: Site) -> StoredLogin | None:
        """What the next process would find."""
        return self.store.read(NAME, place.url)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Open."""
    return Shop(tmp_path / "logins")


def fresh(**more: Any) -> tuple[int, dict[str, Any]]:
    """An answer with a new token."""
    return 200, {"access_token": "new", "token_type": "bearer", "expires_in": 3600, **more}


def renewals(place: Site) -> list[Asked]:
    """What was asked about tokens."""
    return [one for one in place.asked if one.path == "/token"]


async def go(place: Site, access: TokenSource, **arguments: Any) -> str:
    """Connect and call a tool."""
    async with opened(Server(url=place.url), options=ServerOptions(tokens=access)) as upstream:
        return text_of(await run_tool(upstream, "go", **arguments))


async def test_a_token_goes_along_and_one_that_is_over_is_renewed_first(shop: Shop) -> None:
    """U7: with all that the authorization server wants; what it does not repeat stays as it was."""
    async with site(shop) as place:
        shop.answers = [fresh()]
        assert await go(place, shop.keep(place, lasts_s=-1, resource=place.url)) == "gone"
        (asked,) = renewals(place)
        assert asked.body == {
            "grant_type": "refresh_token", "refresh_token": "again", "resource": place.url, "client_id": "me",
        }  # fmt: skip
        assert asked.headers["authorization"] == "Basic bWU6aHVzaA=="
        login = shop.kept(place)
        assert login is not None and (login.access, login.refresh, login.scope) == ("new", "again", "some")


@pytest.mark.parametrize(("method", "secret"), [("client_secret_post", "hush"), ("none", "")])
async def test_a_client_shows_itself_as_it_was_registered(shop: Shop, method: str, secret: str) -> None:
    """U7: in the form, or only by its name."""
    async with site(shop) as place:
        shop.answers = [fresh()]
        await go(place, shop.keep(place, lasts_s=-1, client=OAuthClient("me", secret, method)))
        (asked,) = renewals(place)
        assert (asked.body["client_id"], asked.body.get("client_secret", "")) == ("me", secret)
        assert "authorization" not in asked.headers


async def test_who_stops_waiting_does_not_lose_the_new_token(shop: Shop) -> None:
    """U7: the old refresh token may count no more when a call is cancelled in the middle."""
    async with site(shop) as place:
        access, shop.gate, shop.answers = shop.keep(place, lasts_s=-1), asyncio.Event(), [fresh()]
        waiting = asyncio.create_task(access.token())
        await shop.asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        shop.gate.set()
        await access.close()
        assert await access.token() == "new"
        login = shop.kept(place)
        assert login is not None and login.access == "new"


@pytest.mark.parametrize("status", [503, 429, 302])
async def test_a_renewal_that_cannot_be_had_now_ends_nothing(shop: Shop, status: int) -> None:
    """U7, E2: the call may be tried again, the login stays, and the authorization server is not hammered."""
    async with site(shop) as place:
        access, shop.answers = shop.keep(place, lasts_s=-1), [(status, {"error": "busy"})]
        for _ in range(3):
            with pytest.raises(ToolError, match="could not be renewed now") as told:
                await access.token()
            assert (told.value.category, told.value.retryable) == ("unavailable", True)
        assert len(renewals(place)) == 1
        assert access.state == "logged in"


async def test_a_token_that_still_counts_is_used_while_no_other_can_be_had(shop: Shop) -> None:
    """U7: it is renewed before its end, so that there is time for a second attempt."""
    async with site(shop) as place:
        access, shop.answers = (
            shop.keep(place, lasts_s=tokens.RENEW_EARLY_S / 2),
            [(500, {"error": "busy"})],
        )
        assert await access.token() == "old"
        assert len(renewals(place)) == 1


@pytest.mark.parametrize("body", [b"[]", b"\xff", b'{"token_type": "bearer"}'])
async def test_an_answer_that_is_no_token_is_told(shop: Shop, body: bytes) -> None:
    """U7: it is not taken for one."""

    async def answer(_: Asked, reply: Reply) -> None:
        await reply.status(200, body)

    async with site(answer) as place:
        with pytest.raises(ToolError, match="no token"):
            await shop.keep(place, lasts_s=-1).token()


@pytest.mark.parametrize(("why", "is_known"), [("invalid_grant", True), ("invalid_client", False)])
async def test_a_login_that_is_over_is_not_tried_again(shop: Shop, why: str, is_known: bool) -> None:
    """U7: its tokens are forgotten; the registration too, if that is what was wrong."""
    async with site(shop) as place:
        access, shop.answers = shop.keep(place, lasts_s=-1), [(400, {"error": why})]
        for _ in range(3):
            with pytest.raises(ToolError, match=r"the last one is over: run `afoot servers login shop`"):
                await access.token()
        assert len(renewals(place)) == 1
        login = shop.kept(place)
        assert login is not None and (login.access, login.refresh) == ("", "")
        assert (login.client == ME, access.state) == (is_known, "needed")


async def test_a_server_that_refuses_what_was_just_renewed_is_left_alone(shop: Shop) -> None:
    """U7: a login that cannot help is not renewed with every call."""
    async with site(shop) as place:
        access, shop.answers = shop.keep(place), [fresh()]
        shop.right = "none of these"
        assert await access.replacement("old") == "new"
        assert await access.replacement("new") == ""
        assert len(renewals(place)) == 1


async def test_what_another_process_renewed_is_used(shop: Shop) -> None:
    """U7: two gateways share one login; the slower one's refusal is no end of it."""
    async with site(shop) as place:
        access, shop.gate = shop.keep(place, lasts_s=-1), asyncio.Event()
        shop.answers = [(400, {"error": "invalid_grant"})]
        waiting = asyncio.create_task(access.token())
        await shop.asked.wait()
        shop.keep(place, access="theirs", refresh="their refresh")
        shop.gate.set()
        assert await waiting == "theirs"
        assert await access.replacement("theirs-before") == "theirs"


async def test_who_logged_out_meanwhile_stays_out(shop: Shop) -> None:
    """U7: a renewal under way brings nothing back."""
    async with site(shop) as place:
        access, shop.gate, shop.answers = shop.keep(place, lasts_s=-1), asyncio.Event(), [fresh()]
        waiting = asyncio.create_task(access.token())
        await shop.asked.wait()
        assert shop.store.clear(NAME)
        shop.gate.set()
        await waiting
        assert (shop.kept(place), await access.token(), access.state) == (None, "", "")


async def test_a_full_disk_costs_only_the_next_start(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """U7: what is renewed is used, and it is told that it could not be kept."""
    async with site(shop) as place:
        access, shop.answers = shop.keep(place, lasts_s=-1), [fresh()]

        def full(*_: object) -> None:
            raise CallerError("no space left")

        monkeypatch.setattr(tokens.state_folder, "write_private", full)
        assert [await access.token(), await access.token()] == ["new", "new"]
        assert len(renewals(place)) == 1


async def test_more_than_the_login_allows_is_wanted_until_there_is_another(shop: Shop) -> None:
    """U7: other calls go on; what was wanted is known when somebody logs in."""
    async with site(shop) as place:
        access = shop.keep(place)
        with pytest.raises(ToolError, match="more than its login allows: run `afoot servers login raw`"):
            await go(place, access, more=True)
        assert await go(place, access) == "gone"
        assert access.challenge is not None and access.challenge.is_step
        assert access.state == "needed"
        shop.keep(place, scope="some more")
        assert access.state == "logged in"


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xff", b'{"access": "x"}'])
async def test_a_file_that_cannot_be_read_is_no_login(shop: Shop, data: bytes) -> None:
    """U7: somebody has to log in anew, and nothing else happens."""
    async with site(shop) as place:
        access = shop.keep(place)
        (file,) = shop.folder.iterdir()
        file.write_bytes(data)
        assert (await access.token(), access.state) == ("", "")


def test_names_of_servers_never_meet_in_a_file(tmp_path: Path) -> None:
    """S4: odd and long names, and one server's login is cleared without another's."""
    store = LoginStore(tmp_path)
    names = ["a", "a-b", "A", "a/b", "..", "*", "ä" * 200, "ä" * 201]
    for name in names:
        store.write(name, StoredLogin("http://x", access=name))
        store.write(name, StoredLogin("http://y", access=name))
    assert store.clear("a") and not store.clear("a")
    for name in names[1:]:
        login = store.read(name, "http://x")
        assert login is not None and login.access == name
    assert len(list(tmp_path.iterdir())) == 2 * len(names) - 2
    assert json.decode(next(tmp_path.iterdir()).read_bytes())
