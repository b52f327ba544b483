"""How a browser and the gateway prove to each other that they know the key, which never travels (B7)."""

import hmac
import re

from msgspec import Struct

NONCE_BYTES = 32
BROWSER, GATEWAY = b"ext", b"gw"
_HEX = re.compile(r"[0-9a-f]{64}")


class Nonces(Struct, frozen=True):
    """What both sides made up for this one connection; whatever is proved counts for it alone."""

    gateway: bytes
    browser: bytes


def mac(key: bytes, side: bytes, nonces: Nonces) -> str:
    """The proof of one side; that of the other side is another."""
    return hmac.new(key, side + nonces.gateway + nonces.browser, "sha256").hexdigest()


def is_proved(key: bytes, side: bytes, nonces: Nonces, given: str) -> bool:
    """Whether the proof is that side's, compared in constant time; a key that is too short proves nothing."""
    wanted = mac(key, side, nonces)
    return len(key) >= NONCE_BYTES and hmac.compare_digest(wanted.encode(), given.encode(errors="replace"))


def nonce(text: str) -> bytes | None:
    """The bytes of a nonce; None if it is none."""
    return bytes.fromhex(text) if _HEX.fullmatch(text) else None
