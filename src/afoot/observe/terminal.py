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
    Hindered,
    Logged,
    Opened,
    Reading,
    Released,
    Reported,
    Result,
    Started,
)
from afoot.observe.eta import Eta

SHORT = 8
_UNITS = (("h", 3600), ("min", 60), ("s", 1))


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


def name(tool: str, width: int = 16) -> str:
    """The name of a tool, cut at its front: of a page's, it is the end that says what it does."""
    tool = clean(tool)
    return tool if len(tool) <= width else "…" + tool[1 - width :]


def lasting(seconds: float) -> str:
    """A duration: 0.5 s, 12 s, 3:05 min, 2:01:00 h."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def left(eta: Eta | None) -> str:
    """How long it still takes: about 20-40 s left, about 2-4 min left; nothing if that is unknown."""
    if eta is None:
        return ""
    name, unit_s = next((name, size) for name, size in _UNITS if eta.high_s >= 2 * size or size == 1)
    low, high = round(eta.low_s / unit_s), max(1, round(eta.high_s / unit_s))
    if low < 1:
        return f"up to {high} {name} left"
    return f"about {low} {name} left" if low >= high else f"about {low}-{high} {name} left"


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
        case Hindered():
            return "hindered", f"{clean(fact.by)}: {clean(fact.hint)}" if fact.by else "no more"
        case Asked():
            asked = fact.question
            return "asked", f"{clean(asked.message) or asked.kind} (question {short_question(asked.id)})"
        case Answered():
            said = f"{fact.answer.action} {plain(fact.answer.content)}".rstrip()
            return "answered", f"{said} by {fact.answer.by}"
        case CancelRequested():
            return "cancel", f"by {fact.by}: {clean(fact.reason)}"
        case Finished():
            return "finished", _finished(fact)
        case Released():
            return "released", "" if fact.how == "stopped" else f"after its {fact.how}, still running"


def why(end: Finished) -> str:
    """What a failure says; its outcome, which stands before it, is not said twice."""
    message = clean(end.failure.message) if end.failure is not None else ""
    return message.removeprefix(f"{end.outcome.replace('_', ' ')}: ")


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
    text = " ".join(" ".join(content(fact.result)).split()) if fact.result else ""
    parts = [fact.outcome, why(fact) if fact.failure else "", text]
    return ": ".join(part for part in parts if part)
