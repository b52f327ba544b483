"""Docstrings taken apart."""

from afoot.providers.functions.signature import parse_docstring


def test_a_google_docstring_describes_its_parameters() -> None:
    """E4: what a model is told of a field comes from the author."""
    doc = parse_docstring(
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
    doc = parse_docstring(
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
    doc = parse_docstring(
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


def test_an_epydoc_docstring_describes_its_parameters() -> None:
    """E4: a style of older code."""
    doc = parse_docstring(
        "Export pages.\n\n@param pages: how many\n    pages\n@type pages: int\n@return: a count"
    )
    assert doc.description == "Export pages."
    assert doc.parameters == {"pages": "how many pages"}


def test_every_section_of_parameters_counts_and_attributes_do_not() -> None:
    """E4: Google's and NumPy's further ones."""
    google = "Do it.\n\nArgs:\n    a: one\n\nKeyword Args:\n    b: two\n\nAttributes:\n    c: three"
    numpy = "\n".join(
        f"{title}\n{'-' * len(title)}\n{name} : int\n    {said}\n"
        for title, name, said in (
            ("Parameters", "a", "one"),
            ("Other Parameters", "b", "two"),
            ("Attributes", "c", "x"),
        )
    )
    for text in (google, f"Do it.\n\n{numpy}"):
        assert parse_docstring(text).description == "Do it."
        assert parse_docstring(text).parameters == {"a": "one", "b": "two"}


def test_a_note_is_description() -> None:
    """E4: a model is to read a warning, too; what it returns has a schema."""
    doc = parse_docstring(
        "Do it.\n\nArgs:\n    a: one\n\nWarning:\n    It cannot be undone.\n\nReturns:\n    a count"
    )
    assert doc.description == "Do it.\n\nWarning:\n    It cannot be undone."
    assert doc.parameters == {"a": "one"}


def test_a_section_that_breaks_its_style_stays_in_the_description() -> None:
    """E4: the model can still read it."""
    text = "Do it.\n\nArgs:\n    no name here\n    a: one"
    assert parse_docstring(text).description == text
    assert parse_docstring(text).parameters == {}


def test_prose_with_colons_stays_prose() -> None:
    """E4: what is not understood is kept for the model."""
    text = "Do it.\n\nHint: be careful.\nArgs matter: they do."
    assert parse_docstring(text).description == text
    assert parse_docstring(text).parameters == {}


def test_text_after_a_section_or_a_field_is_description_again() -> None:
    """E4: they end at the margin."""
    for section in ("Args:\n    a: one", ":param a:\n    one", "@param a: one"):
        doc = parse_docstring(f"Do it.\n\n{section}\n\nMore to know.")
        assert doc.description == "Do it.\n\nMore to know."
        assert doc.parameters == {"a": "one"}


def test_no_docstring_is_no_description() -> None:
    """E4: nothing is invented."""
    assert parse_docstring(None).description == ""
    assert parse_docstring("").parameters == {}
