"""The diagram in the docs is the table in the code."""

import pytest

from afoot.core.call import TRANSITIONS
from docs.diagram import BEGIN, END, PAGE, diagram, drawn


def test_drawing_the_diagram_again_changes_nothing() -> None:
    """C1: the picture in docs/design.md is up to date; if not, run `python docs/diagram.py`."""
    page = PAGE.read_text()
    assert drawn(page) == page


def test_every_arrow_of_the_table_is_in_the_picture() -> None:
    """C1: state, fact and target of each."""
    lines = diagram().splitlines()
    for state, arrows in TRANSITIONS.items():
        for kind, target in arrows.items():
            (line,) = [line for line in lines if line.startswith(f"    {state} --> {target}: ")]
            assert kind.__name__ in line.split(": ")[1].split(", ")


def test_the_text_around_the_picture_is_left_alone() -> None:
    """C1: only what is between the marks is drawn."""
    page = drawn(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert page.startswith(f"before\n{BEGIN}\n```mermaid\n")
    assert page.endswith(f"```\n{END}\nafter\n")
    assert "old" not in page


@pytest.mark.parametrize("page", ["no marks", f"{BEGIN} only", f"{BEGIN}{END}{BEGIN}{END}"])
def test_a_page_without_the_marks_is_refused(page: str) -> None:
    """C1: nothing is guessed."""
    with pytest.raises(ValueError, match="needs the marks"):
        drawn(page)
