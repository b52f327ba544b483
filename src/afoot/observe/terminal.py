"""Calls in words for a terminal: facts as lines, results as text, ids and times cut short."""

import json
import re
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
from afoot.core.figures import figure
from afoot.observe.eta import Eta

SHORT = 8
_UNITS = (("h", 3600), ("min", 60), ("s", 1))
_PACES = (("s", 1), ("min", 60), ("h", 3600))


def short(call: str) -> str:
    """The end of an id: it begins with its time, so that neighbours begin alike."""
    return call[-SHORT:]


def clean(text: str, keep: str = "") -> str:
    """The text with a visible mark for every character that steers a terminal or is not seen."""
    if text.isascii() and text.isprintable():
        return text
    text = text.translate(_MARKS.setdefault(keep, _Marks(keep)))
    return re.sub(_JOINER, _joined, text) if _JOINER in text else text


def cells(text: str) -> int:
    """How many columns a clean text takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def cut(text: str, width: int) -> str:
    """One line of at most this width; the work is bounded by the width, too."""
    most = 8 * max(0, width)  # marks that add to the letter before take no column
    text = clean(text) if len(text) <= most else clean(text[:most]) + "…"
    if cells(text) <= width:
        return text
    used, end = 1, 0
    while end < len(text) and used + _cell(text[end]) <= width:
        used += _cell(text[end])
        end += 1
    return f"{text[:end]}…" if width > 0 else ""


def padded(text: str, width: int) -> str:
    """The text in a column of exactly this width."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def wrapped(text: str, width: int) -> Iterator[str]:
    """A clean text in lines of at most this width."""
    line, used = "", 0
    for char in text:
        if used + _cell(char) > max(2, width):
            yield line
            line, used = "", 0
        line, used = line + char, used + _cell(char)
    yield line


class _Marks(dict[int, str | int]):
    """By character: itself, or the mark drawn for it; the same marks as in the console."""

    def __init__(self, keep: str) -> None:
        super().__init__({ord(char): char for char in keep + _JOINER})

    def __missing__(self, code: int) -> str | int:
        found: str | int = code
        if code < 0x20:
            found = chr(0x2400 + code)
        elif code == 0x7F:
            found = "␡"
        elif code in _FILLERS or unicodedata.category(chr(code)) in _UNSEEN:
            found = f"⟨U+{code:04X}⟩"
        self[code] = found
        return found


_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and marks that look like nothing: fillers, selectors, tags.
_FILLERS = {0x115F, 0x1160, 0x3164, 0xFFA0, 0x034F, 0x2800, *range(0x180B, 0x1810), *range(0xE0100, 0xE01F0)}
_JOINER = "\u200d"
_UNIT = re.compile("(....)")
_MARKS: dict[str, _Marks] = {}


def _joined(found: re.Match[str]) -> str:
    """A joiner as it is where it makes one emoji of two, else its mark."""
    text, place = found.string, found.start()
    around = text[max(0, place - 2) : place].rstrip("\ufe0f")[-1:] + text[place + 1 : place + 2]
    is_emoji = len(around) == 2 and all(unicodedata.category(one) in ("So", "Sk") for one in around)
    return _JOINER if is_emoji else "⟨U+200D⟩"


def _cell(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def name(tool: str, width: int = 16) -> str:
    """The name of a tool, cut at its front: of a page's, it is the end that says what it does."""
    tool = clean(tool[-8 * width :])
    if cells(tool) <= width:
        return tool
    start = len(tool)
    while start and cells(tool[start - 1 :]) < width:
        start -= 1
    return f"…{tool[start:]}"


def lasting(seconds: float) -> str:
    """A duration: 0.5 s, 12 s, 3:05 min, 2:01:00 h."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def left(eta: Eta | None, age_s: float = 0.0) -> str:
    """How long it still takes: about 20-40 s left, about 2-4 min left; nothing if that is unknown.

    `age_s`: how long ago that was said. What should long be over is unknown again.
    """
    if eta is None or (age_s > 1.0 and eta.high_s <= age_s):
        return ""
    eta = Eta(max(0.0, eta.low_s - age_s), max(0.0, eta.high_s - age_s)) if age_s > 1.0 else eta
    name, unit_s = next((name, size) for name, size in _UNITS if eta.high_s >= 2 * size or size == 1)
    low, high = round(eta.low_s / unit_s), max(1, round(eta.high_s / unit_s))
    if low < 1:
        return f"up to {high} {name} left"
    return f"about {low} {name} left" if low >= high else f"about {low}-{high} {name} left"


def passed(seconds: float) -> str:
    """A time that goes on: 0:07, 12:40, 1:02:03."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def pace(rate: float | None) -> str:
    """How fast it goes: 3.1/s, 12/min, 5/h; nothing if that is unknown."""
    if not rate or rate < 0:
        return ""
    name, size = next((unit for unit in _PACES if rate * unit[1] >= 1), _PACES[-1])
    return f"{rate * size:.3g}/{name}"


def at(instant: float) -> str:
    """An instant: the time of day, and the day if it is not today."""
    when = time.localtime(instant)
    today = time.strftime("%Y-%m-%d", when) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S", when)


def amount(progress: float | None, total: float | None) -> str:
    """How far: 3/20, or 3 if nobody knows of how many."""
    if progress is None:
        return ""
    return figure(progress) if total is None else f"{figure(progress)}/{figure(total)}"


def reading(item: Reading | Reported) -> str:
    """A report as a line."""
    return " ".join(part for part in (amount(item.progress, item.total), clean(item.message or "")) if part)


def told(fact: Fact) -> tuple[str, str]:
    """What happened in a word, and the rest of the line."""
    word, rest = _told(fact)
    return word, clean(rest)


def escaped(text: str) -> str:
    """JSON of the same meaning, with nothing in it that steers a terminal or is not seen."""
    if text.isascii() and text.isprintable():
        return text
    units = ((char, char.encode("utf-16-be", "surrogatepass").hex()) for char in text)
    return "".join(
        char if clean(char) == char and char != _JOINER else _UNIT.sub(r"\\u\1", code) for char, code in units
    )


def _told(fact: Fact) -> tuple[str, str]:
    match fact:
        case Opened():
            who = f"by {clean(fact.caller)}, approval {fact.approval}"
            return "opened", f"{clean(fact.tool)} {plain(fact.arguments)} {who}"
        case Amended():
            return "amended", f"{plain(fact.arguments)} by {fact.by}"
        case Admitted():
            return "admitted", clean(fact.what)
        case Started():
            return "started", f"attempt {fact.attempt}{fact.why and f': {fact.why}'}" * (fact.attempt > 1)
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


def _reported(fact: Reported) -> str:
    parts = [reading(fact)]
    for name in ("data", "partial", "checkpoint"):
        value: Raw = getattr(fact, name)
        if value:
            is_content = name == "partial" and bytes(value)[:1] == b"["
            parts.append(f"{name} {_in_line(Result(value)) if is_content else plain(value)}")
    return " ".join(part for part in parts if part)


def _in_line(result: Result) -> str:
    return " ".join(" ".join(content(result)).split())


def _finished(fact: Finished) -> str:
    text = _in_line(fact.result) if fact.result else ""
    parts = [fact.outcome, why(fact) if fact.failure else "", text]
    return ": ".join(part for part in parts if part)
