"""Where the requests of a login may go: a hostile server leads the gateway to no address of its choice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from afoot.config.settings import Server
from afoot.errors import ToolError
from afoot.providers.upstream.oauth.endpoint_guard import (
    EndpointGuard,
    GuardedTransport,
    UnsafeEndpoint,
    network_of,
)
from afoot.providers.upstream.oauth.login import OAuthLoginRequest, log_in
from afoot.providers.upstream.oauth.tokens import AuthChallenge, LoginStore, StoredLogin, TokenSource
from tests.providers.upstream.raw_http_server import Asked, Reply, Site, site

PUBLIC, PRIVATE, HERE = "https://tools.example/mcp", "https://tools.corp/mcp", "http://127.0.0.1:9000/mcp"
HOSTS = {
    "tools.example": ["93.184.215.14"],
    "login.example": ["93.184.215.15", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
    "both.example": ["93.184.215.16", "10.0.0.9"],
    "tools.corp": ["10.0.0.1"],
    "login.corp": ["10.0.0.2"],
    "localhost": ["127.0.0.1", "::1"],
    "rebound.example": ["127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
}


async def resolved(host: str) -> Sequence[str]:
    """The addresses in the table, or the host itself, which is one then."""
    return HOSTS.get(host) or [host]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.9.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("10.1.2.3", "private"),
        ("100.64.0.1", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("fd00::1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("0.0.0.0", "special"),
        ("::", "special"),
        ("169.254.169.254", "special"),
        ("fe80::1%eth0", "special"),
        ("224.0.0.1", "special"),
        ("255.255.255.255", "special"),
        ("93.184.215.14", "public"),
        ("2606:4700::1", "public"),
    ],
)
def test_every_address_has_a_network(address: str, network: str) -> None:
    """U7, S4: also one that stands inside another."""
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (PUBLIC, "https://login.example/token"),
        (PUBLIC, "https://tools.example:8443/token"),
        (PRIVATE, "https://login.corp/token"),
        (PRIVATE, "https://login.example/token"),
        (HERE, "http://127.0.0.1:9001/token"),
        (HERE, "http://localhost:9001/token"),
        (HERE, "https://login.example/token"),
        ("http://tools.corp/mcp", "http://tools.corp/token"),
    ],
)
async def test_a_login_goes_to_the_internet_and_to_the_network_of_its_server(server: str, url: str) -> None:
    """U7: an authorization server of another company, of one's own network, or on this machine."""
    assert await EndpointGuard(server, resolve=resolved).check(url)


@pytest.mark.parametrize(
    ("server", "url", "why"),
    [
        (PUBLIC, "http://login.example/token", "is not https"),
        (PUBLIC, "https://login.corp/token", "is not on the public internet .private."),
        (PUBLIC, "https://both.example/token", "is not on the public internet .private."),
        (PUBLIC, "https://rebound.example/token", "is not on the public internet .loopback."),
        (PUBLIC, "http://127.0.0.1:8080/", "is not on the public internet .loopback."),
        (PUBLIC, "https://169.254.169.254/latest/meta-data", "is not on the public internet .special."),
        (PRIVATE, "http://localhost:8080/", "is not on the public internet .loopback."),
        (PRIVATE, "https://metadata.example/", "is not on the public internet .special."),
        (PRIVATE, "http://login.corp/token", "is not https"),
        (HERE, "https://login.corp/token", "is not on the public internet .private."),
        (HERE, "http://0.0.0.0:9001/", "is not https"),
        (HERE, "file:///etc/passwd", "is no address of a web server"),
        (HERE, "javascript://localhost/%0aalert(1)", "is no address of a web server"),
        (HERE, "https:///token", "is no address of a web server"),
    ],
)
async def test_no_other_address_is_reached(server: str, url: str, why: str) -> None:
    """U7, S4: RFC 9728, 7.7, and the security practices of MCP; the error shows no path and no user."""
    with pytest.raises(UnsafeEndpoint, match=why) as caught:
        await EndpointGuard(server, resolve=resolved).check(url)
    assert "token" not in str(caught.value) and "meta-data" not in str(caught.value)


