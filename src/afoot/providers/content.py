"""`Content`, `ToolResult` and `Partial` are what a tool may return; `content_of` writes them for the wire.

`finite_number`, `clean_line` and `clean_text` make what a tool says fit to be passed on (P1, P4).
"""

import mimetypes
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from pydantic_core import to_json

from afoot.core.large_json import encode_sized
from afoot.errors import ToolError

UNSET: Final = object()  # no structured form was given; None would be a value
LARGEST: Final = 1.7976931348623157e308  # beyond it a number has no finite float
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BREAKS = re.compile(r"[\t\n\r\v\f\x85\u2028\u2029]+")
# Control characters, halves of surrogate pairs, and marks that turn the direction of the text around them.
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSEEN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode


class Content(Struct, frozen=True):
    """One piece of content. Made by `text`, `image`, `audio`, `file`, `resource` and `link`."""

    kind: str
    body: dict[str, Any]

    @classmethod
    def text(cls, text: str) -> "Content":
        """Make content of a text."""
        return cls("text", {"text": text})

    @classmethod
    def image(cls, data: bytes, mime: str = "image/png") -> "Content":
        """Make content of a picture."""
        return cls("image", {"data": b64encode(data).decode(), "mimeType": mime})

    @classmethod
    def audio(cls, data: bytes, mime: str = "audio/wav") -> "Content":
        """Make content of sound."""
        return cls("audio", {"data": b64encode(data).decode(), "mimeType": mime})

    @classmethod
    def file(cls, path: str | os.PathLike[str], mime: str | None = None) -> "Content":
        """Make content of a file: a picture, sound, or a document. Raises OSError."""
        place = Path(path)
        data = place.read_bytes()
        kind = mime or mimetypes.guess_type(place.name)[0] or "application/octet-stream"
        if kind.startswith("image/") and kind != "image/svg+xml":
            return cls.image(data, kind)
        if kind.startswith("audio/"):
            return cls.audio(data, kind)
        uri = place.absolute().as_uri()
        if kind.startswith("text/") or kind.endswith(("json", "xml", "yaml", "toml")):
            with suppress(UnicodeDecodeError):
                return cls.resource(uri, text=data.decode(), mime=kind)
        return cls.resource(uri, blob=data, mime=kind)

    @classmethod
    def resource(
        cls, uri: str, *, text: str | None = None, blob: bytes | None = None, mime: str | None = None
    ) -> "Content":
        """Make content of a whole document: its text, or its bytes. Raises ValueError unless it is one."""
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
        """Make content of a link to a document that the caller may fetch."""
        more = {"description": description, "mimeType": mime, "size": size}
        known = {key: value for key, value in more.items() if value is not None}
        return cls("resource_link", {"uri": uri, "name": name, **known})


class ToolResult(Struct, frozen=True):
    """A whole result. Without `content`, the structured form is also the text."""

    content: Sequence[Content | str] | Content | str = ()
    structured: Any = UNSET
    is_error: bool = False


class Partial(Struct, frozen=True):
    """A piece of the result, yielded before the end: text, content, or any value."""

    content: Any


