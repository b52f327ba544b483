"""Questions of a server, in both eras, as ours; and our answers as it wants them."""

import msgspec
from msgspec import Raw, Struct, field

from afoot.core.facts import NOTHING, Answer, Question
from afoot.errors import ToolError
from afoot.wire.client_reading import Link, Outcome, Wish
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Fault, place

USER_REJECTED = -1  # what the specification's own examples use

# The categories that JSON-RPC's codes mean, and whether it makes sense to try again.
_CATEGORIES = {
    -32602: "validation",
    -32600: "validation",
    -32700: "validation",
    -32601: "not_found",
    -32002: "not_found",  # a resource, before 2026-07-28
    -32021: "refused",  # a capability that the caller lacks
    -32042: "refused",  # a page that nobody visited
    -32800: "cancelled",
    -32001: "timeout",
    -32000: "unavailable",
}


class _Elicit(Struct):
    message: str = ""
    mode: str | None = None
    url: str = ""
    schema: Raw = field(name="requestedSchema", default=NOTHING)


_elicit = msgspec.json.Decoder(_Elicit)


def question(wish: Wish, key: str, to: str = "") -> Question:
    """What a server asks; raises Fault if we have nobody for that."""
    if wish.method == "sampling/createMessage":
        return Question("", key, "sample", body=Raw(bytes(wish.params)), to=to)
    if wish.method == "roots/list":
        return Question("", key, "roots", to=to)
    if wish.method != "elicitation/create":
        raise Fault(METHOD_NOT_FOUND, f"unknown method {wish.method!r}")
    try:
        asked = _elicit.decode(wish.params or b"{}")
    except msgspec.ValidationError as error:
        raise Fault(INVALID_PARAMS, place(error, "params")) from None
    if asked.mode == "url":
        return visit(Link(asked.url, asked.message), key, to)
    return Question("", key, "form", asked.message, Raw(bytes(asked.schema)) or NOTHING, to)


def visit(link: Link, key: str, to: str = "") -> Question:
    """The question whether somebody visits a page."""
    return Question("", key, "url", link.message, Raw(msgspec.json.encode(link.url)), to)


def answered(asked: Question, answer: Answer) -> object:
    """The result that a server wants; raises Fault where only an error says no."""
    if asked.kind in ("form", "url"):
        if answer.action != "accept":
            return {"action": answer.action if answer.action == "decline" else "cancel"}
        if asked.kind == "url":
            return {"action": "accept"}
        return {"action": "accept", "content": answer.content or Raw(b"{}")}
    if answer.action == "accept" and answer.content:
        given = bytes(answer.content)
        return {"roots": Raw(given)} if asked.kind == "roots" and given[:1] == b"[" else answer.content
    if asked.kind == "roots":
        raise Fault(METHOD_NOT_FOUND, "the caller names no roots")
    raise Fault(USER_REJECTED, "the request was rejected")


def refused(error: ToolError) -> Fault:
    """That nobody could be asked, for a server that waits for an answer."""
    return Fault(INTERNAL_ERROR, error.message)


def tool_error(fault: Fault, server: str) -> ToolError:
    """The protocol's error as a tool's."""
    category = _CATEGORIES.get(fault.code, "internal")
    retryable = category in ("timeout", "unavailable")
    return ToolError(f"server {server}: {fault.message}", category, code=str(fault.code), retryable=retryable)


def told_error(outcome: Outcome) -> ToolError | None:
    """What an afoot behind us says of a failure, in its own words and categories (E1)."""
    error = outcome.meta.error if outcome.meta else None
    if error is None or not outcome.is_error:
        return None
    return ToolError(
        text_of(outcome.content) or error.category, error.category, code=error.code or None,
        retryable=error.retryable, retry_after=error.retry_after_s,
    )  # fmt: skip


class _Text(Struct):
    text: str = ""


def text_of(content: Raw) -> str:
    """All the text of a content list."""
    try:
        return "\n".join(item.text for item in msgspec.json.decode(content, type=list[_Text]) if item.text)
    except msgspec.ValidationError:
        return ""
