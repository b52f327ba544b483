"""`write_history` writes an hour of calls into a new history, for pictures."""

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import Raw, json

from afoot.core.call import fold
from afoot.core.facts import (
    Answer,
    Answered,
    Asked,
    Entry,
    Fact,
    Failure,
    Finished,
    Interrupted,
    Opened,
    Question,
    Reading,
    Released,
    Result,
    Sample,
    Started,
)
from afoot.core.ports import Batch, CallRow
from afoot.store.sqlite import SqliteJournal

CALLERS = ("cursor", "assistant", "vscode")
# Tool, server, seconds that it takes, calls in the hour, its last words.
LONG = (
    ("transcribe_meeting", "media", 240, 6, "47 of 47 chunks"),
    ("export_pages", "local", 75, 9, "240 pages, 38.2 MB"),
    ("index_repository", "local", 55, 9, "4,118 files, 312 changed"),
    ("browse_shop", "browser", 58, 8, "17 orders read"),
    ("wait_for_ci", "ci", 120, 3, "pipeline 4711 passed"),
)
SHORT = (
    "fetch_invoices", "lookup_customer", "sync_calendar", "search_notes", "render_chart", "send_mail",
    "list_tickets", "read_page", "resize_photo", "translate", "count_words", "check_links",
)  # fmt: skip
APPROVAL = Question("", "afoot_approval", "approval")


async def write_history(path: Path, now: float, calls: int = 350) -> None:
    """Write about so many calls of the last hour into the history at this path."""
    chance = random.Random(7)
    async with SqliteJournal(path) as journal:
        made = [*_long(chance, now), *_trees(chance, now), *_failed(now), *_short(chance, now, calls)]
        for number, (facts, message) in enumerate(sorted(made, key=lambda one: one[0][0].at)):
            await _write(journal, f"{number:06x}{chance.getrandbits(40):010x}", facts, message)


async def _write(journal: SqliteJournal, name: str, facts: list[Fact], message: str) -> None:
    first, end = facts[0], facts[-2]
    assert isinstance(first, Opened) and isinstance(end, Finished)
    name = first.key or name
    facts[0] = _without_key(first)
    call = fold(name, facts)
    words = end.failure.message if end.failure else message
    row = CallRow(
        name, first.tool, first.server, first.caller, first.at, "finished", end.outcome, end.at, None, None,
        words, call.started, call.approved, first.parent or "", "",
        None if call.started is None else call.spent_s,
    )  # fmt: skip
    samples = [Sample(name, 1, Reading(end.at, message=message))] if message else []
    done = journal.write(
        Batch([Entry(name, at, fact) for at, fact in enumerate(facts, 1)], samples, {name: row})
    )
    if done is not None:
        await done


def _without_key(opened: Opened) -> Opened:
    return Opened(
        opened.at, opened.tool, opened.server, opened.caller, opened.arguments, parent=opened.parent,
        approval=opened.approval,
    )  # fmt: skip


Made = tuple[list[Fact], str]


def _call(
    tool: str, server: str, at: float, took: float, message: str, *, caller: str = "cursor",
    queued: float = 0, asked: float = 0, lost: float = 0, parent: str = "", name: str = "",
    failure: str = "", outcome: str = "ok",
) -> Made:  # fmt: skip
    """One call from its opening to its end; `name` stands in its key until it is written."""
    approval = "ask" if asked else "auto"
    arguments = Raw(json.encode({"name": tool}))
    facts: list[Fact] = [
        Opened(at, tool, server, caller, arguments, parent=parent or None, approval=approval, key=name)
    ]
    if asked:
        question = Question(f"{tool}.1", APPROVAL.key, APPROVAL.kind, f"Run {tool}?")
        facts.append(Asked(at, question))
        facts.append(
            Answered(at + asked, question.id, Answer("accept", Raw(b'{"decision":"run"}'), "operator"))
        )
    start = at + asked + queued
    facts.append(Started(start))
    if lost:
        facts.append(Interrupted(start + lost + 1, lost))
        facts.append(Started(start + lost + 4, 2, spent_s=lost))
        start += lost + 4
    end = start + took
    wrong = (
        None if outcome in ("ok", "cancelled") else Failure(failure or "it failed", category="unavailable")
    )
    result = Result(Raw(b'[{"type":"text","text":"done"}]')) if outcome == "ok" else None
    facts += [Finished(end, outcome, result, wrong), Released(end)]
    return facts, message


def _long(chance: random.Random, now: float) -> Iterator[Made]:
    for tool, server, took, count, message in LONG:
        for number in range(count):
            at = now - 3500 + (number + chance.random() * 0.7) * 3300 / count
            queued = 20 if tool == "wait_for_ci" else 0
            lost = 30 if (tool, number) == ("index_repository", 6) else 0
            length = min(took * (0.7 + 0.5 * chance.random()), now - at - 40)
            yield _call(
                tool, server, at, length, message, caller=chance.choice(CALLERS), queued=queued, lost=lost
            )
    for before in (2500, 1050, 400):
        yield _call("deploy", "shop-ops", now - before, 45, "checkout 4711 runs", asked=110)


def _trees(chance: random.Random, now: float) -> Iterator[Made]:
    for number, at in enumerate((now - 1070, now - 530)):
        top = f"report{number}{chance.getrandbits(40):010x}"
        pages = f"pages{number}{chance.getrandbits(40):010x}"
        yield _call("nightly_report", "local", at, 214, "48 rows, 3 broken links", asked=22, name=top)
        for tool, after, took, message in (
            ("collect_metrics", 23, 13, "24 metrics"),
            ("index_repository", 24, 123, "4,118 files, 312 changed"),
            ("render_charts", 131, 52, "7 charts"),
            ("send_summary", 190, 43, "sent to 2 lists"),
        ):
            yield _call(tool, "local", at + after, took, message, parent=top)
        yield _call("export_pages", "local", at + 23, 106, "240 pages, 38.2 MB", parent=top, name=pages)
        yield _call("resize_images", "local", at + 70, 58, "1,132 images", parent=pages)


def _failed(now: float) -> Iterator[Made]:
    ends = (
        ("transcribe_meeting", "media", 850, 300, "timed_out", "ended at the ceiling: 5:00 on the clock"),
        ("crawl_docs", "web", 1140, 104, "timed_out", "ended by silence: 0:30 without a report"),
        ("sync_calendar", "calendar", 39, 2.3, "failed", "401 from the calendar: token expired"),
        ("sync_calendar", "calendar", 1980, 1.2, "failed", "401 from the calendar: token expired"),
        ("send_mail", "mail", 2440, 1.9, "failed", "the mailbox is full"),
        ("scan_receipts", "media", 60, 33, "cancelled", ""),
    )
    for tool, server, before, took, outcome, words in ends:
        yield _call(tool, server, now - before, took, "22 of 40", failure=words, outcome=outcome)


def _short(chance: random.Random, now: float, calls: int) -> Iterator[Made]:
    for _ in range(calls):
        tool = chance.choice(SHORT)
        yield _call(
            tool, tool.split("_")[-1], now - 30 - chance.random() * 3500, 0.2 + chance.random() * 1.6,
            f"{chance.randrange(1, 60)} items", caller=chance.choice(CALLERS),
        )  # fmt: skip
