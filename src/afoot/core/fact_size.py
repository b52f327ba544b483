"""`fact_bytes` is the size of a fact in memory, and `without_content` leaves out what makes it large.

Queues of facts have their bounds in bytes: a thousand facts may be a hundred kilobytes, or thirty gigabytes.
"""

from msgspec import Raw, json
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Fact, Finished, Logged, Opened, Reported, Result

FACT_BYTES = 200  # about what every fact takes besides its content
MIN_SHED_BYTES = 4096  # of content that is worth leaving out


def fact_bytes(fact: Fact) -> int:
    """The approximate number of bytes that a fact takes in memory."""
    # Asked six times a call: `type` is quicker than `isinstance`, which also looks for subclasses.
    if type(fact) is Opened:
        return FACT_BYTES + len(fact.arguments) + len(fact.more)
    if type(fact) is Finished:
        return FACT_BYTES + (0 if fact.result is None else result_bytes(fact.result))
    if type(fact) is Reported:
        content = len(fact.data) + len(fact.partial) + len(fact.checkpoint) + len(fact.more)
        return FACT_BYTES + content + len(fact.message or "")
    if type(fact) is Logged:
        return FACT_BYTES + len(fact.text) + len(fact.more)
    return FACT_BYTES


def result_bytes(result: Result) -> int:
    """The bytes of a result."""
    return len(result.content) + len(result.structured) + len(result.more)


def without_content(fact: Fact, why: str) -> Fact:
    """The fact without its content, and with a text that says so; the same fact if it has little content.

    A result becomes an error: nobody may take it for the whole.
    """
    size = fact_bytes(fact) - FACT_BYTES
    if size < MIN_SHED_BYTES:
        return fact
    text = f"{size} bytes were not kept: {why}"
    if isinstance(fact, Finished):
        content = Raw(json.encode([{"type": "text", "text": text}]))
        return replace(fact, result=Result(content, is_error=True))
    if isinstance(fact, Reported):
        return replace(fact, message=text, data=NOTHING, partial=NOTHING, checkpoint=NOTHING, more=NOTHING)
    if isinstance(fact, Logged):
        return replace(fact, text=text, more=NOTHING)
    return fact
