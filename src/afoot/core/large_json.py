"""`encode_large` encodes as JSON: a value that does not fit into memory is an error, and no crash."""

from msgspec import json

LARGE_BYTES = 1024 * 1024  # of a value from which on `encode_large` is used
_FRAME_BYTES = 4096  # of JSON around the content of a large value; more only makes the buffer grow

_encode = json.Encoder().encode
_encode_into = json.Encoder().encode_into


def encode_sized(value: object, size: int) -> bytes:
    """JSON of a value with `size` bytes of content; raises MemoryError if it is large and does not fit."""
    return _encode(value) if size < LARGE_BYTES else encode_large(value, size)


def encode_large(value: object, size: int) -> bytes:
    """JSON of a value with `size` bytes of content; raises MemoryError.

    `Encoder.encode` ends the process with a segmentation fault where its buffer cannot grow (msgspec 0.22);
    `encode_into` raises. The buffer has its whole size at once: one that grows is copied several times.
    """
    buffer = bytearray(size + _FRAME_BYTES)
    _encode_into(value, buffer)
    return bytes(buffer)
