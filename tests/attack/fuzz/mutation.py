"""`mutate` changes an input in ways that readers are known to be weak at; it is shared by all runs.

libFuzzer changes bytes and knows nothing of formats. These changes repeat, nest and lengthen what is there.
"""

import re
from collections.abc import Callable, Sequence
from random import Random

NESTED = (b"[", b'{"a":', b"[{", b'{"a":[', b"[[", b"{a=")
CLOSING = {ord("["): b"]", ord("{"): b"}"}
# Values at which numbers, texts and times break.
ODD_VALUES = (
    b"1" * 5000, b"-1", b"0", b"1e999", b"-1e999", b"1e-999", b"9223372036854775808", b"18446744073709551616",
    b"NaN", b"Infinity", b"null", b"true", b'""', b"[]", b"{}", b'"\\ud800"', b'"\\udc00\\ud800"', b"\xff",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0", b"\r", b"\r\n", b"\n\n", b"\xe2\x80\xa8", b"%00", b"%ff",
    b"=?base64?/w==?=", b'"\\u0000"', b"0" * 400, b"1" * 400, b"1" + b"0" * 20, b".5", b"1_000", b"0x10",
)  # fmt: skip
_VALUE = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d[\d.eE+-]*|true|false|null')

Change = Callable[[bytes, Random, Sequence[bytes]], bytes]


def mutate(data: bytes, random: Random, words: Sequence[bytes], max_bytes: int) -> bytes:
    """The data after one to four changes, no longer than `max_bytes`; `words` may be put in."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(CHANGES)(data, random, words)[:max_bytes]
    return data


def _flip(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + bytes([random.randint(0, 255)]) + data[at + 1 :]


def _cut(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    start, end = _span(data, random)
    return data[:end] + data[start:end] * random.choice((1, 2, 10, 100)) + data[end:]


def _insert(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice([*words, *ODD_VALUES]) + data[at:]


def _replace_value(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    """Put another value in the place of one of JSON, TOML or a header."""
    found = list(_VALUE.finditer(data))
    if not found:
        return _insert(data, random, words)
    start, end = random.choice(found).span()
    other = random.choice(found)[0]
    return data[:start] + random.choice([other, *words, *ODD_VALUES]) + data[end:]


def _nest(data: bytes, random: Random, words: Sequence[bytes]) -> bytes:
    """Put a value so deep that readers which recurse come to the end of their stack."""
    opening = random.choice(NESTED)
    depth = random.choice((5, 150, 250, 450, 700, 850, 900, 930, 950, 970, 985, 995, 1500))
    closing = b"".join(CLOSING.get(sign, b"") for sign in reversed(opening))
    nested = opening * depth + b"1" + closing * depth
    found = list(_VALUE.finditer(data))
    start, end = random.choice(found).span() if found else _span(data, random)
    return data[:start] + nested + data[end:]


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.choice((1, 2, 4, 16, 64)))


CHANGES: Sequence[Change] = (_flip, _cut, _repeat, _insert, _replace_value, _replace_value, _nest)
