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
    asked: int = 0  # how many questions its call had asked by then: to those alone it brings answers


class Slip(Struct, frozen=True, array_like=True):
    """A server's own state of a round that no call stands for, with what it is bound to (U5)."""

    server: str
    state: str | None
    caller: str
    digest: str
    expires: float


def seal(bookmark: Bookmark, key: bytes) -> str:
    """The bookmark as a string nobody else can make."""
    return _close(msgspec.msgpack.encode(bookmark), key)


def unseal(state: str, key: bytes, now: float) -> Bookmark:
    """The bookmark in a string that we made; anything wrong with it is a Fault."""
    bookmark = msgspec.msgpack.decode(_open(state, key), type=Bookmark)
    if bookmark.expires < now:
        raise _wrong("expired")
    return bookmark


def seal_slip(slip: Slip, key: bytes) -> str:
    """The slip as a string nobody else can make; it is no bookmark, nor is a bookmark a slip."""
    return close(msgspec.msgpack.encode(slip), key, b"slip")


def unseal_slip(state: str, key: bytes, now: float) -> Slip:
    """The slip in a string that we made; anything wrong with it is a Fault."""
    slip = msgspec.msgpack.decode(reopen(state, key, b"slip"), type=Slip)
    if slip.expires < now:
        raise _wrong("expired")
    return slip


def match(bookmark: Bookmark | Slip, caller: str, digest: str) -> None:
    """Check that whoever sends it back is who it was made for, with the same request."""
    if bookmark.caller != caller:
        raise _wrong("made for another caller")
    if bookmark.digest != digest:
        raise _wrong(
            f"made for another {'tool' if isinstance(bookmark, Bookmark) else 'request'} or other arguments"
        )


def digest(tool: str, arguments: bytes) -> str:
    """What a bookmark is bound to: the tool and its arguments, whatever their order and spacing."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments or b"{}"), order="deterministic")
    except RecursionError:
        raise Fault(INVALID_PARAMS, "params.arguments: nested too deep") from None
    return hashlib.sha256(tool.encode() + b"\0" + canonical).hexdigest()


def close(body: bytes, key: bytes, kind: bytes) -> str:
    """What only we can have made, and only as this kind: each has a key of its own."""
    return _close(body, hmac.digest(key, kind, "sha256"))


def reopen(sealed: str, key: bytes, kind: bytes) -> bytes:
    """What was closed as this kind; raises Fault."""
    return _open(sealed, hmac.digest(key, kind, "sha256"))


def _close(body: bytes, key: bytes) -> str:
    return urlsafe_b64encode(_tag(body, key) + body).decode().rstrip("=")


def _open(state: str, key: bytes) -> bytes:
    """What was closed with this key; raises Fault."""
    try:
        raw = urlsafe_b64decode(state + "=" * (-len(state) % 4))
    except (Error, ValueError):
        raise _wrong("not one of ours") from None
    tag, body = raw[:TAG_BYTES], raw[TAG_BYTES:]
    same = urlsafe_b64encode(raw).decode().rstrip("=") == state  # one spelling, and no other
    if not (hmac.compare_digest(tag, _tag(body, key)) and same):
        raise _wrong("not one of ours, or changed on the way")
    return body


def _tag(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")


def _wrong(why: str) -> Fault:
    return Fault(INVALID_PARAMS, f"params.requestState: {why}")
