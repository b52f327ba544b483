"""Figures and text as the terminal writes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from afoot.cli.terminal.call_words import ASCII_SHAPES
from afoot.cli.terminal.text import (
    display_width,
    format_elapsed,
    format_estimate,
    format_left,
    format_percent,
    format_span,
    progress_share,
    to_ascii,
)
from afoot.core.facts import Reading
from afoot.observe.eta import Eta

FIGURES: dict[str, list[tuple[float, str]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "figures.json").read_text()
)
FORMATS: dict[str, Callable[[Any], str]] = {
    "span": format_span,
    "elapsed": format_elapsed,
    "left": format_left,
    "estimate": lambda left_s: format_estimate(Eta(left_s)),
    "percent": format_percent,
}


@pytest.mark.parametrize("kind", sorted(FIGURES))
def test_figures_are_written_as_in_the_console(kind: str) -> None:
    """V6: durations, estimates and per cent, by the vectors that the console agrees with."""
    for value, text in FIGURES[kind]:
        assert FORMATS[kind](value) == text, value
    assert format_estimate(None) == ""


def test_a_share_is_between_nothing_and_all_or_unknown() -> None:
    """V6: whatever a tool reports."""
    numbers: list[tuple[float, float | None]] = [(3, 4), (150, 120), (-1, 120), (0, 0), (3, None)]
    found = [progress_share(Reading(1.0, progress, total)) for progress, total in numbers]
    assert found == [0.75, 1.0, 0.0, None, None]
    assert progress_share(None) is None and progress_share(Reading(1.0, 3, -4)) is None


def test_without_unicode_a_text_takes_as_many_columns() -> None:
    """V6: shapes, bars and rings have ASCII of their own; other characters are question marks."""
    line = "◆ publish  ━━╍┅── ● ◕ ◑ ◔ ○ ‖ 9:12 └ x… ▸ a · b ⟨U+202E⟩ 漢字 é e\u0301"
    shown = to_ascii(line, ASCII_SHAPES)
    assert shown.isascii() and display_width(shown) == display_width(line)
    assert shown.startswith("? publish  ==%:-- O C c ( . = 9:12 ` x~ * a - b <U+202E> ???? ? e")
    assert to_ascii("plain", {}) == "plain"
