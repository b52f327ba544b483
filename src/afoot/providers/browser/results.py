"""What a page gave back, as a result or an error of ours; all of it is the page's word (B7)."""

import json
import re
from typing import Any

import msgspec
from msgspec import Raw

from afoot.core.facts import NOTHING, Result
from afoot.errors import ToolError
from afoot.providers.arguments import is_fit
from afoot.providers.browser.offers import Draft
from afoot.providers.content import text_content
from afoot.providers.hygiene import line, lines, plain_text
from afoot.wire.link import Ended
from afoot.wire.room import PageError

MESSAGE_LIMIT = 10_000
LONGEST_MS = 1e9
CATEGORIES = frozenset(
    (
        "auth",
        "rate_limit",
        "not_found",
        "validation",
        "timeout",
        "cancelled",
        "refused",
        "unavailable",
        "internal",
    )
)
SHAPE = {"content", "structuredContent", "isError", "_meta"}  # of a result as MCP has it
CONTENT = frozenset(("text", "image", "audio", "resource", "resource_link"))

_CODE = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def result(ended: Ended, draft: Draft) -> Result:
    """The result of a run; raises ToolError where it failed, or gave what it may not give."""
    if ended.error is not None:
        raise _error(ended.error)
    if not ended.value:
        return _fitting(Result(Raw(b"[]")), draft)
    value = _decoded(ended.value)
    if isinstance(value, str):
        return _fitting(Result(text_content(value)), draft)
    if isinstance(value, dict) and value.keys() <= SHAPE and _is_content(value.get("content")):
        structured = value.get("structuredContent")
        found = Raw(msgspec.json.encode(structured)) if isinstance(structured, dict) else NOTHING
        is_error = value.get("isError") is True
        made = Result(Raw(msgspec.json.encode(value["content"])), found, is_error)
        return made if is_error else _fitting(made, draft)
    text = text_content(bytes(ended.value).decode(errors="replace"))
    return _fitting(Result(text, ended.value.copy() if isinstance(value, dict) else NOTHING), draft)


def _fitting(made: Result, draft: Draft) -> Result:
    """A tool that says what it returns must return that: hosts rely on it."""
    if not draft.output:
        return made
    if not made.structured or not is_fit(draft.output, msgspec.json.decode(made.structured)):
        what = f"{draft.page} returned something that does not fit its own outputSchema"
        raise ToolError.internal(what, code="bad_result")
    return made


def _error(error: PageError) -> ToolError:
    """What a page threw. Its category counts if it is one of ours; its words are cleaned and cut."""
    name = line(error.name, 100) or "Error"
    text = lines(error.message, MESSAGE_LIMIT).strip()
    told = text if name in ("Error", "ToolError") and text else f"{name}: {text}" if text else name
    category = error.category if error.category in CATEGORIES else "internal"
    if category == "internal" and name == "AbortError":
        category = "cancelled"
    wait_ms = error.retry_after_ms
    wait_s = wait_ms / 1000 if wait_ms is not None and 0 <= wait_ms <= LONGEST_MS else None
    code = error.code if _CODE.fullmatch(error.code) else None
    return ToolError(told, category, code=code, retryable=error.retryable, retry_after=wait_s)


def _decoded(value: Raw) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # half a character, or a number that only the standard library reads
    except RecursionError:
        return None  # shown as the text it is
    try:
        found = json.loads(bytes(value).decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return plain_text(found) if isinstance(found, str) else None


def _is_content(items: object) -> bool:
    """Whether this is a list of content as MCP has it."""
    return isinstance(items, list) and all(
        isinstance(item, dict) and item.get("type") in CONTENT and _is_whole(item) for item in items
    )


def _is_whole(item: dict[str, Any]) -> bool:
    """Whether a piece of content has what its kind must have: hosts refuse a result for one that lacks it."""
    match item["type"]:
        case "text":
            return isinstance(item.get("text"), str)
        case "image" | "audio":
            return isinstance(item.get("data"), str) and isinstance(item.get("mimeType"), str)
        case "resource":
            return isinstance(item.get("resource"), dict) and isinstance(item["resource"].get("uri"), str)
        case _:
            return isinstance(item.get("uri"), str) and isinstance(item.get("name"), str)
