"""Which URIs a template can have made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.wire.resources import matches_template


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://template/{id}/data", "test://template/123/data"),
        ("file:///{name}", "file:///a%20b.txt"),
        ("file:///{+path}", "file:///a/b/c.txt"),
        ("file:///{path*}", "file:///a/b/c.txt"),
        ("{+a}/{b}", "p/q/r"),
        ("x://{a}{b}", "x://ab"),
        ("x://{a}-{b}/end", "x://1-2-3/end"),
        ("x://s{?q,n}", "x://s?q=1&n=2"),
        ("x://s{?q}", "x://s"),
        ("x://a{/rest}", "x://a/b/c"),
        ("x://plain", "x://plain"),
        ("x://{}", "x://y"),
        ("x://{open", "x://{open"),
    ],
)
def test_a_uri_that_the_template_makes(template: str, uri: str) -> None:
    """U5: reading is routed by it."""
    assert matches_template(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("test://template/{id}/data", "test://template/1/2/data"),
        ("test://template/{id}/data", "test://template//data"),
        ("test://template/{id}/data", "test://template/1/data/more"),
        ("test://template/{id}", "other://template/1"),
        ("x://{a}", "x://"),
        ("x://{a}", "x://a?b"),
        ("x://plain", "x://plainer"),
        ("", "x"),
    ],
)
def test_a_uri_that_it_does_not_make(template: str, uri: str) -> None:
    """U5: another server may have it."""
    assert not matches_template(template, uri)


def test_no_template_is_slow() -> None:
    """U5: a server that means ill cannot stop the gateway with one."""
    assert not matches_template("x://" + "{+a}x" * 200, "x://" + "x" * 4000 + "y")


def test_a_template_of_countless_expressions_matches_nothing() -> None:
    """U5, S8: 4,000 of them took two seconds for one URI; found by the fuzzer."""
    assert matches_template("x://" + "{#a}" * 50, "x://" + "y" * 50)
    assert not matches_template("x://" + "{#a}" * 51, "x://" + "y" * 50)


@given(st.text(max_size=40), st.text(max_size=40))
def test_nothing_a_server_writes_is_a_crash(template: str, uri: str) -> None:
    """U5: whatever it is, it matches or not."""
    assert matches_template(template, uri) in (True, False)


@given(st.lists(st.tuples(st.text("ab:/.-", max_size=5), st.text("xyz.-", min_size=1)), max_size=5))
def test_what_was_put_in_is_found_again(parts: list[tuple[str, str]]) -> None:
    """U5: for plain variables, whatever stands between them."""
    template = "".join(literal + "{v}" for literal, _ in parts)
    assert matches_template(template, "".join(literal + value for literal, value in parts))
