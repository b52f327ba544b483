"""Numbers as people write them."""

import pytest

from afoot.core.number_format import format_number, format_size


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (3.0, "3"),
        (0.25, "0.25"),
        (2 / 3, "0.666667"),
        (290537, "290537"),
        (2e7, "20000000"),
        (12345678.9, "12345679"),
        (1e20, "100000000000000000000"),
        (1e30, "1e+30"),
        (-4.0, "-4"),
        (float("nan"), "nan"),
    ],
)
def test_a_number_is_written_without_powers_of_ten(value: float, written: str) -> None:
    """V2: 20000000, and not 2e+07."""
    assert format_number(value) == written


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (500_000_000, "500 MB"),
        (1_500_000_000, "1.5 GB"),
        (999_900_000, "1 GB"),
        (123_456_789, "123 MB"),
        (2 * 1024**3, "2 GiB"),
        (256 * 1024**2, "256 MiB"),
        (4096, "4.1 kB"),
        (12, "12 bytes"),
    ],
)
def test_a_size_is_written_as_it_was_set(count: int, written: str) -> None:
    """G1: 500 MB, and not 476.8."""
    assert format_size(count) == written
