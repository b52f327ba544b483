"""`describe_fact` is the line of a fact; `failure_text`, `reading_text`, `result_texts` are parts of it."""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from afoot.cli.terminal.text import clean, format_progress, short_question_id
from afoot.core.facts import (
    Admitted,
    Amended,
    Answered,
    Asked,
    CancelRequested,
    Fact,
    Finished,
    HandedOver,
    Hindered,
    Interrupted,
    Logged,
    Opened,
    Reading,
    Redefined,
    Released,
    Reported,
    Result,
    Started,
)


def reading_text(item: Reading | Reported) -> str:
    """A reading as text: progress and message."""
    source = item.source if isinstance(item, Reading) else "tool"
    number = format_progress(item.progress, item.total, source)
    return " ".join(part for part in (number, clean(item.message or "")) if part)


def describe_fact(fact: Fact) -> tuple[str, str]:
    """A fact as its word and the rest of its line."""
    word, rest = _describe_fact(fact)
    return word, clean(rest)


def failure_text(end: Finished) -> str:
    """The failure's message without its outcome, which is printed before it."""
    message = clean(end.failure.message) if end.failure is not None else ""
    return message.removeprefix(f"{end.outcome.replace('_', ' ')}: ")


def compact_json(value: Raw) -> str:
    """JSON on one line."""
    return clean(json.dumps(json.loads(bytes(value)), ensure_ascii=False)) if value else ""


def result_texts(result: Result) -> Iterator[str]:
    """The texts of a result; a block that is no text is named in brackets."""
    blocks: list[dict[str, Any]] = json.loads(bytes(result.content) or b"[]")
    for block in blocks:
        yield content_text(block)
    if not blocks and result.structured:
        yield compact_json(result.structured)


def _describe_fact(fact: Fact) -> tuple[str, str]:
    match fact:
        case Opened():
            who = f"by {clean(fact.caller)}, approval {fact.approval}"
            return "opened", f"{clean(fact.tool)} {compact_json(fact.arguments)} {who}"
        case Amended() | Admitted() | Redefined():
            return _describe_preparation(fact)
        case Started():
            return "started", f"attempt {fact.attempt}{fact.why and f': {fact.why}'}" * (fact.attempt > 1)
        case Interrupted():
            return "interrupt", "the gateway died" + f"; it had run {fact.spent_s:.1f} s" * (fact.spent_s > 0)
        case Reported():
            return "late" if fact.late else "reported", _report_text(fact)
        case Logged():
            return "logged", f"{fact.level}{' ' + fact.logger if fact.logger else ''}: {clean(fact.text)}"
        case HandedOver():
            return "handed", f"over as a {fact.what}: its request ended before it"
        case Hindered():
            return "hindered", f"{clean(fact.by)}: {clean(fact.hint)}" if fact.by else "no more"
        case Asked():
            asked = fact.question
            return "asked", f"{clean(asked.message) or asked.kind} (question {short_question_id(asked.id)})"
        case Answered():
            said = f"{fact.answer.action} {compact_json(fact.answer.content)}".rstrip()
            return "answered", f"{said} by {fact.answer.by}"
        case CancelRequested():
            return "cancel", f"by {fact.by}: {clean(fact.reason)}"
        case Finished():
            return "finished", _finish_text(fact)
        case Released():
            return "released", "" if fact.how == "stopped" else f"after its {fact.how}, still running"


def _describe_preparation(fact: Amended | Admitted | Redefined) -> tuple[str, str]:
    match fact:
        case Amended():
            return "amended", f"{compact_json(fact.arguments)} by {fact.by}"
        case Admitted():
            return "admitted", clean(fact.what)
        case Redefined():
            return "redefined", f"its tool has another definition now, approval {fact.approval}"


def _report_text(fact: Reported) -> str:
    parts = [reading_text(fact)]
    for name in ("data", "partial", "checkpoint"):
        value: Raw = getattr(fact, name)
        if value:
            is_content = name == "partial" and bytes(value)[:1] == b"["
            parts.append(
                f"{name} {_result_in_one_line(Result(value)) if is_content else compact_json(value)}"
            )
    if fact.children:
        parts.append(f"calls behind it: {', '.join(f'{one.tool} {one.state}' for one in fact.children[:3])}")
        parts.append(f"and {len(fact.children) - 3} more" if len(fact.children) > 3 else "")
    return " ".join(part for part in parts if part)


def _finish_text(fact: Finished) -> str:
    text = _result_in_one_line(fact.result) if fact.result else ""
    parts = [fact.outcome, failure_text(fact) if fact.failure else "", text]
    return ": ".join(part for part in parts if part)


def _result_in_one_line(result: Result) -> str:
    return " ".join(" ".join(result_texts(result)).split())


def content_text(block: dict[str, Any]) -> str:
    """The text of a content block; one that is no text is named in brackets."""
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
