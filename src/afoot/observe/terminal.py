"""Calls in words for a terminal: facts as lines, results as text, ids and times cut short."""

import json
import time
import unicodedata
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from afoot.core.facts import (
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    Logged,
    Opened,
    Reading,
    Released,
    Reported,
    Result,
    Started,
)

SHORT = 8


def short(call: str) -> str:
    """The end of an id: it begins with its time, so that neighbours begin alike."""
    return call[-SHORT:]


def clean(text: str, keep: str = "") -> str:
    """The text without characters that could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or not unicodedata.category(char).startswith("C") else " " for char in text
    )


def cut(text: str, width: int) -> str:
    """One line of at most this width."""
    text = clean(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def lasting(seconds: float) -> str:
    """A duration: 0.5 s, 12 s, 3:05 min, 2:01:00 h."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def at(instant: float) -> str:
    """An instant: the time of day, and the day if it is not today."""
    when = time.localtime(instant)
    today = time.strftime("%Y-%m-%d", when) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", when)


def amount(progress: float | None, total: float | None) -> str:
    """How far: 3/20, or 3 if nobody knows of how many."""
    if progress is None:
        return ""
    return f"{progress:.6g}" if total is None else f"{progress:.6g}/{total:.6g}"


def reading(item: Reading | Reported) -> str:
    """A report as a line."""
    return " ".join(part for part in (amount(item.progress, item.total), clean(item.message or "")) if part)


def told(fact: Fact) -> tuple[str, str]:
    """What happened in a word, and the rest of the line."""
    match fact:
        case Opened():
            who = f"by {clean(fact.caller)}, approval {fact.approval}"
            return "opened", f"{clean(fact.tool)} {plain(fact.arguments)} {who}"
        case Amended():
            return "amended", f"{plain(fact.arguments)} by {fact.by}"
        case Admitted():
            return "admitted", clean(fact.what)
        case Started():
            return "started", _again(fact) if fact.attempt > 1 else ""
        case Reported():
            return "late" if fact.late else "reported", _reported(fact)
        case Logged():
            return "logged", f"{fact.level}{' ' + fact.logger if fact.logger else ''}: {clean(fact.text)}"
        case Asked():
            question = fact.question
            return (
                "asked",
                f"{clean(question.message) or question.kind} (question {short_question(question.id)})",
            )
        case Answered():
            said = f"{fact.answer.action} {plain(fact.answer.content)}".rstrip()
            return "answered", f"{said} by {fact.answer.by}"
        case CancelRequested():
            return "cancel", f"by {fact.by}: {clean(fact.reason)}"
        case Finished():
            return "finished", _finished(fact)
        case Released():
            return "released", "" if fact.how == "stopped" else f"after its {fact.how}, still running"


def short_question(question: str) -> str:
    """A question's id, its call cut short."""
    call, _, number = question.rpartition(".")
    return f"{short(call)}.{number}"


def plain(value: Raw) -> str:
    """JSON on one line."""
    return clean(json.dumps(json.loads(bytes(value)), ensure_ascii=False)) if value else ""


def content(result: Result) -> Iterator[str]:
    """A result as text; what is no text is named."""
    blocks: list[dict[str, Any]] = json.loads(bytes(result.content) or b"[]")
    for block in blocks:
        yield _block(block)
    if not blocks and result.structured:
        yield plain(result.structured)


def _block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return clean(str(block.get("text", "")), keep="\n\t")
    if kind in ("image", "audio"):
        size = len(str(block.get("data", ""))) * 3 // 4
        return f"[{kind} {clean(str(block.get('mimeType', '')))}, {size} bytes]"
    if kind == "resource_link":
        return f"[{clean(str(block.get('name', 'link')))}: {clean(str(block.get('uri', '')))}]"
    inner = block.get("resource")
    if isinstance(inner, dict):
        text = inner.get("text")
        return clean(text, keep="\n\t") if isinstance(text, str) else f"[{clean(str(inner.get('uri', '')))}]"
    return clean(json.dumps(block, ensure_ascii=False))


def _again(fact: Started) -> str:
    return f"attempt {fact.attempt}{fact.why and f': {clean(fact.why)}'}"


def _reported(fact: Reported) -> str:
    parts = [reading(fact)]
    for name in ("data", "partial", "checkpoint"):
        value: Raw = getattr(fact, name)
        if value:
            parts.append(f"{name} {plain(value)}")
    return " ".join(part for part in parts if part)


def _finished(fact: Finished) -> str:
    if fact.failure is not None:
        return f"{fact.outcome}: {clean(fact.failure.message)}"
    text = " ".join(content(fact.result)) if fact.result else ""
    return f"{fact.outcome}: {' '.join(text.split())}" if text else fact.outcome
