"""`try_tool` and `FakeClock` test a tool without waiting: a gateway in memory, on a clock that jumps.

    outcome = try_tool(export, pages=200)
    assert outcome.outcome == "ok"
    assert outcome.elapsed_s == 100 and outcome.readings[-1].progress == 200

Async tools live on the fake clock: `asyncio.sleep`, timeouts and every limit of the gateway take no time.
A sync tool's thread is real: while it runs the clock stands still, unless `advance` moves it.
"""

import asyncio
import heapq
import math
import selectors
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Final, TypeVar, Unpack

from msgspec import Raw, Struct, convert, json

from afoot.config.settings import Settings
from afoot.core.call import Call
from afoot.core.facts import Answer, Asked, Fact, Failure, Finished, Logged, Question, Reading, Released
from afoot.engine.engine import Engine, Submission
from afoot.engine.followers import Wakeup
from afoot.engine.live_call import LiveCall
from afoot.gateway import MEMORY, OWN_CALLER, Gateway
from afoot.providers.content import Partial
from afoot.providers.functions import output_capture
from afoot.providers.functions.context import Caller, Context, origin_of, result_value
from afoot.providers.functions.options import ToolOptions
from afoot.providers.functions.tool import Overrides, tool

__all__ = ["Deadlock", "FakeClock", "Outcome", "Trial", "advance", "run", "scripted", "try_tool"]

TOOLS: Final = ("afoot-tool", "afoot-loop")  # how the names of tools' threads begin
_POLL_S: Final = 0.002  # how long a wait for threads lasts before the clock looks again
_HERE: Final = {"enabled": False}  # a child process would know nothing of the fake clock
_STOP_S: Final = 1.0  # a thread that is told to stop has this much real time to obey
_T = TypeVar("_T")


class Outcome(Struct, frozen=True):
    """The story of a call: its end, its whole history, and every reading (of a burst the last 1,024)."""

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
        """The reason why it did not end well, and how far it had come."""
        return self.end.failure

    @property
    def result(self) -> Any:
        """The result of the tool: its structured form, or its text where it has none; None for nothing."""
        return None if self.end.result is None else result_value(self.end.result)

    @property
    def elapsed_s(self) -> float:
        """The seconds from the call to its end, to the millisecond."""
        return round(self.end.at - self.call.opened.at, 3)

    @property
    def partials(self) -> list[str]:
        """The text of each partial result."""
        return [_text(partial) for partial in self.call.partials]

    @property
    def questions(self) -> list[Question]:
        """The questions that the tool asked."""
        return [fact.question for fact in self.facts if isinstance(fact, Asked)]

    @property
    def logs(self) -> list[str]:
        """The lines that the tool printed and logged."""
        return [fact.text for fact in self.facts if isinstance(fact, Logged)]


class Trial(Struct, frozen=True):
    """One call to be tried. `answers` are by key: content to accept, "decline" or "cancel"."""

    tool: Callable[..., Any]
    arguments: Mapping[str, object] = {}
    answers: Mapping[str, object] = {}
    cancel_after: float | None = None
    settings: Mapping[str, object] = {}
    caller: Caller = OWN_CALLER
    headers: Mapping[str, str] = {}
    overrides: Overrides = {}

    async def run(self) -> Outcome:
        """Run the tool in a gateway in memory, until its work has ended."""
        settings = convert({"store": MEMORY, "isolation": _HERE, **self.settings}, Settings)
        trial = Gateway(self.tool, settings=settings)
        trial.overrides = self.overrides
        async with trial as gateway:
            engine = gateway.engine
            name = next(iter(engine.catalog.known))  # also of one that is left out: its call says why
            arguments = json.encode(self.arguments)
            answers = {key: _answer(given) for key, given in self.answers.items()}
            origin = origin_of(self.caller, self.headers, engine.redactor)
            submission = Submission(name, Raw(arguments), self.caller.id, answers=answers, origin=origin)
            live = engine.submit(submission)
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
    caller: Caller = OWN_CALLER,
    headers: Mapping[str, str] | None = None,
    overrides: Overrides | None = None,
    **arguments: object,
) -> Outcome:
    """Call a tool in a gateway in memory, on the fake clock, and tell how it went.

    `answers` are by the question's key ("q1", "q2", … unless the tool names it): content to accept, "decline"
    or "cancel"; a question without one waits for the answer limit. `cancel_after`: seconds. `settings`: as in
    afoot.toml, such as `{"idle_s": 5}`. `caller` and `headers`: as the tool sees them.
    `overrides`: functions that run in the place of dependencies, `{get_db: get_test_db}`. For a tool with
    parameters of these names use `run(Trial(…).run())`.
    """
    trial = Trial(
        tool, arguments, answers or {}, cancel_after, settings or {}, caller, headers or {}, overrides or {}
    )
    return run(trial.run())


