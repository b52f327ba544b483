"""Places in streams and passports of sessions: what we wrote is read again, and nothing else."""

from typing import Any

import pytest

from afoot.wire.results import Capabilities
from afoot.wire.sealed_state import (
    MAX_SESSION_ID,
    LookupState,
    ResumePosition,
    SessionTicket,
    read_resume_position,
    seal_lookup_state,
    seal_session_ticket,
    unseal_session_ticket,
)

KEY = b"k" * 32
PASSPORT = SessionTicket("secret", "local", 1.5, "2025-11-25", "test", {"form": {}}, None, {})


@pytest.mark.parametrize("reader", [(), (7,), ("tök.en",), (7, True), ("tök.en", True)])
@pytest.mark.parametrize("request_id", [1, "a.b"])
def test_a_place_is_read_as_it_was_written(request_id: int | str, reader: tuple[Any, ...]) -> None:
    """H2, D2, P11: epoch, call, number, and who reads, and whether partial results too."""
    place = ResumePosition("e1", "c1", 0, request_id, *reader)
    assert read_resume_position(place.event_id(12)) == ResumePosition("e1", "c1", 12, request_id, *reader)
    assert place.event_id(12).startswith("e1.c1.12.") and place.event_id(12).isascii()


@pytest.mark.parametrize(
    "text",
    ["", "e.c.1", "e.c.-1.WzFd", "e.c.x.WzFd", "e.c.1.!", "e.c.1.W10", "e.c.1.bnVsbA", "e.c.².WzFd", "a:b"],
)
def test_what_is_no_place_is_none(text: str) -> None:
    """H2: whatever a client sends back."""
    assert read_resume_position(text) is None


def test_a_passport_is_read_only_if_it_is_ours_and_unchanged() -> None:
    """D2, S3: a session that tells itself who it is."""
    sealed = seal_session_ticket(PASSPORT, KEY)
    assert unseal_session_ticket(sealed, KEY) == PASSPORT
    assert PASSPORT.capabilities == Capabilities({"form": {}}, None, {})
    assert unseal_session_ticket(sealed, b"other" * 8) is None
    changed = sealed[:-4] + ("AAAA" if sealed[-4:] != "AAAA" else "BBBB")
    assert unseal_session_ticket(changed, KEY) is None and unseal_session_ticket("made up", KEY) is None


def test_nothing_else_that_we_seal_is_a_passport() -> None:
    """S3: each kind has a key of its own."""
    assert (
        unseal_session_ticket(seal_lookup_state(LookupState("s", None, "local", "d", 9.0), KEY), KEY) is None
    )


def test_a_session_that_says_too_much_has_only_its_secret() -> None:
    """G3: an id goes into a header with every request."""
    talkative = SessionTicket("secret", "local", 1.5, "2025-11-25", "n" * MAX_SESSION_ID)
    assert seal_session_ticket(talkative, KEY) == "secret"
