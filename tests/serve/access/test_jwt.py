"""Access tokens of an issuer: only what it signed for us, now, with a key that it publishes, counts."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from afoot.config.tables import AccessSettings
from afoot.serve.access.jwt import EXPIRY_GRACE_S, FETCH_INTERVAL_S, KEYS_MAX_AGE_S, LEEWAY_S, JwtIssuer
from afoot.serve.access.principal import Denied, Principal

ISSUER = "https://login.example/realm"
RESOURCE = "https://gate.example/mcp"
NOW = 1_800_000_000.0
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def published(key: Any, name: str, algorithm: Callable[..., Any], **more: Any) -> dict[str, Any]:
    """A public key as it is published."""
    return {**algorithm(key.public_key(), as_dict=True), "kid": name, **more}


KEYS = [
    published(RSA, "one", RSAAlgorithm.to_jwk, alg="RS256"),
    published(CURVE, "two", ECAlgorithm.to_jwk),
    {"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"},
    {"kty": "strange", "kid": "odd"},
    "rubbish",
]


class Issuer:
    """The issuer's pages, and how often they were asked for."""

    def __init__(self) -> None:
        self.time = NOW
        self.asked: list[str] = []
        self.pages: dict[str, Any] = {
            "https://login.example/.well-known/oauth-authorization-server/realm": {
                "issuer": ISSUER, "jwks_uri": "https://login.example/keys",
            },
            "https://login.example/keys": {"keys": KEYS},
        }  # fmt: skip

    async def fetch(self, url: str) -> bytes:
        """A page of it."""
        self.asked.append(url)
        if url not in self.pages:
            raise OSError("404")
        return json.dumps(self.pages[url]).encode()

    def gate(self, jwks_url: str = "") -> JwtIssuer:
        """A gateway that trusts it."""
        return JwtIssuer(
            AccessSettings(issuer=ISSUER, jwks_url=jwks_url), RESOURCE, self.fetch, lambda: self.time
        )


def token(key: Any = RSA, name: str = "one", algorithm: str = "RS256", **claims: Any) -> bytes:
    """A token that is good, but for what is said; a claim that is None is left out."""
    usual = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": NOW + 60, "scope": "afoot:call other"}
    sent = {key: value for key, value in {**usual, **claims}.items() if value is not None}
    return jwt.encode(sent, key, algorithm, headers={"kid": name}).encode()


def check(gate: JwtIssuer, sent: bytes) -> Principal:
    """Whose token it is."""
    return asyncio.run(gate.check(sent))


def test_a_good_token_tells_who_and_what() -> None:
    """S2, S3: the subject is the caller; of its scopes, those that are ours count."""
    found = check(Issuer().gate(), token())
    assert (found.caller, found.scopes) == ("oauth:ada", {"call"})
    assert found.until == NOW + 60 + LEEWAY_S


def test_keys_of_either_kind_count() -> None:
    """S2: RSA and elliptic curves."""
    assert check(Issuer().gate(), token(CURVE, "two", "ES256", scp=["afoot:admin"], scope=None)).scopes == {
        "admin"
    }


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW - 31}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "soon"}, "exp"),
        ({"exp": 10**400}, "exp is no time"),
        ({"exp": float("nan")}, "exp is no time"),
        ({"nbf": -(10**400)}, "nbf is no time"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"iss": "https://other.example"}, "issuer"),
        ({"aud": "https://other.example/mcp"}, "[Aa]udience"),
        ({"aud": None}, "aud"),
        ({"sub": None}, "sub"),
    ],
)
def test_a_token_that_is_not_for_us_now_does_not_count(claims: dict[str, Any], why: str) -> None:
    """S2: and it is said why."""
    with pytest.raises(Denied, match=why) as denied:
        check(Issuer().gate(), token(**claims))
    assert denied.value.status == 401


def test_a_head_that_is_nested_too_deep_is_refused() -> None:
    """S2: no stranger makes us fail."""
    head = base64.urlsafe_b64encode(b"[" * 11_000).rstrip(b"=")
    with pytest.raises(Denied, match="cannot be read") as denied:
        check(Issuer().gate(), head + b".e30.x")
    assert denied.value.status == 401


def test_a_changed_token_does_not_count() -> None:
    """S2: its signature is of other words."""
    head, _, signature = token().split(b".")
    body = token(sub="eve").split(b".")[1]
    with pytest.raises(Denied, match="Signature"):
        check(Issuer().gate(), b".".join((head, body, signature)))


@pytest.mark.parametrize("sent", [b"", b"rubbish", b"a.b.c", b"\xff.\xff.\xff", b"x" * 20_000])
def test_rubbish_is_refused(sent: bytes) -> None:
    """S2: without asking anybody."""
    issuer = Issuer()
    with pytest.raises(Denied, match="cannot be read"):
        check(issuer.gate(), sent)
    assert issuer.asked == []


def test_what_a_secret_signed_does_not_count() -> None:
    """S2: neither a shared secret, nor a public key taken for one, nor nothing at all."""
    forged = jwt.encode({"sub": "eve"}, "secret" * 8, "HS256", headers={"kid": "shared"}).encode()
    with pytest.raises(Denied, match="no key 'shared'"):
        check(Issuer().gate(), forged)
    for algorithm, key in (("HS256", "x" * 32), ("none", "")):
        sent = jwt.encode({"sub": "eve"}, key, algorithm, headers={"kid": "one"}).encode()
        with pytest.raises(Denied, match="is not for"):
            check(Issuer().gate(), sent)


