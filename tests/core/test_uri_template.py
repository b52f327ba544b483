"""URI templates: the values that a URI has, and templates that cannot be read back."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.core.uri_template import MAX_URI_CHARS, UriTemplate, Values, unsafe_value

SEGMENT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("config://app", "config://app", {}),
        ("config://app", "config://apps", None),
        ("file:///{name}", "file:///a.txt", {"name": "a.txt"}),
        ("file:///{name}", "file:///a/b", None),
        ("file:///{name}", "file:///", None),
        ("file:///{name}", "file:///a%20b%2Fc", {"name": "a b/c"}),
        ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
        ("x://{a}-{b}", "x://1-2-3", {"a": "1-2", "b": "3"}),
        ("x://{a,b}", "x://1,2", {"a": "1", "b": "2"}),
        ("x://{name}{.ext}", "x://a.b.c", {"name": "a.b", "ext": "c"}),
        ("x://h{/id}", "x://h/7", {"id": "7"}),
        ("x://h{/rest*}", "x://h/7/8", {"rest": ["7", "8"]}),
        ("x://h{#part}", "x://h#a/b", {"part": "a/b"}),
        ("x://{id}{?unit,n}", "x://1", {"id": "1"}),
        ("x://{id}{?unit,n}", "x://1?n=2&unit=a+b&other=3", {"id": "1", "n": "2", "unit": "a b"}),
        ("x://s{?tag*}", "x://s?tag=a&tag=b", {"tag": ["a", "b"]}),
    ],
)
def test_the_values_of_a_uri_are_read_by_its_template(template: str, uri: str, values: Values | None) -> None:
    """F3: decoded, by the operators of RFC 6570; a URI that does not come from the template has none."""
    assert UriTemplate(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("x://{a", "without its }"),
        ("x://a}", "without its {"),
        ("x://{}", "no name of a parameter"),
        ("x://{a b}", "no name of a parameter"),
        ("x://{a}{b}", "put a text between a and b"),
        ("x://{+a}/{+b}", "only one variable"),
        ("x://{a}/{a}", "names a twice"),
        ("x://{?a}/b", "must be the end"),
        ("x://{?a}{b}", "must be the end"),
        ("x://{;a}", "is not supported"),
        ("x://{a*}", "a list is written as {/a*}"),
        ("{a}", "must begin with a scheme"),
        ("app", "must begin with a scheme"),
        ("", "must begin with a scheme"),
    ],
)
def test_a_template_that_cannot_be_read_back_is_refused(template: str, told: str) -> None:
    """F3: with what is wrong with it, and what to write instead."""
    with pytest.raises(ValueError, match=re.escape(told)):
        UriTemplate(template)


@given(st.lists(SEGMENT, min_size=1, max_size=3), SEGMENT, SEGMENT)
def test_what_is_expanded_is_read_back(rest: list[str], name: str, query: str) -> None:
    """F3: whatever the values are."""
    template = UriTemplate("x://{name}/of{/rest*}{?query}")
    values: Values = {"name": name, "rest": rest, "query": query}
    uri = template.expand(values)
    if len(uri) <= MAX_URI_CHARS:
        assert template.match(uri) == values


def test_a_wider_template_covers_a_narrower_one() -> None:
    """F3: so that the narrower one can be asked first, whatever their order in the file is."""
    wide, narrow, same = map(UriTemplate, ("f:///{+path}", "f:///logs/{name}", "f:///{+other}"))
    assert wide.covers(narrow) and not narrow.covers(wide)
    assert wide.covers(same) and same.covers(wide)
    assert not UriTemplate("f:///{name}").covers(wide) and wide.covers(UriTemplate("f:///{name}"))


@pytest.mark.parametrize("value", ["../x", "a/../../x", "..", "/etc/passwd", "\\x", "a\\..\\b", "a\x00b"])
def test_a_value_that_leaves_its_folder_is_named(value: str) -> None:
    """S1: a stranger chooses the URI, and the author joins its value to a folder."""
    assert unsafe_value({"path": value}, ()).startswith("path must not")
    assert unsafe_value({"path": ["a", value]}, ()).startswith("path must not")
    assert unsafe_value({"path": value}, ("path",)) == ""  # a query is no path


@pytest.mark.parametrize("value", ["a", "a/b", "a..b", "...", "a/...", ".hidden"])
def test_an_ordinary_value_is_let_through(value: str) -> None:
    """S1: dots alone are nothing bad."""
    assert unsafe_value({"path": value}, ()) == ""


def test_no_uri_makes_matching_slow() -> None:
    """S1: a long URI that almost fits is refused in time that grows with its length alone."""
    template = UriTemplate("x://{a}-{b}-{c}-{d}-{e}/end")
    started = time.process_time()
    assert template.match("x://" + "-" * (MAX_URI_CHARS - 8)) is None
    assert template.match("x://" + "a" * MAX_URI_CHARS) is None
    assert time.process_time() - started < 0.5
