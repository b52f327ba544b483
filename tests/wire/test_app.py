"""The `_meta` and the lists by which a host finds our MCP App."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from afoot.wire import app, handle_tools
from afoot.wire.client import outgoing
from afoot.wire.results import APP_PAGE_TYPE, APPS_EXTENSION, Capabilities


def defined(**more: Any) -> bytes:
    """A tool's definition."""
    return json.dumps({"name": "t", "inputSchema": {"type": "object"}, **more}).encode()


def read(definition: Raw) -> dict[str, Any]:
    """The definition as a client reads it."""
    found: dict[str, Any] = json.loads(bytes(definition))
    return found


def test_a_tool_names_the_app_by_both_keys_and_keeps_its_meta() -> None:
    """V7: hosts of the first drafts read the flat key."""
    found = read(app.with_app(defined(_meta={"x": 1})))["_meta"]
    assert found == {"x": 1, "ui": {"resourceUri": app.APP_URI}, "ui/resourceUri": app.APP_URI}


@pytest.mark.parametrize(
    "meta",
    [
        {"ui": {"resourceUri": "ui://its/own"}},
        {"ui/resourceUri": "ui://its/own"},
        {"ui": {"visibility": ["app"]}},
    ],
    ids=["own app", "own app by the flat key", "for pages alone"],
)
def test_a_tool_with_an_app_of_its_own_stays_as_it_is(meta: dict[str, Any]) -> None:
    """V7, U8: byte for byte."""
    assert bytes(app.with_app(defined(_meta=meta))) == defined(_meta=meta)


def test_the_tools_of_the_gateway_are_listed_once() -> None:
    """V7: also to a caller that had those for calls that run on already."""
    for before in (list[Raw](), [*handle_tools.TOOLS.values()]):
        names = [read(one)["name"] for one in app.with_app_tools([Raw(defined()), *before])]
        assert names == ["t", "afoot_wait", "afoot_calls", "afoot_cancel", "afoot_view", "afoot_answer"]


def test_tools_of_the_page_are_hidden_from_models() -> None:
    """V7: a host shows its model only tools whose visibility names it."""
    for one in app.APP_TOOLS.values():
        assert read(one)["_meta"] == {"ui": {"visibility": ["app"]}}


@pytest.mark.parametrize(
    ("declared", "is_shown"),
    [
        ({"mimeTypes": [APP_PAGE_TYPE]}, True),
        ({"mimeTypes": ["image/png", APP_PAGE_TYPE]}, True),
        ({"mimeTypes": []}, False),
        ({"mimeTypes": APP_PAGE_TYPE}, False),
        ({}, False),
        (None, False),
    ],
)
def test_only_a_client_that_names_the_type_of_our_page_shows_it(declared: object, is_shown: bool) -> None:
    """V7: to declare the extension is not enough, as the package's own servers have it."""
    assert Capabilities(extensions={APPS_EXTENSION: declared}).app_pages is is_shown
    assert not Capabilities().app_pages


def test_a_gateway_that_asks_what_this_one_has_is_offered_no_app() -> None:
    """V7, U8: it has the same app for its own clients, and asks for the apps of other servers."""
    asked = json.loads(bytes(outgoing.CAPABILITIES_OF_GATEWAY))
    asked["extensions"] = json.loads(bytes(outgoing.LISTED_EXTENSIONS))
    declared = msgspec.convert(asked, Capabilities)
    assert declared.apps and not declared.app_pages


def test_a_servers_word_for_the_extension_stays() -> None:
    """U8, V7: and without one, ours is there."""
    theirs = {"extensions": {APPS_EXTENSION: {"of": "raw"}}, "logging": True}
    assert app.with_app_extension(theirs) == theirs
    found = app.with_app_extension({"logging": True})
    assert found == {"logging": True, "extensions": {APPS_EXTENSION: dict[str, object]()}}
