"""The sealed state: only ours, only whole, only in time, only for whom it was made."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.wire.jsonrpc import INVALID_PARAMS, Fault
from afoot.wire.sealed_state import (
    RequestState,
    check_binding,
    request_digest,
    seal,
    unseal_request_state,
)

KEY = b"k" * 32
MARK = RequestState("call", 2, "local", request_digest("export", b'{"pages":3}'), 100.0)
STATE = seal(MARK, KEY)


def refused(state: str, key: bytes = KEY, now: float = 1.0) -> str:
    """Why this state is not taken."""
    with pytest.raises(Fault) as caught:
        unseal_request_state(state, key, now)
    assert caught.value.code == INVALID_PARAMS and caught.value.message.startswith("params.requestState:")
    return caught.value.message


def test_what_was_sealed_comes_back() -> None:
    """Q1 c: call, round, caller, digest and expiry."""
    assert unseal_request_state(STATE, KEY, 99.9) == MARK
    check_binding(MARK, "local", request_digest("export", b'{ "pages" : 3 }'))


def test_each_round_has_another_state() -> None:
    """Q1 c: so that a retry says which round it answers."""
    assert seal(RequestState("call", 3, "local", MARK.digest, 100.0), KEY) != STATE


@pytest.mark.parametrize(
    "state",
    [
        "", "x", "-TAMPERED", STATE + "-TAMPERED", STATE[:-4], STATE[4:], STATE.swapcase(), STATE * 2,
        STATE + "=", STATE + "==", STATE + "!!!!", " " + STATE, STATE + "\n", "ü" + STATE, "\0",
    ],
)  # fmt: skip
def test_a_state_that_was_changed_is_not_taken(state: str) -> None:
    """Q1 c: anything wrong is -32602; there is one spelling and no other."""
    assert "not one of ours" in refused(state)


@given(st.integers(0, len(STATE) - 1), st.sampled_from("ABCXYZabcxyz0189-_=+/. "))
def test_no_single_letter_can_be_changed(place: int, letter: str) -> None:
    """Q1 c: not even in the bits that base64 throws away."""
    changed = STATE[:place] + letter + STATE[place + 1 :]
    if changed != STATE:
        refused(changed)


@given(st.text())
def test_nothing_made_up_is_taken(state: str) -> None:
    """Q1 c: and nothing made up is a crash."""
    refused(state)


@given(st.binary(min_size=1, max_size=64))
def test_another_key_does_not_open_it(key: bytes) -> None:
    """Q1 c: another gateway, or an older key."""
    if key != KEY:
        refused(STATE, key)


def test_it_expires() -> None:
    """Q1 c: for good."""
    assert "expired" in refused(STATE, now=100.1)


@pytest.mark.parametrize(
    ("caller", "tool", "arguments", "why"),
    [
        ("other", "export", b'{"pages":3}', "another caller"),
        ("local", "import", b'{"pages":3}', "another tool or other arguments"),
        ("local", "export", b'{"pages":4}', "another tool or other arguments"),
        ("local", "export", b"{}", "another tool or other arguments"),
    ],
)
def test_it_is_for_one_caller_and_one_exact_request(
    caller: str, tool: str, arguments: bytes, why: str
) -> None:
    """Q1 c, A6: it cannot be replayed for something else."""
    with pytest.raises(Fault, match=why) as caught:
        check_binding(MARK, caller, request_digest(tool, arguments))
    assert caught.value.code == INVALID_PARAMS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=4))
def test_order_and_spacing_of_arguments_do_not_matter(arguments: dict[str, Any]) -> None:
    """Q1 c: a client may write the same arguments in another way."""
    backwards = dict(reversed(arguments.items()))
    spaced = msgspec.json.format(msgspec.json.encode(backwards), indent=2)
    assert request_digest("export", msgspec.json.encode(arguments)) == request_digest("export", spaced)


def test_arguments_nested_too_deep_are_a_fault() -> None:
    """Bad input: deep nesting is told, not raised."""
    with pytest.raises(Fault, match="nested too deep"):
        request_digest("export", b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def test_arguments_with_a_number_out_of_range_are_refused() -> None:
    """S5, Q1: it is JSON, and the decoder cannot hold it; found by the fuzzer."""
    for arguments in (b'{"a":1e999}', b'{"a":' + b"1" * 5000 + b"}"):
        with pytest.raises(Fault) as caught:
            request_digest("export", arguments)
        assert caught.value.code == INVALID_PARAMS and caught.value.message.startswith("params.arguments: ")
