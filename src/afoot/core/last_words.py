"""`last_words` are the words by which a call is listed: its failure, a line of its result, or its message."""

import re

from msgspec import MsgspecError, Struct, json

from afoot.core.call import Call
from afoot.core.facts import Reading, Result

MAX_RESULT_BYTES = 2000  # of a result that is read for its first line
MAX_LINE_CHARS = 120
_IS_DATA = re.compile(r'[{["]|(-?[0-9.]+(e[+-]?[0-9]+)?|true|false|null)$', re.IGNORECASE)  # a value of JSON


class _Block(Struct):
    """A content block, as far as it can have words."""

    type: str = ""
    text: str = ""


_blocks = json.Decoder(list[_Block])


def last_words(call: Call, latest: Reading | None = None) -> str | None:
    """The words by which a call is listed: why it failed, else its result in a line, else its last words.

    `latest` is its last reading, where the call itself does not have it because it was read from the history.
    """
    latest = latest or call.latest
    if call.end is not None and call.end.failure is not None:
        return call.end.failure.message
    line = "" if call.end is None or call.end.result is None else result_line(call.end.result)
    return line or (None if latest is None else latest.message)


def result_line(result: Result) -> str:
    """The first line of a short result that is written for people; empty if it is data."""
    if not 2 < len(result.content) <= MAX_RESULT_BYTES or result.is_error:
        return ""
    try:
        blocks = _blocks.decode(result.content)
    except MsgspecError:  # the content of another server may be of any form
        return ""
    for block in blocks:
        if block.type == "text":
            line = block.text.strip().partition("\n")[0].strip()
            return "" if len(line) > MAX_LINE_CHARS or _IS_DATA.match(line) else line
    return ""
