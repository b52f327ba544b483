"""Who may speak to which surface: hosts, origins, sites and secrets, one by one and over HTTP."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from afoot.serve.access.guard import Denied, Guard, accepted_hosts
from afoot.serve.access.principal import Principal
from afoot.serve.mcp.asgi import Scope
from tests.serve.fake_gateway import TOKEN, faked, nap, site_of
from tests.serve.raw_transports import HOST, Web, modern

GUARD = Guard(accepted_hosts(23668, ["Gateway.example:8080"]), frozenset(["https://app.example"]), "", TOKEN)
OPERATOR = {"host": HOST, "authorization": f"Bearer {TOKEN}"}


def scope(**headers: str) -> Scope:
    """A request with these headers."""
    return {"headers": [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]}


def operator(guard: Guard, asked: Scope) -> Principal:
    """Who asks at the operator's API."""
    return asyncio.run(guard.identify_operator(asked))


@pytest.mark.parametrize(
    "host", [HOST, "localhost:23668", "LOCALHOST:23668", "[::1]:23668", "gateway.example:8080"]
)
def test_our_own_names_with_the_port_mean_us(host: str) -> None:
    """S1: loopback by its three names, and what was allowed, in any case."""
    for check in (GUARD.check_mcp, GUARD.check_public):
        check(scope(host=host))
    operator(GUARD, scope(**{**OPERATOR, "host": host, "origin": f"http://{host}"}))


@pytest.mark.parametrize(
    "host",
    ["", "localhost", "127.0.0.1:1", "evil.example:23668", "127.0.0.1:23668.evil.example", "x@" + HOST],
)
def test_any_other_host_is_turned_away_everywhere(host: str) -> None:
    """S1: a name that was rebound to us is not ours."""
    for check in (GUARD.check_mcp, GUARD.check_public, partial(operator, GUARD)):
        with pytest.raises(Denied, match="allow_hosts") as denied:
            check(scope(**{**OPERATOR, "host": host}) if host else scope())
        assert denied.value.status == 421


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, None),
        ({"origin": f"http://{HOST}"}, None),
        ({"sec_fetch_site": "same-origin"}, None),
        ({"sec_fetch_site": "none"}, None),
        ({"origin": "https://app.example"}, 403),  # allowed on /mcp alone
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"authorization": "Bearer caf\xe9"}, 401),
    ],
)
def test_the_operators_surface_needs_its_secret_and_our_own_page(
    changes: dict[str, str], status: int | None
) -> None:
    """S1: always a secret; an origin or a site, where there is one, is ours."""
    sent = scope(**{**OPERATOR, **changes})
    if status is None:
        operator(GUARD, sent)
        return
    with pytest.raises(Denied) as denied:
        operator(GUARD, sent)
    assert denied.value.status == status and TOKEN not in str(denied.value)


def test_an_empty_secret_opens_nothing() -> None:
    """S1: a gateway without a token has no operator's surface."""
    bare = Guard(accepted_hosts(23668, []), frozenset())
    for sent in ("", "Bearer ", "Bearer x"):
        with pytest.raises(Denied):
            operator(bare, scope(host=HOST, authorization=sent))
    bare.check_mcp(scope(host=HOST))


@faked
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": f"http://{HOST}"}, 200),
        ({"origin": "https://app.example"}, 200),
        ({"sec_fetch_site": "cross-site"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_only_our_own_hosts_and_allowed_origins_are_served(
    headers: dict[str, str], status: int
) -> None:
    """S1: exact, with the port; nothing of a page elsewhere reaches a tool."""
    async with site_of(nap) as gateway:
        done = await Web(gateway, origins=["https://app.example"]).ask(modern("tools/list"), **headers)
    assert done.status == status


@faked
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("", 401),
        ("Bearer wrong", 401),
        ("Bearer secret", 200),
        ("bearer secret", 200),
        (f"Bearer {TOKEN}", 200),
    ],
)
async def test_a_token_that_was_set_is_needed(sent: str, status: int) -> None:
    """S1: that of `/mcp`, or the operator's."""
    async with site_of(nap) as gateway:
        done = await Web(gateway, mcp_token="secret").ask(modern("tools/list"), authorization=sent)
    assert done.status == status


@faked
@pytest.mark.parametrize(
    ("sent", "status"),
    [("", 200), ("Bearer ", 200), ("Basic x", 200), (f"Bearer {TOKEN}", 200), ("Bearer x", 401)],
)
async def test_who_claims_to_be_somebody_is_not_taken_for_somebody_else(sent: str, status: int) -> None:
    """S3: a token that counts for nothing is refused also where none is needed."""
    async with site_of(nap) as gateway:
        done = await Web(gateway).ask(modern("tools/list"), authorization=sent)
    assert done.status == status
    if status == 401:
        assert "none is needed" in done.messages[0]["error"]["message"]


@faked
@pytest.mark.parametrize(
    ("sent", "told"),
    [("", "Bearer"), ("Basic x", "Bearer"), ("Bearer wrong", 'Bearer error="invalid_token"')],
)
async def test_a_challenge_says_whether_the_token_is_what_was_wrong(sent: str, told: str) -> None:
    """S2: a client that sent none has none to throw away (RFC 6750)."""
    async with site_of(nap) as gateway:
        done = await Web(gateway, mcp_token="secret").ask(modern("tools/list"), authorization=sent)
    assert (done.status, done.headers["www-authenticate"]) == (401, told)


@pytest.mark.parametrize("name", ["host", "origin", "sec-fetch-site"])
@pytest.mark.parametrize("check", [GUARD.check_mcp, GUARD.check_public])
def test_a_header_that_stands_twice_is_refused_although_the_first_is_ours(
    name: str, check: Callable[[Scope], None]
) -> None:
    """S1: a foreign origin does not come in behind one of ours."""
    ours = {"host": HOST, "origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    sent = [(key.encode(), value.encode()) for key, value in ours.items()]
    check({"headers": sent})
    if name == "sec-fetch-site" and check == GUARD.check_mcp:
        return  # pages of other sites may use /mcp, if their origin is allowed
    with pytest.raises(Denied, match=f"{name}: stands more than once") as denied:
        check({"headers": [*sent, (name.encode(), b"https://evil.example")]})
    assert denied.value.status == 400


def test_two_tokens_are_as_bad_as_none() -> None:
    """S2: whoever stands in front of us may have looked at the other one."""
    name = (b"authorization", f"Bearer {TOKEN}".encode())
    twice: Scope = {"headers": [(b"host", HOST.encode()), name, name]}
    for asked in (GUARD.identify_operator(twice), GUARD.identify_caller(twice)):
        with pytest.raises(Denied, match="more than once") as denied:
            asyncio.run(asked)
        assert denied.value.status == 400