def scripted(*steps: tuple[Any, ...], **options: Unpack[ToolOptions]) -> Callable[..., AsyncIterator[Any]]:
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


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine on a fake clock of its own; raises Deadlock where it would wait for ever."""
    with asyncio.Runner(loop_factory=FakeClock) as runner:
        try:
            return runner.run(main)
        finally:
            output_capture.uninstall()


async def advance(seconds: float) -> None:
    """Let time pass, also while a tool's thread is busy; every timer on the way fires at its own instant."""
    clock = asyncio.get_running_loop()
    assert isinstance(clock, FakeClock), "advance() needs the fake clock: use run() or try_tool()"
    clock.until = max(clock.until, clock.time() + seconds)
    await asyncio.sleep(seconds)


class Deadlock(AssertionError):
    """The test would wait for ever: nothing is ready, no timer is set and no thread runs."""


class FakeClock(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while anything runs, and else jumps to the next timer.

    It waits really, in short polls, while a thread is busy: a tool's, one given to `hold`, or an executor's.
    Timers of one instant fire in the order in which they were set.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self.until = 0.0  # so far it may jump while threads are busy
        self._executing = 0
        self._timers_set = 0
        self._held: list[threading.Thread] = []
        self._older = frozenset(threading.enumerate())
        self.is_busy: Callable[[threading.Thread], bool] = lambda thread: thread.name.startswith(TOOLS)
        super().__init__(_Jumping(self))

    def time(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Set a timer, as `BaseEventLoop` does, whose heap leaves open the order within an instant."""
        timer = _OrderedTimer(when, callback, args, self, context)
        timer.number = self._timers_set = self._timers_set + 1
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True
        return timer

    def hold(self, thread: threading.Thread) -> None:
        """Do not jump while this thread lives."""
        self._held.append(thread)

    @property
    def is_held(self) -> bool:
        """Whether a thread is busy, so that time may not jump."""
        return self._executing > 0 or any(map(self._holds, threading.enumerate()))

    def jump(self, seconds: float | None, files: int, is_held: bool) -> bool:
        """Go on by up to this much, None if no timer is set; False if first something real must happen."""
        if seconds is None:
            if is_held or files > 1:  # besides the loop's own pipe there is a socket or a file
                return False
            waiting = "; ".join(map(repr, asyncio.all_tasks(self)))
            raise Deadlock(f"nothing is ready, no timer is set and no thread runs; these wait: {waiting}")
        step = min(seconds, self.until - self._now if is_held else math.inf)
        self._now += max(0.0, step)
        return step > 0

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., _T], *args: Any
    ) -> "asyncio.Future[_T]":
        """Work in a thread that time waits for."""
        future = super().run_in_executor(executor, func, *args)
        self._executing += 1
        future.add_done_callback(self._executed)
        return future

    async def shutdown_default_executor(self, *_: object) -> None:
        """End the threads, however long that really takes."""
        self._executing += 1
        await super().shutdown_default_executor()
        self._executing -= 1

    def _executed(self, _: object) -> None:
        self._executing -= 1

    def _holds(self, thread: threading.Thread) -> bool:
        return thread in self._held or (thread not in self._older and self.is_busy(thread))


class _OrderedTimer(asyncio.TimerHandle):
    number: int
    _scheduled: bool

    def __lt__(self, other: Any) -> bool:
        return (self._when, self.number) < (other._when, other.number)  # type: ignore[attr-defined]


class _Jumping(selectors.DefaultSelector):
    """A selector that lets time jump where the loop would wait for a timer."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        wait_s = 0.0
        while True:
            # Busy threads are looked for first: so the last word of a thread is seen before time goes on.
            is_held = self._clock.is_held
            found = super().select(wait_s)
            if found or (timeout is not None and timeout <= 0):
                return found
            if self._clock.jump(timeout, len(self.get_map()), is_held):
                return found
            wait_s = _POLL_S


async def _stubborn(seconds: float) -> None:
    sleep = asyncio.ensure_future(asyncio.sleep(seconds))
    while not sleep.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(sleep)


async def _cancel(engine: Engine, live: LiveCall, after: float) -> None:
    await advance(after)
    engine.cancel(live, "caller", "the test cancelled it")
    for thread in threading.enumerate():
        if thread.name == f"afoot-tool-{live.call.id}":
            await asyncio.to_thread(thread.join, _STOP_S)
    await advance(live.call.opened.limits.grace_s)


async def _listen(engine: Engine, live: LiveCall) -> list[Reading]:
    """Follow a call until its slot is free."""
    wakeup = Wakeup()
    readings: list[Reading] = []
    with engine.follow(live, wakeup.wake, 0) as follower:
        while True:
            await wakeup.wait()
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
