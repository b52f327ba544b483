"""Changes in TOML texts: tables that go in and out, and nothing else moves."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afoot.hosts.edit_json import EditError
from afoot.hosts.edit_toml import (
    TomlError,
    insert,
    is_separate_table,
    parse_statements,
    read,
    reinsert,
    remove,
    replace_value,
    table_lines,
    toml_literal,
)

KEY = ("mcp_servers",)
ENTRY: dict[str, object] = {"command": "/x/afoot", "args": ["connect"], "env": {"A B": 'q"\\\n\x7f'}}
PIECES = [
    'a = 1\n',
    '# [mcp_servers.comment]\n',
    'text = """\n[mcp_servers.text]\n"""  # c\n',
    "raw = '''\n# no\n'''\n",
    'list = [ # ]\n  "#", \'[x]\',\n]\n',
    "\n",
    '"quoted # key" = { x = [1, 2], y = "}" }\n',
]  # fmt: skip
TABLES = [
    '[mcp_servers.one]\ncommand = "one"\n',
    '[mcp_servers."two words"]  # c\nurl = "https://x/#y"\n\n[mcp_servers."two words".env]\nX = "1"\n',
    "[other]\nx = 1\n# tail\n",
    "[[array]]\nx = 1\n\n[[array]]\nx = 2\n",
    "[mcp_servers]\n",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Keys, then tables, with comments and blank lines between; either line ending, or none at the end."""
    found = draw(st.lists(st.sampled_from(PIECES), unique=True))
    found += draw(st.permutations(draw(st.lists(st.sampled_from(TABLES), unique=True))))
    gaps = [draw(st.sampled_from(["", "\n", "# note\n", "\n\n"])) for _ in found]
    text = "".join(piece + gap for piece, gap in zip(found, gaps, strict=True))
    text = draw(st.sampled_from([text, text.removesuffix("\n")]))
    return draw(st.sampled_from([text, text.replace("\n", "\r\n")]))


@given(texts())
def test_what_is_put_in_and_taken_out_leaves_the_same_bytes(text: str) -> None:
    """U2: comments, order, blank lines, line endings, and the end of the last line."""
    changed = insert(text, KEY, "afoot", ENTRY)
    servers = read(changed)["mcp_servers"]
    assert isinstance(servers, dict) and servers["afoot"] == ENTRY
    assert text in changed
    assert remove(changed, KEY, "afoot").text == text


@given(texts())
def test_every_server_can_be_taken_out_and_put_back(text: str) -> None:
    """U2: with the comments inside it; everything else means the same."""
    servers = read(text).get("mcp_servers", {})
    assert isinstance(servers, dict)
    for name in servers:
        assert is_separate_table(text, KEY, name)
        taken = remove(text, KEY, name)
        assert name not in tomllib.loads(taken.text).get("mcp_servers", {})
        assert read(reinsert(taken.text, KEY, name, taken)) == read(text)


@given(texts())
def test_every_statement_is_found_where_it_stands(text: str) -> None:
    """U2: also behind strings and lists of several lines."""
    found, whole = parse_statements(text), read(text)
    for one in found:
        assert tomllib.loads(text[one.start : one.end]), "each is TOML by itself"
        assert one.path[0] in whole
    assert {one.path[0] for one in found} == set(whole)
    servers = whole.get("mcp_servers", {})
    assert isinstance(servers, dict)
    assert {one.path[1] for one in found if one.path[0] == "mcp_servers" and one.path[1:]} == set(servers)


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**40), 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("aé .\n\"'"), inner, max_size=3),
        max_leaves=8,
    )
)
def test_every_value_is_written_so_that_it_is_read_again(value: object) -> None:
    """U2: control characters, quotes, empty keys."""
    assert tomllib.loads("\n".join(table_lines(("a", "b c"), {"x": value})))["a"]["b c"]["x"] == value
    assert "\n" not in toml_literal(value)


def test_dates_and_odd_numbers_are_written_so_that_they_are_read_again() -> None:
    """U2, S8: other programs write them into a table that is moved; found by the fuzzer."""
    dates = "a = 2020-01-01T00:00:00Z\nb = 2020-01-01\nc = 07:32:00.5\nd = 2020-01-01T00:00:00\n"
    written = f"{dates}e = inf\nf = -inf\ng = 1e300\n"
    value = tomllib.loads(written)
    assert tomllib.loads("\n".join(table_lines(("t",), value)))["t"] == value
    assert toml_literal(tomllib.loads("x = nan")["x"]) == "nan"


def test_a_value_is_swapped_and_its_comment_stays() -> None:
    """U2: also a list over several lines."""
    text = '[mcp_servers.a]\nargs = [ # one\n  "x",\n]  # two\ncommand = "y"\n'
    changed = replace_value(text, (*KEY, "a"), "args", ["connect"])
    assert changed == '[mcp_servers.a]\nargs = ["connect"]  # two\ncommand = "y"\n'
    with pytest.raises(EditError, match="key of its own"):
        replace_value("[mcp_servers]\na = { x = 1 }\n", (*KEY, "a"), "x", 2)


def test_a_table_in_a_line_can_be_taken_out_but_not_moved() -> None:
    """U2: it means something only where it stands."""
    text = '[mcp_servers]\na = { command = "x" }\nb = { command = "y" }\n'
    assert not is_separate_table(text, KEY, "a")
    assert remove(text, KEY, "a").text == '[mcp_servers]\nb = { command = "y" }\n'


def test_what_cannot_be_done_safely_is_not_done() -> None:
    """U2: a table that is closed, a text that is no TOML."""
    with pytest.raises(EditError, match="cannot be changed in this file"):
        insert("mcp_servers = {}\n", KEY, "afoot", ENTRY)
    with pytest.raises(EditError, match="there is no"):
        remove("a = 1\n", KEY, "afoot")
    with pytest.raises(TomlError, match="line 2, column 5"):
        read("a = 1\nb = \n")


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "1" * 5000])
def test_a_value_that_python_cannot_read_is_told(value: str) -> None:
    """U2, S8: nested too deep, or a number without end; found by the fuzzer."""
    with pytest.raises(TomlError):
        read(f"a = {value}\n")


def test_a_key_with_many_dots_is_nested_too_deep() -> None:
    """U2, S8: tomllib reads it without a call for each level, and whoever wrote it again had one."""
    with pytest.raises(TomlError, match="nested too deep"):
        read(f"{'.'.join('a' * 1000)} = 1\n")
