"""A login behind a real gateway: made through the API, used by an official client, kept, renewed (U7)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, serving, until
from tests.e2e.official_client import ERAS, Peer, Seen, failure, peers, text
from tests.providers.upstream.oauth_server import Office, browse, open_shop
from tests.serve.api_client import Api

LOGIN, LOGOUT = "/api/servers/shop/login", "/api/servers/shop/logout"


@pytest.fixture
def office() -> Iterator[Office]:
    """An authorization server, and a shop."""
    with open_shop() as opened:
        yield opened


@pytest.fixture
def settings(office: Office, tmp_path: Path) -> dict[str, object]:
    """A config that names the shop."""
    file = tmp_path / "afoot.toml"
    file.write_text(f'[servers.shop]\nurl = "{office.url}/mcp"\nauth = "oauth"\n')
    return {"config": file, "progress_hz": 0}


@pytest.fixture
def gateway(tmp_path: Path, settings: dict[str, object]) -> Iterator[Gateway]:
    """A gateway in front of it."""
    with serving(tmp_path, settings) as started:
        yield started


def log_in(api: Api) -> str:
    """Log in as a person at the console does; the address that was given."""
    begun = api.post(LOGIN, {})
    assert (begun.status, begun.body["state"]) == (202, "waiting"), begun
    assert browse(begun.body["url"])[0] == 200
    assert api.get(LOGIN).body == {"state": "done", "url": begun.body["url"], "error": ""}
    return str(begun.body["url"])


@pytest.mark.parametrize("era", ERAS)
def test_an_official_client_calls_with_progress_what_needs_a_login(gateway: Gateway, era: str) -> None:
    """U7, P1, T1: the host knows nothing of it; what it gets says what to do, or is the result."""
    api = Api(gateway)
    with peers({"http": gateway}) as clients:
        assert api.get("/api/servers/shop").body["login"] == "needed"
        log_in(api)
        peer, seen = clients("http", era), Seen()
        assert text(peer.call("count", seen, n=3)) == "3"
        until(lambda: len(seen) >= 3, "three reports")
        assert [one[0] for one in seen] == [1, 2, 3]
        assert api.post(LOGOUT, {}).body == {"server": "shop", "had_login": True}
        check_needed(peer)
        assert api.post(LOGOUT, {}).body == {"server": "shop", "had_login": False}


def check_needed(peer: Peer) -> None:
    """A call ends at once and names the command."""
    result = peer.call("count", n=3)
    assert failure(result)["category"] == "auth"
    assert "run `afoot servers login shop`" in text(result)


def test_a_new_gateway_renews_what_an_old_one_left(
    office: Office, settings: dict[str, object], tmp_path: Path
) -> None:
    """U7: tokens that ended meanwhile are renewed where they came from; nobody is asked."""
    office.lives_s = 300
    with serving(tmp_path, settings) as gateway:
        log_in(Api(gateway))
    office.revoke(refresh=False)
    with serving(tmp_path, settings) as gateway, peers({"http": gateway}) as clients:
        peer = clients("http", "2026-07-28")
        assert text(peer.call("count", n=3)) == "3"
        assert office.renewals and len(office.asked) == 1
        office.revoke()
        check_needed(peer)
        assert Api(gateway).get("/api/servers/shop").body["login"] == "needed"


def test_nothing_secret_is_in_the_api_the_history_or_the_log(gateway: Gateway, office: Office) -> None:
    """S4, U7: neither tokens nor codes; the address for the browser has none."""
    api = Api(gateway)
    url = log_in(api)
    call = api.start("whoami")
    pages = ["/api/servers", "/api/servers/shop", LOGIN, "/api/tools", "/api/calls", f"/api/calls/{call}"]
    said = [url, gateway.said(), *(str(api.get(page).body) for page in pages)]
    said.append(str(api.get("/api/servers/shop/logs").body))
    secrets = {*office.tokens, *office.refreshes, *(one.client_secret for one in office.clients.values())}
    assert len(secrets) == 3
    for secret in secrets:
        assert secret is not None and not any(secret in one for one in said)


def test_what_is_wrong_with_a_request_is_said(gateway: Gateway, office: Office) -> None:
    """E5: unknown names, unknown fields, a port that is taken, a server that takes no login."""
    api = Api(gateway)
    assert api.post("/api/servers/shopp/login", {}).error["nearest"] == ["shop"]
    assert api.post("/api/servers/shopp/logout", {}).status == 404
    assert api.post(LOGIN, {"port": "x"}).status == api.post(LOGIN, {"prot": 1}).status == 422
    assert api.get(LOGIN).error["message"] == "nobody is logging in to server shop"
    taken = int(office.url.rpartition(":")[2])
    answer = api.post(LOGIN, {"port": taken})
    assert (answer.status, "cannot be used" in answer.error["message"]) == (422, True)
