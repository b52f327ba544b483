"""Places in streams and passports of sessions: what we wrote is read again, and nothing else."""

from typing import Any

import pytest

from afoot.wire.bookmark import Slip, seal_slip
from afoot.wire.messages import Capabilities
from afoot.wire.place import LONGEST, Passport, Place, read_passport, read_place, seal_passport

KEY = b"k" * 32
PASSPORT = Passport("secret", "local", 1.5, "2025-11-25", "test", {"form": {}}, None, {})


@pytest.mark.parametrize("reader", [(), (7,), ("tök.en",), (7, True), ("tök.en", True)])
@pytest.mark.parametrize("request_id", [1, "a.b"])
def test_a_place_is_read_as_it_was_written(request_id: int | str, reader: tuple[Any, ...]) -> None:
    """H2, D2, P11: epoch, call, number, and who reads, and whether partial results too."""
    place = Place("e1", "c1", 0, request_id, *reader)
    assert read_place(place.at(12)) == Place("e1", "c1", 12, request_id, *reader)
    assert place.at(12).startswith("e1.c1.12.") and place.at(12).isascii()


@pytest.mark.parametrize(
    "text",
    ["", "e.c.1", "e.c.-1.WzFd", "e.c.x.WzFd", "e.c.1.!", "e.c.1.W10", "e.c.1.bnVsbA", "e.c.².WzFd", "a:b"],
)
def test_what_is_no_place_is_none(text: str) -> None:
    """H2: whatever a client sends back."""
    assert read_place(text) is None


def test_a_passport_is_read_only_if_it_is_ours_and_unchanged() -> None:
    """D2, S3: a session that tells itself who it is."""
    sealed = seal_passport(PASSPORT, KEY)
    assert read_passport(sealed, KEY) == PASSPORT
    assert PASSPORT.capabilities == Capabilities({"form": {}}, None, {})
    assert read_passport(sealed, b"other" * 8) is None
    changed = sealed[:-4] + ("AAAA" if sealed[-4:] != "AAAA" else "BBBB")
    assert read_passport(changed, KEY) is None and read_passport("made up", KEY) is None


def test_nothing_else_that_we_seal_is_a_passport() -> None:
    """S3: each kind has a key of its own."""
    assert read_passport(seal_slip(Slip("s", None, "local", "d", 9.0), KEY), KEY) is None


def test_a_session_that_says_too_much_has_only_its_secret() -> None:
    """G3: an id goes into a header with every request."""
    talkative = Passport("secret", "local", 1.5, "2025-11-25", "n" * LONGEST)
    assert seal_passport(talkative, KEY) == "secret"
