"""An issuer on its bad days: it says rubbish, or nothing at all."""

import asyncio

import pytest

from afoot.config.tables import AccessSettings
from afoot.serve.access.jwt import FETCH_INTERVAL_S, JwtIssuer
from afoot.serve.access.principal import Denied
from tests.serve.access.test_jwt import ISSUER, KEYS, NOW, RESOURCE, Issuer, check, token


@pytest.mark.parametrize("page", ["keys", ".well-known/oauth-authorization-server/realm"])
def test_what_an_issuer_publishes_may_be_nested_without_end(page: str) -> None:
    """S2: rubbish is rubbish, and no fault of the token."""
    issuer = Issuer()

    async def fetch(url: str) -> bytes:
        return b'{"keys":' + b"[" * 100_000 if url.endswith(page) else await issuer.fetch(url)

    gate = JwtIssuer(AccessSettings(issuer=ISSUER), RESOURCE, fetch, lambda: NOW)
    with pytest.raises(Denied, match="cannot be had") as denied:
        check(gate, token())
    assert denied.value.status == 503


def test_an_issuer_that_hangs_is_waited_for_once() -> None:
    """S2: whoever came meanwhile has the same answer, and does not wait for the next one."""
    issuer = Issuer()

    async def fetch(url: str) -> bytes:
        issuer.asked.append(url)
        await asyncio.sleep(0)
        issuer.time += 2 * FETCH_INTERVAL_S  # until somebody gave up
        raise OSError("no answer")

    gate = JwtIssuer(
        AccessSettings(issuer=ISSUER, jwks_url="https://login.example/keys"),
        RESOURCE,
        fetch,
        lambda: issuer.time,
    )

    async def together() -> list[object]:
        asked = (gate.check(token(exp=NOW + 9999)) for _ in range(5))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    answers = asyncio.run(together())
    assert [isinstance(one, Denied) and one.status for one in answers] == [503] * 5
    assert len(issuer.asked) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"kty": "RSA", "alg": "none", "n": "AQAB", "e": "AQAB", "kid": "bad"},
        {"kty": "RSA", "alg": ["RS256"], "n": "AQAB", "e": "AQAB", "kid": "bad"},
        {"kty": {"RSA": 1}, "kid": "bad"},
        {"kty": "EC", "crv": "P-256", "x": 5, "y": None, "kid": "bad"},
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA", "kid": "bad"},
        {**KEYS[1], "kid": "one"},  # pyrefly: ignore[invalid-argument]
    ],
)
def test_one_bad_key_costs_no_other(bad: dict[str, object]) -> None:
    """S2: whatever is wrong with a key, and whoever's id it has, the tokens of the others count."""
    for keys in ([bad, KEYS[0]], [KEYS[0], bad]) if bad["kid"] == "bad" else ([KEYS[0], bad],):
        issuer = Issuer()
        issuer.pages["https://login.example/keys"] = {"keys": keys}
        assert check(issuer.gate(), token()).caller == "oauth:ada"
