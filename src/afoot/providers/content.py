"""What a tool may return: content, a whole result, a partial one; and how content is written for the wire."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from afoot.errors import ToolError
from afoot.providers.hygiene import encoded, plain_text, quoted

UNSET: Final = object()  # "no structured form was given", where None would be a value
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode


class Content(Struct, frozen=True):
    """One piece of content. Made by `text`, `image`, `audio`, `resource` and `link`."""

    kind: str
    body: dict[str, Any]

    @classmethod
    def text(cls, text: str) -> "Content":
        """Words."""
        return cls("text", {"text": text})

    @classmethod
    def image(cls, data: bytes, mime: str = "image/png") -> "Content":
        """A picture."""
        return cls("image", {"data": b64encode(data).decode(), "mimeType": mime})

    @classmethod
    def audio(cls, data: bytes, mime: str = "audio/wav") -> "Content":
        """Sound."""
        return cls("audio", {"data": b64encode(data).decode(), "mimeType": mime})

    @classmethod
    def resource(
        cls, uri: str, *, text: str | None = None, blob: bytes | None = None, mime: str | None = None
    ) -> "Content":
        """A document, whole: its text, or its bytes. Raises ValueError unless it is one of the two."""
        if (text is None) == (blob is None):
            raise ValueError("a resource has either text or blob")
        inner: dict[str, Any] = {"uri": uri}
        if mime is not None:
            inner["mimeType"] = mime
        if text is not None:
            inner["text"] = text
        if blob is not None:
            inner["blob"] = b64encode(blob).decode()
        return cls("resource", {"resource": inner})

    @classmethod
    def link(
        cls,
        uri: str,
        name: str,
        *,
        description: str | None = None,
        mime: str | None = None,
        size: int | None = None,
    ) -> "Content":
        """A document that the caller may fetch."""
        more = {"description": description, "mimeType": mime, "size": size}
        known = {key: value for key, value in more.items() if value is not None}
        return cls("resource_link", {"uri": uri, "name": name, **known})


class ToolResult(Struct, frozen=True):
    """A result said in full. Without `content`, the structured form is also the text."""

    content: Sequence[Content | str] | Content | str = ()
    structured: Any = UNSET
    is_error: bool = False


class Partial(Struct, frozen=True):
    """A piece of the result, yielded before the end: text, content, or any value."""

    content: Any


def content_of(value: Any) -> Raw:
    """The content list that stands for a value: nothing for None, content as it is, else text.

    Raises ToolError.internal when it cannot be encoded.
    """
    if value is None:
        return Raw(b"[]")
    if type(value) is str:
        return text_content(value)
    if isinstance(value, Content):
        return content_list([value])
    if is_content(value):
        return content_list(value)
    return text_content(value if isinstance(value, str) else as_text(json_of(value)))


def content_list(items: Iterable[Any]) -> Raw:
    """A content list of these pieces; a value that is neither content nor text is shown as JSON."""
    return Raw(b"[" + b",".join(map(_item, items)) + b"]")


def text_content(text: str) -> Raw:
    """A content list of one text."""
    return Raw(b'[{"type":"text","text":' + quoted(text) + b"}]")


def as_text(json: Raw) -> str:
    """Encoded JSON as a text to read."""
    return bytes(json).decode()


def is_content(value: Any) -> bool:
    """Whether a value is a list of content, texts among it included."""
    return (
        isinstance(value, (list, tuple))
        and any(isinstance(item, Content) for item in value)
        and all(isinstance(item, Content | str) for item in value)
    )


def json_of(value: Any) -> Raw:
    """A value as JSON; raises ToolError.internal saying why it has none."""
    try:
        return encoded(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise unencodable(value, error) from error


def unencodable(value: Any, error: BaseException) -> ToolError:
    """The error for a value that no wire can carry."""
    hint = (
        "; wrap bytes in Content.image, .audio or .resource" if isinstance(value, bytes | bytearray) else ""
    )
    why = str(error) or type(error).__name__
    text = f"the tool returned {_kind(value)}, which cannot be encoded: {why}{hint}"
    return ToolError.internal(text, code="unencodable")


def joined(parts: Iterable[Raw]) -> Raw:
    """The content lists of all partials as one. Texts next to each other become one text, as in a stream."""
    out: list[dict[str, Any]] = []
    texts: list[str] = []
    for item in (item for part in parts for item in _decode(part)):
        if item["type"] == "text":
            texts.append(item["text"])
            continue
        _end_text(out, texts)
        out.append(item)
    _end_text(out, texts)
    return Raw(_encode(out))


def _end_text(out: list[dict[str, Any]], texts: list[str]) -> None:
    if texts:
        out.append({"type": "text", "text": "".join(texts)})
        texts.clear()


def _item(item: Any) -> bytes:
    if not isinstance(item, Content):
        text = item if isinstance(item, str) else as_text(json_of(item))
        return b'{"type":"text","text":' + quoted(text) + b"}"
    body = {"type": item.kind, **item.body}
    try:
        return _encode(body)
    except UnicodeEncodeError:
        return _encode(
            {key: plain_text(value) if isinstance(value, str) else value for key, value in body.items()}
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise unencodable(item, error) from error


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
