"""The id of a key in front of a sealed string."""

import pytest

from afoot.wire.jsonrpc import Fault
from afoot.wire.sealed_state import (
    LookupState,
    RequestState,
    SessionTicket,
    key_id,
    seal,
    seal_lookup_state,
    seal_session_ticket,
    unseal_lookup_state,
    unseal_request_state,
    unseal_session_ticket,
)

KEY = b"k" * 32
STATE = RequestState("call", 1, "local", "digest", 100.0)


def test_each_kind_of_string_names_its_key_and_opens_with_it() -> None:
    """D7: without an id the string is as it always was."""
    lookup, ticket = LookupState("s", None, "local", "d", 100.0), SessionTicket("s", "me", 1.0, "v", "c")
    for id in ("", "0a1b2c3d"):
        request = seal(STATE, KEY, id)
        assert key_id(request) == id and unseal_request_state(request, KEY, 1.0) == STATE
        looked = seal_lookup_state(lookup, KEY, id)
        assert key_id(looked) == id and unseal_lookup_state(looked, KEY, 1.0) == lookup
        session = seal_session_ticket(ticket, KEY, id)
        assert key_id(session) == id and unseal_session_ticket(session, KEY) == ticket
    assert "." not in seal(STATE, KEY)


@pytest.mark.parametrize("front", ["0a1c2c3d.", "", ".", "x.0a1b2c3d."])
def test_the_id_is_sealed_as_well(front: str) -> None:
    """D7: with the same key, a string opens by the id under which it was sealed, and by no other."""
    sealed = seal(STATE, KEY, "0a1b2c3d").partition(".")[2]
    assert unseal_request_state(f"0a1b2c3d.{sealed}", KEY, 1.0) == STATE
    with pytest.raises(Fault, match="not one of ours"):
        unseal_request_state(front + sealed, KEY, 1.0)
