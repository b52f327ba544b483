"""The proof by which a gateway shows that it knows a secret, before a client sends that secret (S6).

Another user of the machine may listen at the port of a gateway that has ended. A client therefore asks first
with a nonce, and names the secret by `secret_id`, from which nobody learns it. The answer is `proof_mac`. Its
key is the digest of the secret, as the gateway stores nothing else of most secrets. It covers the host that
the client meant: a gateway signs only for its own hosts, so that nobody can pass on the question to it.
"""

import hmac
import re
from hashlib import sha256

from msgspec import DecodeError, Struct, json

PATH = "/api/proof"
NONCE_BYTES = 32
_LABEL = "afoot.proof.1"
_NONCE = re.compile(r"[0-9a-f]{64}")


class Proof(Struct, frozen=True):
    """The gateway's answer: an HMAC that only one who knows the secret can make."""

    mac: str


class Challenge(Struct, frozen=True):
    """A question that only the gateway at `host` can answer, which knows the secret with this digest."""

    host: str
    digest: str
    nonce: str

    @property
    def target(self) -> str:
        """Path and query of the request."""
        return f"{PATH}?key={secret_id(self.digest)}&nonce={self.nonce}"

    def is_met(self, body: bytes) -> bool:
        """Whether the body of a response is the proof."""
        try:
            given = json.decode(body, type=Proof).mac
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return False
        right = proof_mac(self.digest, self.host, self.nonce)
        return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())


def make_challenge(host: str, secret: str, nonce: bytes) -> Challenge:
    """A challenge; `host` is the Host header of the request, `nonce` are NONCE_BYTES random bytes."""
    return Challenge(host, secret_digest(secret.encode()), nonce.hex())


def secret_digest(secret: bytes) -> str:
    """The digest under which a secret is stored. Random secrets of 192 bits and more need no salt."""
    return sha256(secret).hexdigest()


def secret_id(digest: str) -> str:
    """The name of a secret in a challenge."""
    return sha256(digest.encode()).hexdigest()[:32]


def proof_mac(digest: str, host: str, nonce: str) -> str:
    """The proof of one who knows a secret by its digest."""
    message = f"{_LABEL}\n{host.lower()}\n{nonce}".encode()
    return hmac.new(digest.encode(), message, sha256).hexdigest()


def is_nonce(text: str) -> bool:
    """Whether a text has the form of a nonce."""
    return _NONCE.fullmatch(text) is not None