async def test_a_host_that_the_settings_name_may_be_anywhere() -> None:
    """U7: `auth_hosts`; https is needed all the same."""
    guard = EndpointGuard(PUBLIC, ["Login.corp"], resolved)
    assert await guard.check("https://login.corp/token") == ["10.0.0.2"]
    with pytest.raises(UnsafeEndpoint, match="is not https"):
        await guard.check("http://login.corp/token")


async def test_a_proxy_resolves_names_and_numbers_are_checked_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """U7: where the environment names a proxy, names mean nothing here."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:3128")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:3128")
    guard = EndpointGuard(PUBLIC, resolve=resolved)
    assert await guard.check("https://login.corp/token") == []
    for url in ("https://10.0.0.2/token", "https://[::1]/token", "https://localhost/token"):
        with pytest.raises(UnsafeEndpoint, match="is not on the public internet"):
            await guard.check(url)


@asynccontextmanager
async def canary() -> AsyncIterator[tuple[Site, list[str]]]:
    """A web server on loopback, and the paths that it was asked for."""
    asked: list[str] = []

    async def answer(request: Asked, reply: Reply) -> None:
        asked.append(request.path)
        await reply.status(404)

    async with site(answer) as place:
        yield place, asked


async def test_a_connection_goes_to_the_address_that_was_checked() -> None:
    """U7: a name that means another address a moment later (DNS rebinding) reaches that one no more."""
    async with canary() as (place, asked):
        port = httpx2.URL(place.url).port
        meanings = iter([["127.0.0.1"], ["10.0.0.1"]])

        async def rebound(host: str) -> Sequence[str]:
            return next(meanings)

        transport = GuardedTransport(EndpointGuard(f"http://rebound.test:{port}/mcp", resolve=rebound))
        async with httpx2.AsyncClient(transport=transport) as web:
            answer = await web.get(f"http://rebound.test:{port}/here")
        assert (answer.status_code, asked) == (404, ["/here"])
        assert str(answer.request.url) == f"http://rebound.test:{port}/here"


@pytest.mark.parametrize("where", ["metadata", "redirect"])
async def test_a_hostile_server_leads_a_login_to_no_service_on_this_machine(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U7, S4: neither by the address of its metadata nor by a redirect from there."""
    async with canary() as (place, asked):
        target = f"{place.url.rsplit('/', 1)[0]}/admin"

        async def sent(self: GuardedTransport, request: httpx2.Request) -> httpx2.Response:
            await self._guard.check(str(request.url))
            if "tools.example" in str(request.url):
                return httpx2.Response(302, headers={"location": target}, request=request)
            return await httpx2.AsyncHTTPTransport().handle_async_request(request)

        monkeypatch.setattr(GuardedTransport, "handle_async_request", sent)
        monkeypatch.setattr("afoot.providers.upstream.oauth.endpoint_guard.resolve_host", resolved)
        first = target if where == "metadata" else "https://tools.example/metadata"
        challenge = AuthChallenge(401, f'Bearer resource_metadata="{first}"')
        request = OAuthLoginRequest("evil", Server(url=PUBLIC, auth="oauth"), challenge)
        with pytest.raises(ToolError, match="server evil: the login failed"):
            await asyncio.wait_for(log_in(request, print), 20)
    assert not asked


async def test_a_renewal_is_checked_as_well_and_its_answer_is_bounded(tmp_path: Path) -> None:
    """U7, S4: the address was stored at the login, and may mean another one since."""
    store = LoginStore(tmp_path)
    asked: list[str] = []

    async def answer(request: Asked, reply: Reply) -> None:
        asked.append(request.path)
        await reply.status(200, b" " * (2 * 1024 * 1024))

    async with site(answer) as place:
        endpoint = f"{place.url.rsplit('/', 1)[0]}/token"
        for url, why in ((PUBLIC, "is not on the public internet"), (place.url, "ResponseTooLarge")):
            store.write("shop", StoredLogin(url, "access", "refresh", until=1.0, token_url=endpoint))
            source = TokenSource("shop", url, store)
            with pytest.raises(ToolError, match=f"could not be renewed now: .*{why}"):
                await source.token()
    assert asked == ["/token"]
