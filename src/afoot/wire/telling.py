"""How a call's end is told: readable text for a model, the same in fields for programs (E2)."""

from msgspec import UNSET, Raw, Struct, UnsetType, json

from afoot.core.call import Call
from afoot.core.facts import Failure, Finished, Reading, Result


class ErrorMeta(Struct, omit_defaults=True):
    """`_meta["dev.afoot/error"]`."""

    category: str
    code: str
    retryable: bool | UnsetType = UNSET
    retry_after_s: float | None = None
    clock: str | None = None
    elapsed_s: float | UnsetType = UNSET
    last: Reading | None = None
    side_effects: str | UnsetType = UNSET


def failure_text(failure: Failure) -> str:
    """What happened, how far it got, and what to do, in a few short sentences."""
    parts = [failure.message.rstrip(".")]
    if failure.last is not None:
        parts.append(
            f"It had got to {reading_text(failure.last)}, {failure.elapsed_s:.1f} s after it was called"
        )
    if failure.side_effects == "possible" and failure.category in ("timeout", "cancelled", "unavailable"):
        parts.append("It may have had side effects")
    if failure.retry_after_s is not None:
        parts.append(f"Try again after {failure.retry_after_s:g} s")
    elif failure.retryable:
        parts.append("It may be tried again")
    return ". ".join(parts)


def reading_text(reading: Reading) -> str:
    """`37/120: page 37`."""
    number = "" if reading.progress is None else f"{reading.progress:.12g}"
    if number and reading.total is not None:
        number += f"/{reading.total:.12g}"
    return ": ".join(part for part in (number, reading.message) if part) or "an unknown point"


def failure_meta(failure: Failure) -> ErrorMeta:
    """The same for programs; the trace stays at home."""
    return ErrorMeta(
        failure.category, failure.code, failure.retryable, failure.retry_after_s, failure.clock,
        failure.elapsed_s, failure.last, failure.side_effects,
    )  # fmt: skip


def outcome(call: Call, end: Finished) -> Result:
    """The result that the caller gets: the tool's own, or an error with what was there by then (P11)."""
    failure = end.failure
    if failure is None:
        return end.result or Result(Raw(b"[]"))
    text = json.encode({"type": "text", "text": failure_text(failure)})
    partial = b"".join(b"," + _items(part) for part in _partials(call, end) if _items(part))
    return Result(Raw(b"[" + text + partial + b"]"), is_error=True)


def _partials(call: Call, end: Finished) -> list[Raw]:
    return [*call.partials, end.result.content] if end.result is not None else call.partials


def _items(content: Raw) -> bytes:
    """The inside of an encoded list."""
    return bytes(content)[1:-1].strip()
