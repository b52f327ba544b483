"""The sealed `requestState`: which call a retry belongs to, and proof that we wrote it (Q1 c)."""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

import msgspec
from msgspec import Struct

from afoot.wire.jsonrpc import INVALID_PARAMS, Fault

TAG_BYTES = 32


class Bookmark(Struct, frozen=True, array_like=True):
    """A place in a call, for one caller and one exact request, until it expires."""

    call: str
    round: int
    caller: str
    digest: str
    expires: float


def seal(bookmark: Bookmark, key: bytes) -> str:
    """The bookmark as a string nobody else can make."""
    body = msgspec.msgpack.encode(bookmark)
    return urlsafe_b64encode(_tag(body, key) + body).decode().rstrip("=")


def unseal(state: str, key: bytes, now: float) -> Bookmark:
    """The bookmark in a string that we made; anything wrong with it is a Fault."""
    try:
        raw = urlsafe_b64decode(state + "=" * (-len(state) % 4))
    except (Error, ValueError):
        raise _wrong("not one of ours") from None
    tag, body = raw[:TAG_BYTES], raw[TAG_BYTES:]
    same = urlsafe_b64encode(raw).decode().rstrip("=") == state  # one spelling, and no other
    if not (hmac.compare_digest(tag, _tag(body, key)) and same):
        raise _wrong("not one of ours, or changed on the way")
    bookmark = msgspec.msgpack.decode(body, type=Bookmark)
    if bookmark.expires < now:
        raise _wrong("expired")
    return bookmark


def match(bookmark: Bookmark, caller: str, digest: str) -> None:
    """Check that whoever sends it back is who it was made for, with the same request."""
    if bookmark.caller != caller:
        raise _wrong("made for another caller")
    if bookmark.digest != digest:
        raise _wrong("made for another tool or other arguments")


def digest(tool: str, arguments: bytes) -> str:
    """What a bookmark is bound to: the tool and its arguments, whatever their order and spacing."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments or b"{}"), order="deterministic")
    except RecursionError:
        raise Fault(INVALID_PARAMS, "params.arguments: nested too deep") from None
    return hashlib.sha256(tool.encode() + b"\0" + canonical).hexdigest()


def _tag(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")


def _wrong(why: str) -> Fault:
    return Fault(INVALID_PARAMS, f"params.requestState: {why}")
