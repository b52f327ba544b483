"""Targets for texts that clients bring back or are trusted by: sealed states, positions, tokens, proofs."""

import asyncio
import json as plain_json
from base64 import urlsafe_b64encode

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from afoot.config.tables import AccessSettings
from afoot.serve.access.jwt import JwtIssuer
from afoot.serve.access.principal import Denied
from afoot.serve.mcp.tasks import tasks_2025
from afoot.wire import gateway_proof, sealed_state
from afoot.wire.jsonrpc import Fault
from afoot.wire.sealed_state import LookupState, RequestState, ResumePosition, SessionTicket
from tests.attack.fuzz.target import Target, as_text, from_deeper

KEY = b"k" * 32
NOW = 1_800_000_000.0
ISSUER = "https://login.example/realm"
RESOURCE = "https://gate.example/mcp"
# A fixed key, so that seeds and findings stay what they are.
SIGNING_KEY = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
JWKS = plain_json.dumps(
    {"keys": [{**OKPAlgorithm.to_jwk(SIGNING_KEY.public_key(), as_dict=True), "kid": "one", "alg": "EdDSA"}]}
).encode()
METADATA = plain_json.dumps({"issuer": ISSUER, "jwks_uri": "https://login.example/keys"}).encode()
CLAIMS = {"iss": ISSUER, "aud": RESOURCE, "sub": "me", "exp": NOW + 60, "scope": "call watch"}
CHALLENGE = gateway_proof.make_challenge("127.0.0.1:1", "secret", b"n" * 32)

REQUEST_STATE = sealed_state.seal(RequestState("c1", 1, "local", "d", NOW + 1, 2, NOW), KEY)
LOOKUP_STATE = sealed_state.seal_lookup_state(LookupState("s", None, "local", "d", NOW + 1), KEY)
TICKET = sealed_state.seal_session_ticket(SessionTicket("s", "local", NOW, "2025-11-25", "c", {}), KEY)
GENUINE = (REQUEST_STATE, LOOKUP_STATE, TICKET)


def sealed_states(data: bytes) -> None:
    """A `requestState` or a session id: none is accepted but one that we sealed, to the byte."""
    text = as_text(data)
    for unseal in (sealed_state.unseal_request_state, sealed_state.unseal_lookup_state):
        try:
            unseal(text, KEY, NOW)
        except Fault:
            continue
        assert text in GENUINE, "a state that we did not seal was accepted"
    if sealed_state.unseal_session_ticket(text, KEY) is not None:
        assert text == TICKET, "a session that we did not open was accepted"


def positions(data: bytes) -> None:
    """A `Last-Event-ID` of the handshake era, and the cursor of a list of tasks."""
    text = as_text(data)
    position = sealed_state.read_resume_position(text)
    if position is not None:
        assert sealed_state.read_resume_position(position.event_id(position.seq)) == position
    try:
        at = tasks_2025._read_cursor(text)
    except Fault:
        return
    assert tasks_2025._write_cursor(at) == text


def access_tokens(data: bytes) -> None:
    """An access token of a trusted issuer: only one that it signed counts."""
    principal = asyncio.run(_check(data, METADATA, JWKS))
    assert principal is None or data in SIGNED, "a token that the issuer did not sign was accepted"


def issuer_pages(data: bytes) -> None:
    """The metadata and the keys that an issuer publishes, each in turn."""
    for metadata, keys in ((data, JWKS), (METADATA, data)):
        from_deeper(lambda metadata=metadata, keys=keys: asyncio.run(_check(GOOD_TOKEN, metadata, keys)))


def proofs(data: bytes) -> None:
    """A gateway's proof that it knows a secret, made by another server on its port."""
    assert not from_deeper(lambda: CHALLENGE.is_met(data)) or RIGHT_MAC.encode() in data


async def _check(token: bytes, metadata: bytes, keys: bytes) -> str | None:
    async def fetch(url: str) -> bytes:
        return keys if url.endswith("/keys") else metadata

    issuer = JwtIssuer(AccessSettings(issuer=ISSUER), RESOURCE, fetch, lambda: NOW)
    try:
        return (await issuer.check(token)).caller
    except Denied:
        return None


def _token(**changed: object) -> bytes:
    return jwt.encode({**CLAIMS, **changed}, SIGNING_KEY, "EdDSA", {"kid": "one"}).encode()


GOOD_TOKEN = _token()
SIGNED = (GOOD_TOKEN, _token(exp=1), _token(exp="x"), _token(sub="a b"), _token(scp=["call", 5], scope=None))
RIGHT_MAC = gateway_proof.proof_mac(CHALLENGE.digest, CHALLENGE.host, CHALLENGE.nonce)
_UNSIGNED = b".".join(
    urlsafe_b64encode(part).rstrip(b"=")
    for part in (b'{"alg":"none","kid":"one"}', plain_json.dumps(CLAIMS).encode(), b"")
)

TARGETS = (
    Target(
        "sealed_states",
        sealed_states,
        (*(one.encode() for one in GENUINE), GENUINE[0].encode() + b"="),
        (b"A", b"=", b"-", b"_", b"+", b"/"),
    ),
    Target(
        "positions",
        positions,
        (
            ResumePosition("e", "c", 1, 1).event_id(5).encode(),
            ResumePosition("e", "c", 1, "a", "t", True).event_id(5).encode(),
            b"1.5:c",
            b"e:5",
        ),
        (b".", b":", b"W10", b"1e5:", b"inf:", b"nan:c"),
    ),
    Target(
        "access_tokens",
        access_tokens,
        (*SIGNED, _UNSIGNED),
        (b"eyJhbGciOiJub25lIn0", b".", b"=="),
        examples=40,
        is_quick=False,
    ),
    Target(
        "issuer_pages",
        issuer_pages,
        (METADATA, JWKS, b'{"keys":[{"kty":"oct","k":"YQ","kid":"one"}]}'),
        (b'"kty":"RSA"', b'"n":"AQAB"', b'"crv":"P-256"', b'"use":"enc"', b'"jwks_uri":'),
        examples=40,
        is_quick=False,
    ),
    Target("proofs", proofs, (plain_json.dumps({"mac": RIGHT_MAC}).encode(), b'{"mac":""}'), (b'"mac":',)),
)