def test_keys_are_asked_for_once_and_again_when_one_is_new() -> None:
    """S2: an issuer that changes its keys needs no restart; strange tokens do not make us ask without end."""
    issuer = Issuer()
    gate = issuer.gate(jwks_url="https://login.example/keys")
    check(gate, token())
    check(gate, token())
    assert len(issuer.asked) == 1
    issuer.pages["https://login.example/keys"]["keys"] = [published(CURVE, "new", ECAlgorithm.to_jwk)]
    with pytest.raises(Denied, match="no key 'new'"):
        check(gate, token(CURVE, "new", "ES256"))
    issuer.time += FETCH_INTERVAL_S
    assert check(gate, token(CURVE, "new", "ES256")).caller == "oauth:ada"
    assert len(issuer.asked) == 2


def test_a_clock_that_was_set_back_keeps_nobody_from_new_keys() -> None:
    """S2: else they would not be asked for until the old time comes again."""
    issuer = Issuer()
    gate = issuer.gate(jwks_url="https://login.example/keys")
    check(gate, token())
    issuer.pages["https://login.example/keys"]["keys"] = [published(CURVE, "new", ECAlgorithm.to_jwk)]
    issuer.time -= 3600
    assert check(gate, token(CURVE, "new", "ES256")).caller == "oauth:ada"


def test_an_issuer_that_is_away_is_no_fault_of_the_token() -> None:
    """S2: the answer is that it cannot be checked now."""
    issuer = Issuer()
    issuer.pages.clear()
    with pytest.raises(Denied, match=r"login\.example.* cannot be had") as denied:
        check(issuer.gate(), token())
    assert denied.value.status == 503


def test_a_page_of_another_issuer_is_not_believed() -> None:
    """S2: whoever answers must say that it is the issuer."""
    issuer = Issuer()
    for page in issuer.pages.values():
        page["issuer"] = "https://eve.example"
    with pytest.raises(Denied, match="of another issuer|404"):
        check(issuer.gate(), token())


def test_a_strange_subject_becomes_a_plain_name() -> None:
    """S3: callers stand in lists and logs."""
    found = check(Issuer().gate(), token(sub="eve\n\x1b[2J" + "x" * 500))
    assert found.caller.startswith("oauth:sha256-") and len(found.caller) < 60


def test_clients_are_told_where_to_get_a_token() -> None:
    """S2: RFC 9728."""
    gate = Issuer().gate()
    assert gate.metadata_url == "https://gate.example/.well-known/oauth-protected-resource/mcp"
    told = gate.metadata()
    assert (told["resource"], told["authorization_servers"]) == (RESOURCE, [ISSUER])
    assert told["scopes_supported"] == ["afoot:call", "afoot:watch", "afoot:answer", "afoot:admin"]


def test_scopes_are_called_as_the_issuer_calls_them() -> None:
    """S2: a client that is told what is missing asks its issuer for it."""
    assert Issuer().gate().issuer_scope("call") == "afoot:call"


def test_a_key_that_is_published_no_more_counts_no_more() -> None:
    """S2: whoever stole it has it for minutes, not for ever."""
    issuer = Issuer()
    gate = issuer.gate(jwks_url="https://login.example/keys")

    async def later() -> Principal:
        await gate.check(token(exp=NOW + 9999))
        issuer.pages["https://login.example/keys"]["keys"] = KEYS[1:]
        issuer.time += KEYS_MAX_AGE_S
        for _ in range(10):  # the first may still come in, while the keys are asked for
            await gate.check(token(exp=NOW + 9999))
            await asyncio.sleep(0)
        raise AssertionError("it still counts")

    with pytest.raises(Denied, match="no key 'one'"):
        asyncio.run(later())


@pytest.mark.parametrize("page", [None, {"keys": []}, {}, "rubbish"])
def test_keys_that_cannot_be_had_again_are_kept(page: object) -> None:
    """S2: an issuer's bad hour is nobody's else."""
    issuer = Issuer()
    gate = issuer.gate(jwks_url="https://login.example/keys")

    async def later() -> None:
        await gate.check(token(exp=NOW + 9999))
        issuer.pages["https://login.example/keys"] = page
        if page is None:
            issuer.pages.clear()
        issuer.time += KEYS_MAX_AGE_S
        for _ in range(10):
            assert (await gate.check(token(exp=NOW + 9999))).caller == "oauth:ada"
            await asyncio.sleep(0)

    asyncio.run(later())
    assert len(issuer.asked) == 2


@pytest.mark.parametrize("url", ["http://login.example/keys", "file:///etc/passwd", ""])
def test_keys_are_not_read_from_where_anybody_could_change_them(url: str) -> None:
    """S2: whatever the issuer's page says."""
    issuer = Issuer()
    for page in issuer.pages.values():
        page["jwks_uri"] = url
    with pytest.raises(Denied, match="not be safe|404"):
        check(issuer.gate(), token())
    assert url not in issuer.asked


def test_nobody_can_be_called_as_the_digest_of_another() -> None:
    """S3: a subject that looks like one is none."""
    strange = check(Issuer().gate(), token(sub="ada lovelace")).caller
    copied = check(Issuer().gate(), token(sub=strange.removeprefix("oauth:"))).caller
    assert strange != copied and copied.startswith("oauth:sha256-")
    assert check(Issuer().gate(), token(sub="\ud800")).caller.startswith("oauth:sha256-")


def test_who_came_by_a_token_stays_until_its_end() -> None:
    """S2: and a moment longer, in which calls part from it."""
    issuer = Issuer()
    gate = issuer.gate()
    found = check(gate, token())
    issuer.time = found.until + EXPIRY_GRACE_S - 0.1
    assert gate.end_reason(found) == ""
    issuer.time += 0.2
    assert "has expired" in gate.end_reason(found)
