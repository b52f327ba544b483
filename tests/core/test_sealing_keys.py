"""Which key seals at a time, and which opens."""

from afoot.core.sealing_keys import SealingKey, SealingKeys

FIRST, SECOND, THIRD = SealingKey("", b"1"), SealingKey("aa", b"2", 10.0), SealingKey("bb", b"3", 20.0)
KEYS = SealingKeys((THIRD, FIRST, SECOND))


def test_the_newest_key_seals_once_its_time_has_come() -> None:
    """D7: before, another gateway may not know it."""
    assert [KEYS.sealing(now) for now in (9.9, 10.0, 19.9, 20.0)] == [FIRST, SECOND, SECOND, THIRD]
    assert SealingKeys((THIRD, SECOND)).sealing(0.0) == SECOND, "a clock that is behind seals all the same"


def test_every_key_opens_by_its_id() -> None:
    """D7: also one that does not seal yet."""
    assert [KEYS.find(id) for id in ("", "aa", "bb", "cc")] == [FIRST, SECOND, THIRD, None]
