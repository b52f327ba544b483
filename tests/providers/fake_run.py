"""A run that a test scripts: a real implementation of the port that records what it gets."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from afoot.core.facts import NOTHING, Answer, Question, Result
from afoot.core.ports import CallOrigin, MessageLog, Report
from afoot.providers.functions.options import FunctionSettings
from afoot.providers.functions.tool import FunctionProvider

Reading = tuple[float | None, float | None, str | None]


class ScriptedRun:
    """Records everything in order; answers questions from a list; fails if it is used off its loop."""

    def __init__(self, run_id: str = "c1", answers: Iterable[Answer] = (), resumed_from: bytes = b"") -> None:
        self.id = run_id
        self.attempt = 1
        self.caller = "tester"
        self.origin = CallOrigin()
        self.cancelled: str | None = None
        self.resumed_from = Raw(resumed_from)
        self.more = NOTHING
        self.trace: dict[str, str] = {}
        self.wire_log: MessageLog | None = None
        self.readings: list[Reading] = []
        self.contents: list[Report] = []
        self.logs: list[tuple[str, str, str]] = []
        self.questions: list[Question] = []
        self.beats = 0
        self.cpu_s = 0.0
        self.left: tuple[float | None, float] = (30.0, 300.0)  # the budget
        self.waits: list[str | None] = []
        self.hindrances: list[tuple[str, str]] = []
        self.held_loop = False
        self.changed: list[str] = []
        self.calls: list[tuple[str, Raw, float]] = []
        self.results: list[Result] = []
        self.events: list[str] = []
        self.asked = asyncio.Event()
        self._answers = list(answers)
        self._thread = threading.get_ident()

    def report(self, progress: float | None, total: float | None, message: str | None) -> None:
        self._heard("report")
        self.readings.append((progress, total, message))

    def content(self, report: Report) -> None:
        self._heard("content")
        self.contents.append(report)

    def alive(self) -> None:
        self._heard("alive")
        self.beats += 1

    def log(self, text: str, level: str, logger: str, more: Raw = NOTHING) -> None:
        self._heard("log")
        self.logs.append((text, level, logger))

    async def ask(self, question: Question) -> Answer:
        self._heard("ask")
        self.questions.append(question)
        self.asked.set()
        if not self._answers:
            await asyncio.Event().wait()  # nobody answers
        await asyncio.sleep(0)
        return self._answers.pop(0)

    def budget(self) -> tuple[float | None, float]:
        return self.left

    def waiting(self, message: str | None) -> None:
        self._heard("waiting")
        self.waits.append(message)

    def resource_changed(self, uri: str) -> None:
        self._heard("resource_changed")
        self.changed.append(uri)

    def holds_loop(self) -> None:
        self.held_loop = True

    def spent(self, cpu_s: float) -> None:
        self.cpu_s += cpu_s

    def hindered(self, by: str, hint: str) -> None:
        self.hindrances.append((by, hint))

    async def call(self, tool: str, arguments: Raw, weight: float, key: str = "") -> Result:
        self._heard("call")
        self.calls.append((tool, arguments, weight))
        await asyncio.sleep(0)
        return self.results.pop(0)

    def _heard(self, what: str) -> None:
        assert threading.get_ident() == self._thread, f"{what} came from another thread"
        self.events.append(what)


def accept(value: object) -> Answer:
    """An accepted answer."""
    return Answer("accept", Raw(msgspec.json.encode(value)))


def decoded(raw: Raw) -> Any:
    """The value of encoded JSON, None for nothing."""
    return msgspec.json.decode(bytes(raw)) if bytes(raw) else None


def text_of(result: Result) -> str:
    """All the text of a result."""
    items: list[dict[str, str]] = decoded(result.content)
    return "".join(item.get("text", "") for item in items)


async def call(
    function: Callable[..., Any],
    arguments: object = None,
    run: ScriptedRun | None = None,
    settings: FunctionSettings | None = None,
) -> Result:
    """One call of one function, prepared and run to its end."""
    provider = FunctionProvider([function], settings=settings or FunctionSettings())
    raw = Raw(msgspec.json.encode({} if arguments is None else arguments))
    name = provider.tools()[0].name
    try:
        return await provider.prepare(name, raw)(run or ScriptedRun())
    finally:
        provider.close()


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something another thread does."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it never happened"
        await asyncio.sleep(0.005)
