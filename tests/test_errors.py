"""The errors that are raised on purpose: the names that they suggest."""

import pytest

from afoot.errors import MAX_COMPARED_CHARS, UnknownName, nearest_names


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("greed", ["greet", "other"], ["greet"]),
        ("red_file", ["read_files", "read_file", "x", "zz"], ["read_file", "read_files"]),
        ("export", ["export", "export"], ["export"]),
        ("zzz", ["greet"], []),
        ("", ["greet"], []),
        ("x" * (MAX_COMPARED_CHARS + 1), ["x" * (MAX_COMPARED_CHARS + 1)], []),
    ],
)
def test_the_nearest_known_names_are_suggested(name: str, known: list[str], nearest: list[str]) -> None:
    """E5: three at most, each once; none for a name that is too long for one."""
    assert nearest_names(name, known) == nearest


def test_an_unknown_name_says_what_was_nearest() -> None:
    """E5: in its text and as data."""
    error = UnknownName("tool", "greed", ["greet"])
    assert str(error) == "unknown tool 'greed'; nearest: greet" and error.nearest == ["greet"]
