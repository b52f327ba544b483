"""Docstrings taken apart."""

from afoot.providers.docstring import parse


def test_a_google_docstring_describes_its_parameters() -> None:
    """E4: what a model is told of a field comes from the author."""
    doc = parse(
        """Export pages.

        Slowly.

        Args:
            pages: how many pages,
                at least one
            mode (str, optional): fast: or slow
            *rest: ignored

        Returns:
            dict: a count: of pages
        """
    )
    assert doc.description == "Export pages.\n\nSlowly."
    assert doc.parameters == {
        "pages": "how many pages, at least one",
        "mode": "fast: or slow",
        "rest": "ignored",
    }


def test_a_numpy_docstring_describes_its_parameters() -> None:
    """E4: the second of the usual styles."""
    doc = parse(
        """Export pages.

        Parameters
        ----------
        pages : int
            How many pages.
            At least one.
        x, y : float
            Where.

        Returns
        -------
        int
            The count.
        """
    )
    assert doc.description == "Export pages."
    assert doc.parameters == {"pages": "How many pages. At least one.", "x": "Where.", "y": "Where."}


def test_a_rest_docstring_describes_its_parameters() -> None:
    """E4: the third of the usual styles."""
    doc = parse(
        """Export pages.

        :param pages: how many
            pages
        :param str mode: how
        :type pages: int
        :returns: a count
        """
    )
    assert doc.description == "Export pages."
    assert doc.parameters == {"pages": "how many pages", "mode": "how"}


def test_prose_with_colons_stays_prose() -> None:
    """E4: what is not understood is kept for the model."""
    text = "Do it.\n\nHint: be careful.\nArgs matter: they do."
    assert parse(text).description == text
    assert parse(text).parameters == {}


def test_text_after_a_google_section_is_description_again() -> None:
    """E4: a section ends at the margin."""
    doc = parse("Do it.\n\nArgs:\n    a: one\n\nMore to know.")
    assert doc.description == "Do it.\n\n\nMore to know." or doc.description == "Do it.\n\nMore to know."
    assert doc.parameters == {"a": "one"}


def test_no_docstring_is_no_description() -> None:
    """E4: nothing is invented."""
    assert parse(None).description == ""
    assert parse("").parameters == {}
