"""Changes in JSON texts of every shape: what goes in comes out again, and nothing else moves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.config.jsonc import JsoncError
from afoot.hosts.edit_json import EditError, insert, read, reinsert, remove, replace_value

ENTRY = {"command": "/x/afoot", "args": ["connect"], "env": {"A": "ü"}}
COMMENTS = ["", " ", " // c, }\n", "/* , { */", "\n", "\n\t", " /* a\n b */ ", "\r\n  "]


@st.composite
def texts(draw: st.DrawFn, depth: int = 2) -> str:
    """An object with blanks and comments wherever they may stand."""
    gap = st.sampled_from(COMMENTS)
    keys = draw(st.lists(st.sampled_from(["a", "b", "c", "d e", "é"]), unique=True, max_size=3))
    members = []
    for key in keys:
        inner = texts(depth - 1) if depth else st.just("{}")
        value = draw(inner | st.sampled_from(["1", "[1, 2,]", '"}"', "null", "[]"]))
        members.append(f"{draw(gap)}{json.dumps(key)}{draw(gap)}:{draw(gap)}{value}{draw(gap)}")
    if not members:
        # An object that holds only blanks does not keep them.
        return "{" + draw(st.sampled_from(["", "// c\n", "/* c */", "\n // c\n "])) + "}"
    return "{" + ",".join(members) + draw(st.sampled_from(["", ",", ", // c\n", ",\n"])) + "}"


@given(texts(), st.sampled_from(["", "\n"]))
def test_what_is_put_in_and_taken_out_leaves_the_same_bytes(text: str, end: str) -> None:
    """U2: comments, order, indentation, line endings, trailing commas."""
    text += end
    changed = insert(text, (), "afoot", ENTRY)
    before, after = read(text), read(changed)
    assert isinstance(before, dict) and isinstance(after, dict)
    assert after == {**before, "afoot": ENTRY} and list(after) == [*before, "afoot"]
    assert remove(changed, (), "afoot").text == text


@given(texts(), st.data())
def test_every_member_can_be_taken_out_and_put_back(text: str, data: st.DataObject) -> None:
    """U2: with its comments inside, at its place, whatever is left around it."""
    before = read(text)
    assert isinstance(before, dict)
    for key in data.draw(st.permutations(list(before))):
        taken = remove(text, (), key)
        without = read(taken.text)
        assert without == {name: one for name, one in before.items() if name != key}
        again = reinsert(taken.text, (), key, taken)
        found = read(again)
        assert found == before and isinstance(found, dict) and list(found) == list(before)


@given(texts(), st.data())
def test_a_value_is_swapped_and_nothing_else(text: str, data: st.DataObject) -> None:
    """U2: the text before and behind it stays."""
    before = read(text)
    assert isinstance(before, dict)
    for key in before:
        assert read(replace_value(text, (), key, [1])) == {**before, key: [1]}


@given(texts(), texts())
def test_an_entry_deep_inside_is_no_different(outer: str, inner: str) -> None:
    """U2: the table of servers in a file with other things."""
    text = insert(outer, (), "servers", {}).replace('"servers": {}', f'"servers": {inner}')
    changed = insert(text, ("servers",), "afoot", ENTRY)
    assert remove(changed, ("servers",), "afoot").text == text


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('{\n  "a": 1 // one\n}\n', '{\n  "a": 1, // one\n  "k": {\n    "x": [1]\n  }\n}\n'),
        (
            '{\n\t"a": 1, // one\n\t// two\n}',
            '{\n\t"a": 1, // one\n\t"k": {\n\t\t"x": [1]\n\t},\n\t// two\n}',
        ),
        ('{"a": 1}', '{"a": 1, "k": {"x": [1]}}'),
        ('{ "a": 1 /* c */ }', '{ "a": 1, /* c */ "k": {"x": [1]} }'),
        ("{}", '{\n  "k": {\n    "x": [1]\n  }\n}'),
        ('{\r\n   "a": 1\r\n}', '{\r\n   "a": 1,\r\n   "k": {\r\n      "x": [1]\r\n   }\r\n}'),
    ],
)
def test_an_entry_is_written_as_the_file_is(text: str, changed: str) -> None:
    """U2: its indentation, its line endings, its commas, and comments where they belong."""
    assert insert(text, (), "k", {"x": [1]}) == changed
    assert remove(changed, (), "k").text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{\n  "k": 1, // why\n  "a": 2\n}', '{\n   // why\n  "a": 2\n}'),
        ('{\n  "a": 2, // c\n  "k": 1}', '{\n  "a": 2 // c\n  }'),
        ('{\n  "k": 1, "a": 2\n}', '{\n   "a": 2\n}'),
        ('{"a": 2, "k": 1}', '{"a": 2}'),
        ('{ "k": 1 }', "{}"),
    ],
)
def test_what_stands_beside_it_stays(text: str, left: str) -> None:
    """U2: comments are nobody's but their author's, and never swallow a brace."""
    assert remove(text, (), "k").text == left


def test_what_cannot_be_done_safely_is_not_done() -> None:
    """U2: a key that stands twice, one that is missing, a table that is none."""
    with pytest.raises(EditError, match="2 times"):
        remove('{"k": 1, "k": 2}', (), "k")
    with pytest.raises(EditError, match="0 times"):
        remove("{}", (), "k")
    with pytest.raises(EditError, match="no servers"):
        insert("{}", ("servers",), "k", 1)
    with pytest.raises(JsoncError, match="line 2, column 12: servers must be an object"):
        insert('{\n"servers": []}', ("servers",), "k", 1)
