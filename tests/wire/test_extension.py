"""The frames of the link: read strictly, written as they are read, and the same in the extension."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec import Raw, json

from afoot.wire import extension
from afoot.wire.extension import (
    FROM_BROWSER,
    TO_BROWSER,
    BadFrame,
    FromBrowser,
    ToBrowser,
    read_frame,
    write_frame,
)
from docs.messages import FILE, written


def test_writing_the_messages_again_changes_nothing() -> None:
    """B1: messages.js is what wire/extension.py says; if not, run `python docs/messages.py`."""
    assert FILE.read_text() == written()


def test_every_frame_has_a_method_and_every_method_a_frame() -> None:
    """B1: no frame that cannot be read or written."""
    assert set(FROM_BROWSER.values()) == set(get_args(FromBrowser))
    assert set(TO_BROWSER.values()) == set(get_args(ToBrowser))
    assert len(set(FROM_BROWSER.values())) == len(FROM_BROWSER)
    assert len(set(TO_BROWSER.values())) == len(TO_BROWSER)


def test_the_extension_knows_every_method_and_every_kind() -> None:
    """B1: by name."""
    text = FILE.read_text()
    for method, kind in {**FROM_BROWSER, **TO_BROWSER}.items():
        assert f'"{method}"' in text and f"}} {kind.__name__}" in text.replace("\n * ", " ").replace(
            "{object}", "{}"
        )


def test_a_frame_is_read_with_all_that_it_says() -> None:
    """B1: names as JavaScript writes them."""
    text = (
        '{"jsonrpc": "2.0", "method": "tab.tools", "params": {"room": "a", "leftOut": 2, "tools":'
        ' [{"name": "buy", "inputSchema": {"type": "object"}, "form": true, "unknown": 1}]}}'
    )
    message = read_frame(text)
    assert isinstance(message, extension.PageContextTools) and message.left_out == 2
    (tool,) = message.tools
    assert (tool.name, bytes(tool.input_schema), tool.form) == ("buy", b'{"type": "object"}', True)


def test_a_frame_without_params_is_one_without_fields() -> None:
    """B1: a ping needs none."""
    assert read_frame('{"method": "ping"}') == extension.Ping()


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", '"ping"', '{"method": 1}', '{"method": "tool.dispatch", "params": {}}',
        '{"method": "tool.result"}', '{"method": "tool.result", "params": []}', "[" * 100_000,
        '{"method": "tool.result", "params": {"room": "a", "run": "r", "seq": "1"}}',
        '{"method": "tool.result", "params": {"room": "a", "run": "r", "seq": 1}', "\ud800",
        '{"method": "tool.progress", "params": {"room": "a", "run": "r", "seq": 1, "reports": [1]}}',
    ],
)  # fmt: skip
def test_what_is_no_frame_is_refused(text: str) -> None:
    """B7: with a word why, and with nothing else raised."""
    with pytest.raises(BadFrame):
        read_frame(text)


@given(some.text() | some.binary() | some.recursive(some.none() | some.text(), some.lists).map(str))
def test_whatever_comes_is_a_frame_or_a_bad_frame(text: str | bytes) -> None:
    """B7: a page's words reach this through the extension."""
    try:
        read_frame(text)
    except BadFrame:
        pass


def test_a_frame_is_written_as_json_rpc() -> None:
    """B1: with its method, and what is usual left out."""
    frame = json.decode(write_frame(extension.RunDispatch("a", "r", "buy", Raw(b'{"n": 1}'))))
    params = {"room": "a", "run": "r", "tool": "buy", "input": {"n": 1}}
    assert frame == {"jsonrpc": "2.0", "method": "tool.dispatch", "params": params}
    assert json.decode(write_frame(extension.LinkWelcome("e")))["params"] == {"epoch": "e"}
