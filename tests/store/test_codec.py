"""Rows as they stand in the file: damaged ones are told from sound ones."""

import pytest
from msgspec import DecodeError

from afoot.store.codec import decode_facts, decode_samples

DAMAGED = (
    b"", b"[", b"[1]", b'[{"type":"none"}]', b'[{"type":"opene\xa0","at":1.0}]', b"[" * 5000 + b"]" * 5000,
    b'{"at":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"at":1.0,"message":"\xff"}',
)  # fmt: skip


@pytest.mark.parametrize("body", DAMAGED, ids=lambda body: repr(body[:20]))
def test_a_damaged_row_is_unreadable_whatever_is_wrong_with_it(body: bytes) -> None:
    """H1, S8: readers catch one error; another would end whatever reads the history."""
    with pytest.raises(DecodeError):
        decode_facts([(1, "c", 1, body)])
    with pytest.raises(DecodeError):
        decode_samples([("c", 1, 0, body)])
