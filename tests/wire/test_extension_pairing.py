"""Proofs: of both nonces, of one side, by the key alone."""

import pytest

from afoot.wire.extension import BROWSER_SIDE, GATEWAY_SIDE, Nonces, is_valid_proof, proof_mac, read_nonce

KEY = bytes(range(32))
NONCES = Nonces(b"\x01" * 32, b"\x02" * 32)


def test_a_proof_is_what_the_extension_computes() -> None:
    """B7: HMAC-SHA256 over the label and both nonces, the gateway's first; a vector for both languages."""
    assert (
        proof_mac(KEY, BROWSER_SIDE, NONCES)
        == "5cbccd4d69763f062004dc35846a6a127d6bbebb90282e70113ec5925c9f0564"
    )
    assert (
        proof_mac(KEY, GATEWAY_SIDE, NONCES)
        == "6fd44164441a64272ede83cb06b818e916f2d3774eb81a1dde56a8d95bcc79c6"
    )


def test_a_proof_is_taken_once_everything_fits() -> None:
    """B7: key, side, and both nonces."""
    given = proof_mac(KEY, BROWSER_SIDE, NONCES)
    assert is_valid_proof(KEY, BROWSER_SIDE, NONCES, given)
    assert not is_valid_proof(KEY, GATEWAY_SIDE, NONCES, given)
    assert not is_valid_proof(KEY[::-1], BROWSER_SIDE, NONCES, given)
    assert not is_valid_proof(KEY, BROWSER_SIDE, Nonces(NONCES.browser, NONCES.gateway), given)
    assert not is_valid_proof(KEY, BROWSER_SIDE, Nonces(NONCES.gateway, b"\x03" * 32), given)


@pytest.mark.parametrize("given", ["", "é", "\ud800", "0" * 64, "0" * 10_000])
def test_what_is_no_proof_is_refused_and_breaks_nothing(given: str) -> None:
    """B7: whatever a stranger sends."""
    assert not is_valid_proof(KEY, BROWSER_SIDE, NONCES, given)


def test_an_empty_key_proves_nothing() -> None:
    """B7: a truncated file of the key opens no door."""
    assert not is_valid_proof(b"", BROWSER_SIDE, NONCES, proof_mac(b"", BROWSER_SIDE, NONCES))


@pytest.mark.parametrize(
    "text", ["", "ab", "zz" * 32, "AB" * 32, "ab" * 33, "ab" * 31 + "a ", "ab" * 32 + "\n"]
)
def test_what_is_no_nonce_is_refused(text: str) -> None:
    """B7: 32 bytes, as small hex digits."""
    assert read_nonce(text) is None


def test_a_nonce_is_read() -> None:
    """B7: as its bytes."""
    assert read_nonce("ab" * 32) == b"\xab" * 32
