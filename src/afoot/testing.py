"""For whoever tests a tool: a clock that jumps, a gateway in memory, and a tool that follows a script.

    outcome = try_tool(export, pages=200)
    assert outcome.outcome == "ok"
    assert outcome.elapsed_s == 100 and outcome.readings[-1].progress == 200

Async tools live on the fake clock: `asyncio.sleep`, timeouts and every limit of the gateway take no time.
A sync tool's thread is real: while it runs the clock stands still, unless `advance` moves it.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Unpack

from msgspec import Raw, Struct, convert, json

from afoot.config import Settings
from afoot.core.call import Call
from afoot.core.facts import Answer, Asked, Fact, Failure, Finished, Logged, Question, Reading, Released
from afoot.engine.bell import Bell
from afoot.engine.engine import Engine, Submission
from afoot.engine.live import Live
from afoot.fake_clock import TOOLS, Deadlock, FakeClock, advance, run
from afoot.gateway import MEMORY, Gateway
from afoot.providers.content import Partial
from afoot.providers.context import Context
from afoot.providers.function import tool
from afoot.providers.options import Options

_HERE: Final = {"enabled": False}  # a child process would know nothing of the fake clock
_PATIENCE_S: Final = 1.0  # a thread that is told to stop has this much real time to obey

__all__ = ["Deadlock", "FakeClock", "Outcome", "Trial", "advance", "run", "scripted", "try_tool"]


class Outcome(Struct, frozen=True):
    """How a call went: its end, its whole history, and every reading (of a burst the last 1,024)."""

    call: Call
    end: Finished
    facts: list[Fact]
    readings: list[Reading]

    @property
    def outcome(self) -> str:
        """ok, failed, cancelled or timed_out."""
        return self.end.outcome

    @property
    def failure(self) -> Failure | None:
        """Why it did not end well, and how far it had come."""
        return self.end.failure

    @property
    def result(self) -> Any:
        """What the tool returned: its structured form, or its text where it has none; None for nothing."""
        result = self.end.result
        if result is None:
            return None
        return json.decode(result.structured) if result.structured else _text(result.content)

    @property
    def elapsed_s(self) -> float:
        """From the call to its end, to the millisecond."""
        return round(self.end.at - self.call.opened.at, 3)

    @property
    def partials(self) -> list[str]:
        """The text of each partial result."""
        return [_text(partial) for partial in self.call.partials]

    @property
    def questions(self) -> list[Question]:
        """What was asked."""
        return [fact.question for fact in self.facts if isinstance(fact, Asked)]

    @property
    def logs(self) -> list[str]:
        """What the tool printed and logged."""
        return [fact.text for fact in self.facts if isinstance(fact, Logged)]


class Trial(Struct, frozen=True):
    """One call to be tried. `answers` are by key: content to accept, "decline" or "cancel"."""

    tool: Callable[..., Any]
    arguments: Mapping[str, object] = {}
    answers: Mapping[str, object] = {}
    cancel_after: float | None = None
    settings: Mapping[str, object] = {}

    async def run(self) -> Outcome:
        """Run it in a gateway in memory, to the end of its work."""
        settings = convert({"store": MEMORY, "isolation": _HERE, **self.settings}, Settings)
        async with Gateway(self.tool, settings=settings) as gateway:
            engine, name, arguments = gateway.engine, gateway.tools()[0].name, json.encode(self.arguments)
            answers = {key: _answer(given) for key, given in self.answers.items()}
            live = engine.submit(Submission(name, Raw(arguments), answers=answers))
            clock = asyncio.get_running_loop()
            if isinstance(clock, FakeClock):  # a thread that waits for an answer is not at work
                clock.is_busy = lambda thread: (
                    thread.name.startswith(TOOLS) and not (live.call.open or live.call.released)
                )
            if self.cancel_after is not None:
                clock.create_task(_cancel(engine, live, self.cancel_after))
            readings = await _listen(engine, live)
            facts = [entry.fact for entry in await engine.journal.facts(live.call.id)]
        assert live.call.end is not None, "a call that was released has ended"
        return Outcome(live.call, live.call.end, facts, readings)


def try_tool(
    tool: Callable[..., Any],
    /,
    *,
    answers: Mapping[str, object] | None = None,
    cancel_after: float | None = None,
    settings: Mapping[str, object] | None = None,
    **arguments: object,
) -> Outcome:
    """Call a tool in a gateway in memory, on the fake clock, and tell how it went.

    `answers` are by the question's key ("q1", "q2", … unless the tool names it): content to accept, "decline"
    or "cancel"; a question without one waits for the answer limit. `cancel_after`: seconds. `settings`: as in
    afoot.toml, such as `{"idle_s": 5}`. For a tool with parameters of these names use `run(Trial(…).run())`.
    """
    return run(Trial(tool, arguments, answers or {}, cancel_after, settings or {}).run())


def scripted(*steps: tuple[Any, ...], **options: Unpack[Options]) -> Callable[..., AsyncIterator[Any]]:
    """A tool that does what the steps say; options are those of `afoot.tool`.

    ("report", …) ("alive",) ("log", …) ("checkpoint", …) ("ask", …) ("sample", …) ("roots",) as in Context ·
    ("sleep", seconds) · ("stubborn", seconds): sleep through every cancel · ("partial", content) ·
    ("raise", error) · ("return", value). Without a return it returns what its questions brought, as a list.
    """

    async def script(ctx: Context | None = None) -> AsyncIterator[Any]:
        """Follows a script."""
        brought: list[Any] = []
        for verb, *rest in steps:
            match verb:
                case "return":
                    yield rest[0]
                    return
                case "raise":
                    raise rest[0]
                case "partial":
                    yield Partial(rest[0])
                case "sleep":
                    await asyncio.sleep(rest[0])
                case "stubborn":
                    await _stubborn(rest[0])
                case "ask" | "sample" | "roots" if ctx is not None:
                    reply = await getattr(ctx, verb)(*rest)
                    brought.append(reply.content if verb == "ask" else reply)
                case "report" | "alive" | "log" | "checkpoint" if ctx is not None:
                    getattr(ctx, verb)(*rest)
        if brought:
            yield brought

    return tool(**options)(script)


async def _stubborn(seconds: float) -> None:
    sleep = asyncio.ensure_future(asyncio.sleep(seconds))
    while not sleep.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(sleep)


async def _cancel(engine: Engine, live: Live, after: float) -> None:
    await advance(after)
    engine.cancel(live, "caller", "the test cancelled it")
    for thread in threading.enumerate():
        if thread.name == f"afoot-tool-{live.call.id}":
            await asyncio.to_thread(thread.join, _PATIENCE_S)
    await advance(live.call.opened.limits.grace_s)


async def _listen(engine: Engine, live: Live) -> list[Reading]:
    """Follow a call until its slot is free."""
    bell = Bell()
    readings: list[Reading] = []
    with engine.follow(live, bell.ring, 0) as follower:
        while True:
            await bell.wait()
            items = follower.take().items
            readings += [item for item in items if isinstance(item, Reading)]
            if any(isinstance(item, Released) for item in items):
                return readings


def _answer(given: object) -> Answer:
    if given in ("decline", "cancel"):
        return Answer(str(given), by="test")
    return Answer("accept", Raw(json.encode(given)), "test")


def _text(content: Raw) -> str:
    return "".join(str(item.get("text", "")) for item in json.decode(bytes(content)))
