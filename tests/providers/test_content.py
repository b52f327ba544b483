"""Content, results and partials."""

import base64
import pathlib

import pytest

from afoot.errors import ToolError
from afoot.providers.content import Content, Partial, content_of, join_content
from tests.providers.fake_run import decoded


def test_every_kind_of_content_has_its_shape() -> None:
    """C7: the shapes of the protocol."""
    data = base64.b64encode(b"\x00\xff").decode()
    assert decoded(content_of([Content.text("a"), "b"])) == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert decoded(content_of(Content.image(b"\x00\xff"))) == [
        {"type": "image", "data": data, "mimeType": "image/png"}
    ]
    assert decoded(content_of(Content.audio(b"\x00\xff", "audio/mpeg")))[0]["mimeType"] == "audio/mpeg"
    resource = Content.resource("file:///a", blob=b"\x00\xff", mime="x/y")
    inner = {"uri": "file:///a", "mimeType": "x/y", "blob": data}
    assert decoded(content_of(resource)) == [{"type": "resource", "resource": inner}]
    link = Content.link("file:///a", "a", size=3)
    assert decoded(content_of(link)) == [
        {"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3}
    ]


def test_a_resource_is_text_or_bytes() -> None:
    """C7: not both, not neither."""
    with pytest.raises(ValueError, match="either"):
        Content.resource("file:///a")
    with pytest.raises(ValueError, match="either"):
        Content.resource("file:///a", text="a", blob=b"a")


def test_half_a_surrogate_pair_is_replaced() -> None:
    """C7: file names with broken bytes can be sent."""
    assert decoded(content_of("a\udce4")) == [{"type": "text", "text": "a�"}]
    assert decoded(content_of(Content.text("a\udce4"))) == [{"type": "text", "text": "a�"}]


def test_other_values_are_shown_as_json() -> None:
    """P11: a partial may be any value."""
    assert decoded(content_of({"a": [1]})) == [{"type": "text", "text": '{"a":[1]}'}]
    assert decoded(content_of(None)) == []


def test_what_cannot_be_encoded_is_said_clearly() -> None:
    """E3: a clean error, and a hint for bytes."""
    with pytest.raises(ToolError, match="returned an object, which cannot be encoded"):
        content_of(object())
    with pytest.raises(ToolError, match=r"Content\.image"):
        content_of(b"\xff\xfe")
    assert decoded(content_of(pathlib.Path("/a")))[0]["text"] == '"/a"'


def test_partials_joined_are_one_stream() -> None:
    """P11: texts next to each other become one, other content stays where it was."""
    parts = [Partial("Hel"), Partial("lo"), Partial(Content.link("u:1", "l")), Partial("!")]
    assert decoded(join_content(content_of(part.content) for part in parts)) == [
        {"type": "text", "text": "Hello"},
        {"type": "resource_link", "uri": "u:1", "name": "l"},
        {"type": "text", "text": "!"},
    ]


@pytest.mark.parametrize(
    ("name", "data", "mime", "kind", "field"),
    [
        ("a.png", b"\x89PNG", None, "image", "data"),
        ("a.wav", b"RIFF", None, "audio", "data"),
        ("a.txt", b"hi", None, "resource", "text"),
        ("a.json", b"{}", None, "resource", "text"),
        ("a.txt", b"\xff\xfe", None, "resource", "blob"),
        ("a.svg", b"<svg/>", None, "resource", "text"),
        ("a", b"\x00", None, "resource", "blob"),
        ("a", b"\x00", "image/webp", "image", "data"),
    ],
)
def test_a_file_is_content_by_its_type(
    tmp_path: pathlib.Path, name: str, data: bytes, mime: str | None, kind: str, field: str
) -> None:
    """F7: by its name, unless its type is given."""
    (tmp_path / name).write_bytes(data)
    item = decoded(content_of(Content.file(tmp_path / name, mime)))[0]
    assert item["type"] == kind and field in item.get("resource", item)
