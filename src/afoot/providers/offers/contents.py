"""`encode_contents` writes the value of a resource's function, `encode_messages` that of a prompt's.

The result of such a call is content like that of a tool, so that the history and the console show it: the
contents of a resource are embedded resources, and the messages of a prompt are also its structured form.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from afoot.core.facts import Result
from afoot.core.large_json import encode_sized
from afoot.errors import ToolError
from afoot.providers.content import Content, json_of, json_string, without_surrogates

TEXT_TYPE: Final = "text/plain"
JSON_TYPE: Final = "application/json"
BYTES_TYPE: Final = "application/octet-stream"
_ROLES: Final = ("user", "assistant")


class Message(Struct, frozen=True):
    """One message of a prompt: a text or content, and who says it."""

    content: str | Content
    role: Literal["user", "assistant"] = "user"


def encode_contents(value: Any, uri: str, mime_type: str | None) -> Result:
    """The contents of the resource at this URI; raises ToolError.internal if they have no form on the wire.

    Text and bytes are as they are, a list with `Content` or bytes in it is several contents, and anything
    else is JSON.
    """
    pieces = list(value) if _is_several(value) else [value]
    encoded = [_content(piece, uri, mime_type) for piece in pieces]
    return Result(
        Raw(b"[" + b",".join(b'{"type":"resource","resource":' + one + b"}" for one in encoded) + b"]")
    )


def encode_messages(value: Any, description: str) -> Result:
    """The messages of a prompt; raises ToolError.internal if the value has none.

    Text is a message of the user, and so is content. A list is several messages.
    """
    pieces = list(value) if isinstance(value, (list, tuple)) else [value]
    messages = [_message(piece) for piece in pieces]
    found: dict[str, Any] = {"description": description} if description else {}
    found["messages"] = messages
    try:
        blocks = msgspec.json.encode([one["content"] for one in messages])
        return Result(Raw(blocks), Raw(msgspec.json.encode(found)))
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_message(value, f": {error}") from error


def _is_several(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        isinstance(one, Content | bytes | bytearray) for one in value
    )


def _content(value: Any, uri: str, mime_type: str | None) -> bytes:
    if isinstance(value, Content):
        return _content_of_content(value, uri, mime_type)
    if isinstance(value, bytes | bytearray | memoryview):
        data = b64encode(value)
        return _object(uri, mime_type or BYTES_TYPE, b'"blob":"' + data + b'"')
    if value is None or isinstance(value, str):
        return _object(uri, mime_type or TEXT_TYPE, b'"text":' + json_string(value or ""))
    text = bytes(json_of(value)).decode()
    return _object(uri, mime_type or JSON_TYPE, b'"text":' + json_string(text))


def _content_of_content(value: Content, uri: str, mime_type: str | None) -> bytes:
    body = value.body
    if value.kind == "text":
        return _content(body["text"], uri, mime_type)
    if value.kind in ("image", "audio"):
        return _object(uri, str(body["mimeType"]), b'"blob":' + json_string(str(body["data"])))
    if value.kind == "resource":
        inner = body["resource"]
        return encode_sized(inner, sum(len(one) for one in inner.values() if isinstance(one, str)))
    text = f"a resource cannot contain a {value.kind}; return text, bytes, JSON or Content.resource"
    raise ToolError.internal(text, code="bad_result")


def _object(uri: str, mime_type: str, body: bytes) -> bytes:
    return b'{"uri":' + json_string(uri) + b',"mimeType":' + json_string(mime_type) + b"," + body + b"}"


def _message(value: Any) -> dict[str, Any]:
    if isinstance(value, Message):
        return {"role": value.role, "content": _block(value.content)}
    if isinstance(value, Mapping) and "role" in value:
        if value["role"] not in _ROLES:
            raise _no_message(value, f": its role is {value['role']!r}, and must be user or assistant")
        return {"role": value["role"], "content": _block(value.get("content"))}
    return {"role": "user", "content": _block(value)}


def _block(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"type": "text", "text": without_surrogates(value)}
    if isinstance(value, Content):
        return {"type": value.kind, **value.body}
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return dict(value)
    raise _no_message(value, "")


def _no_message(value: Any, why: str) -> ToolError:
    takes = "return text, Content, afoot.Message, {'role': …, 'content': …}, or a list of these"
    return ToolError.internal(
        f"the prompt returned a {type(value).__name__}, which is no message{why}; {takes}", code="bad_result"
    )
