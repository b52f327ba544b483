"""JSON with comments and trailing commas: what is read, where it stands, and where it is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.config.jsonc import MAX_DEPTH, JsoncError, loads, parse

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(plain, st.sampled_from([None, 0, 1, 4, "\t"]), st.booleans())
def test_what_json_writes_is_read_as_json_reads_it(
    value: object, indent: int | str | None, is_ascii: bool
) -> None:
    """U2: no dialect for plain JSON."""
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    assert loads(text) == json.loads(text)


def test_comments_trailing_commas_and_a_byte_order_mark_are_no_matter() -> None:
    """U2: as VS Code and Zed write it."""
    text = '\ufeff// a\n{ /* b // c */ "x": [1, 2,], // "y": 3,\r\n "z": "// no /* comment",\n}\n// end'
    assert loads(text) == {"x": [1, 2], "z": "// no /* comment"}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("{", 1, 2),
        ('{\n  "a" 1}', 2, 7),
        ('{"a": 1\n "b": 2}', 2, 2),
        ("[1,,2]", 1, 4),
        ("[,]", 1, 2),
        ('{"a": tru}', 1, 7),
        ("01", 1, 1),
        ("1.", 1, 1),
        ("NaN", 1, 1),
        ('"x', 1, 1),
        ('{"a": "x\ny"}', 1, 7),
        ('"\\x"', 1, 1),
        ("/* x", 1, 1),
        ("{} x", 1, 4),
        ("{\r\n'a': 1}", 2, 1),
        ("[" * (MAX_DEPTH + 2), 1, MAX_DEPTH + 2),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(text: str, line: int, column: int) -> None:
    """U2: counted from 1."""
    with pytest.raises(JsoncError, match=f"line {line}, column {column}: ") as caught:
        loads(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@given(st.text(alphabet='{}[]",:/*\n\\ 01ea"tru', max_size=40))
def test_no_text_breaks_it(text: str) -> None:
    """U2: a value or a JsoncError, never anything else; what json reads, it reads too."""
    try:
        found = loads(text)
    except JsoncError:
        with pytest.raises(ValueError):
            json.loads(text)
    else:
        assert json.loads(json.dumps(found)) == found


def test_every_key_value_and_comma_has_its_place() -> None:
    """U2: spans are what the text says there."""
    text = '{"a": 1, "b": {"c": [true]} /* x */ , "a": "z"}'
    root = parse(text).root
    a, b, again = root.members
    assert (text[a.start : a.node.end], text[b.node.start : b.node.end]) == ('"a": 1', '{"c": [true]}')
    assert (a.comma, b.comma, again.comma) == (7, 36, None)
    assert root.get("a") == again and root.get("x") is None
    assert parse(text).comments == ((28, 35),)


def test_a_number_with_too_many_digits_is_told_with_its_place() -> None:
    """U2, S8: Python converts no text of over 4300 digits; found by the fuzzer."""
    with pytest.raises(JsoncError, match="line 2, column 2: "):
        loads("[\n " + "1" * 5000 + "]")