def content_of(value: Any) -> Raw:
    """Return the content list for a value: empty for None, content as it is, anything else as text.

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
    """Return a content list of these pieces; a value that is neither content nor text becomes JSON."""
    return Raw(b"[" + b",".join(map(_content_item, items)) + b"]")


def text_content(text: str) -> Raw:
    """Return a content list of one text."""
    return Raw(b'[{"type":"text","text":' + json_string(text) + b"}]")


def as_text(json: Raw) -> str:
    """Return encoded JSON as a text."""
    return bytes(json).decode()


def is_content(value: Any) -> bool:
    """Whether a value is a list of content, texts among it included."""
    return (
        isinstance(value, (list, tuple))
        and any(isinstance(item, Content) for item in value)
        and all(isinstance(item, Content | str) for item in value)
    )


def json_of(value: Any) -> Raw:
    """Return a value as JSON; raises ToolError.internal saying why it has none."""
    try:
        return encode_json(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise unencodable(value, error) from error


def unencodable(value: Any, error: BaseException) -> ToolError:
    """Return the error for a value that has no JSON form."""
    hint = (
        "; wrap bytes in Content.image, .audio or .resource" if isinstance(value, bytes | bytearray) else ""
    )
    why = str(error) or type(error).__name__
    text = f"the tool returned {_type_name(value)}, which cannot be encoded: {why}{hint}"
    return ToolError.internal(text, code="unencodable")


def join_content(parts: Iterable[Raw]) -> Raw:
    """Join the content lists of all partials. Texts next to each other become one text, as in a stream."""
    out: list[dict[str, Any]] = []
    texts: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        for item in _decode(part):
            if item["type"] == "text":
                texts.append(item["text"])
                continue
            _flush_text(out, texts)
            out.append(item)
    _flush_text(out, texts)
    return Raw(encode_sized(out, size))


def _flush_text(out: list[dict[str, Any]], texts: list[str]) -> None:
    if texts:
        out.append({"type": "text", "text": "".join(texts)})
        texts.clear()


def _content_item(item: Any) -> bytes:
    if not isinstance(item, Content):
        text = item if isinstance(item, str) else as_text(json_of(item))
        return b'{"type":"text","text":' + json_string(text) + b"}"
    body = {"type": item.kind, **item.body}
    size = sum(len(value) for value in body.values() if isinstance(value, str))
    try:
        return encode_sized(body, size)
    except UnicodeEncodeError:
        mended = {
            key: without_surrogates(value) if isinstance(value, str) else value for key, value in body.items()
        }
        return encode_sized(mended, size)
    except (TypeError, ValueError, RecursionError) as error:
        raise unencodable(item, error) from error


def _type_name(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def finite_number(value: object) -> float | None:
    """Return a finite number that is not negative, or None."""
    if value is None or isinstance(value, bool | str | bytes | bytearray):
        return None
    if type(value) is int and 0 <= value <= LARGEST:
        return value
    try:
        plain = float(value)  # pyrefly: ignore[bad-argument-type]
    except Exception:  # a type of the author's own may raise anything
        return None
    return plain if 0 <= plain <= LARGEST else None


def clean_line(value: object, limit: int) -> str | None:
    """Return one printable line of at most `limit` characters, its cut marked; None if nothing is left."""
    if value is None:
        return None
    try:
        text = value if type(value) is str else str(value)
    except Exception:  # a type of the author's own may raise anything
        return None
    text = text[: 4 * limit + 100]  # a huge text is not worth cleaning to its end
    text = _UNSEEN.sub("", _BREAKS.sub(" ", _ANSI.sub("", text))).strip()
    return truncate(text, limit) or None


def clean_text(text: object, limit: int) -> str:
    """Return text cleaned and cut as by `clean_line`, with its lines kept."""
    said = str(text)[: 4 * limit + 100].replace("\r\n", "\n")
    return truncate(_UNSEEN_LINES.sub("", _ANSI.sub("", said)), limit)


def truncate(text: str, limit: int) -> str:
    """Return at most `limit` characters; a cut is marked."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def without_surrogates(text: str) -> str:
    """Return the text without halves of surrogate pairs, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def json_string(text: str) -> bytes:
    """Return the text as a JSON string."""
    try:
        return encode_sized(text, len(text))
    except UnicodeEncodeError:
        return encode_sized(without_surrogates(text), len(text))


def encode_json(value: Any) -> Raw:
    """Return any value as JSON: models, dataclasses, dates and the like included; NaN becomes null.

    Raises ValueError, TypeError or RecursionError when it has no JSON form.
    """
    return Raw(to_json(value, inf_nan_mode="null", by_alias=True, fallback=_encode_fallback))


def _encode_fallback(value: Any) -> Any:
    """Encode types that pydantic does not know: structs of msgspec, numbers and arrays of numpy."""
    if isinstance(value, Struct):
        return msgspec.to_builtins(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def is_deeper(value: object, depth: int) -> bool:
    """Whether a decoded value is nested over so many levels deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < 0 or any(is_deeper(one, depth - 1) for one in inner)
