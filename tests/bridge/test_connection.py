"""Headers that a bridge makes of a message, and who it says it is."""

import pytest

from afoot.bridge.connection import BridgeIdentity, mcp_name
from afoot.wire import jsonrpc
from afoot.wire.mcp_2026 import decode_header, encode_header


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [("add", True), ("a b", True), (" a", False), ("zählt", False), ("a\tb", False), ("=?base64?x?=", False)],
)
def test_what_no_header_can_hold_is_wrapped(text: str, is_plain: bool) -> None:
    """E5: and means the same to the gateway."""
    assert (encode_header(text) == text) == is_plain
    assert decode_header(encode_header(text)) == text


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", '{"name": "add"}', "add"),
        ("resources/read", '{"uri": "x://y"}', "x://y"),
        ("tools/list", '{"name": "add"}', ""),
        ("tools/call", '{"name": 7}', ""),
        ("tools/call", "[]", ""),
    ],
)
def test_the_name_of_what_is_asked_for(method: str, params: str, name: str) -> None:
    """E5: where the era has it in a header."""
    line = f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}'
    assert mcp_name(jsonrpc.read(line.encode())) == name


def test_without_a_token_a_bridge_is_nobody() -> None:
    """S3: it does not claim what it cannot prove."""
    assert BridgeIdentity("connect-1").headers == {}
    assert BridgeIdentity("connect-1", "t").headers == {
        "authorization": "Bearer t",
        "afoot-caller": "connect-1",
    }
