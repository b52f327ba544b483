"""Lists of a server: a definition that cannot be used is left out, and the others are offered."""

from msgspec import Raw

from afoot.config.tables import Server
from afoot.core.facts import Limits
from afoot.providers.upstream.server_lists import _decode_dicts
from afoot.providers.upstream.tool_definitions import MAX_DEPTH, read_tools
from afoot.providers.upstream.transport.server_log import ServerLog

GOOD = Raw(b'{"name":"good","inputSchema":{"type":"object"}}')


def offered(*definitions: bytes) -> tuple[list[str], list[str]]:
    """The names of the tools that are offered, and why others are not."""
    found, refused = read_tools([*map(Raw, definitions), GOOD], Server(command="x"), Limits(), ServerLog("s"))
    return list(found), refused


def test_a_definition_with_a_number_out_of_range_is_left_out() -> None:
    """U1, S8: one such tool took all lists of its server away; found by the fuzzer."""
    for number in (b"1e999", b"1" * 5000):
        for key in (b"maximum", b"x-mcp-header"):
            names, refused = offered(b'{"name":"bad","inputSchema":{"%b":%b}}' % (key, number))
            assert names == ["good"] and len(refused) == 1 and refused[0].startswith("bad: ")


def test_a_definition_that_is_nested_too_deep_is_left_out() -> None:
    """U1, S8: it is read again wherever tools are listed, on whatever is left of the stack there."""
    for depth, names in ((MAX_DEPTH // 2, ["deep", "good"]), (MAX_DEPTH + 1, ["good"]), (900, ["good"])):
        nested = b"[" * depth + b"]" * depth
        assert offered(b'{"name":"deep","inputSchema":{"default":%b}}' % nested)[0] == names


def test_a_resource_that_cannot_be_read_is_left_out() -> None:
    """U1, S8: a number out of range in one entry took the whole list away."""
    items = [
        Raw(b'{"uri":"a:b","size":1e999}'),
        Raw(b"5"),
        Raw(b'{"uri":"a:c"}'),
        Raw(b"[" * 900 + b"]" * 900),
    ]
    assert _decode_dicts(items) == [{"uri": "a:c"}]
