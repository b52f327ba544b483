"""What a tool says, made fit to be passed on."""

from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.providers.content import LARGEST, clean_line, clean_text, encode_json, finite_number, json_string


class Angry:
    """Whose every conversion fails."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "bad",
    [None, True, "5", b"6", float("nan"), float("inf"), -1, -0.5, 10**400, object(), Angry(), [], 1j],
    ids="nothing true text bytes nan inf negative half huge object angry list complex".split(),
)
def test_what_is_no_finite_number_counts_as_none(bad: object) -> None:
    """P1, P4: bad types, NaN, infinity and negatives are missing values."""
    assert finite_number(bad) is None


@pytest.mark.parametrize(
    ("value", "kept"), [(5, 5), (0, 0), (2.5, 2.5), (Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25)]
)
def test_numbers_of_any_kind_are_kept(value: object, kept: float) -> None:
    """P1: whatever is a number is one."""
    assert finite_number(value) == kept


def test_a_message_is_one_clean_line() -> None:
    """P4: control characters, colours and marks that turn the text are removed."""
    assert clean_line("a\x1b[31mred\x1b[0m\tb\nc\x00\x07\u202e\ud800d", 100) == "ared b cd"


def test_a_long_message_is_cut_and_the_cut_is_marked() -> None:
    """P4: length capped."""
    assert clean_line("x" * 5000, 10) == "x" * 9 + "…"
    assert clean_line("x" * 10, 10) == "x" * 10


def test_a_message_of_nothing_is_none() -> None:
    """P4: what cannot be shown is not a message."""
    assert clean_line("\n\t\x00", 10) is None
    assert clean_line(Angry(), 10) is None
    assert clean_line(7, 10) == "7"


def test_lines_keep_their_ends() -> None:
    """P4: a log may have several lines."""
    assert clean_text("a\r\nb\x07\n\tc", 100) == "a\nb\n\tc"


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_becomes_printable_json(text: str) -> None:
    """P4: whatever a tool says can be sent."""
    cleaned = clean_line(text, 50)
    assert cleaned is None or len(cleaned) <= 50
    msgspec.json.encode(cleaned)
    msgspec.json.decode(json_string(text))


class Pair(msgspec.Struct):
    """Of msgspec."""

    a: int


class Array:
    """Like numpy's."""

    def tolist(self) -> list[int]:
        return [1, 2]


def test_structs_and_arrays_have_a_json_form() -> None:
    """P7: what authors of tools have in hand."""
    assert bytes(encode_json({"pair": Pair(1), "array": Array()})) == b'{"pair":{"a":1},"array":[1,2]}'


def test_values_without_json_are_refused() -> None:
    """P7: encoding says so instead of guessing."""
    with pytest.raises((ValueError, TypeError)):
        encode_json(object())
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError):
        encode_json(loop)
    assert bytes(encode_json({"n": float("nan"), "m": LARGEST})).startswith(b'{"n":null')
