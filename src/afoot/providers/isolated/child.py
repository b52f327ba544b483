"""A child process as the gateway sees it, and one call in it."""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from afoot.core.facts import Result
from afoot.core.ports import Report, Run
from afoot.errors import RunnerDied
from afoot.providers.exits import ended
from afoot.providers.hygiene import lines
from afoot.providers.isolated.ends import broken, explained
from afoot.providers.isolated.frames import (
    Alive,
    Ask,
    Begin,
    Cancel,
    Died,
    Done,
    Frame,
    Invoke,
    Read,
    Reply,
    Said,
    Settle,
    Settled,
    Signal,
    Source,
    Told,
    Used,
    Watch,
    Withdraw,
)
from afoot.providers.isolated.frames import Line as Words
from afoot.providers.isolated.line import Line
from afoot.providers.isolated.pipe_run import troubled, whole

EOF_S: Final = 0.5  # between the end of its pipe and its own
DYING_S: Final = 3.0  # for the keeper to say that one is gone
LAST_WORDS_S: Final = 1.0  # for the keeper to say what it printed
COOPERATIVE: Final = 0.5  # of the grace: so long it may stop by itself
FIRM: Final = 0.4  # then it has a signal, and so long; killed before the grace is over, it has really stopped


class Child:
    """One child process. It is ready once it has loaded its module, and runs one call at a time."""

    def __init__(self, number: int, source: Source, tell_keeper: Callable[[Frame], None]) -> None:
        loop = asyncio.get_running_loop()
        self.number, self.source, self.born = number, source, loop.time()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[Died] = loop.create_future()
        self.line: Line | None = None
        self.why = ""  # it was given up
        self.is_doomed = False  # it was killed, and is still there
        self._tell_keeper = tell_keeper
        self._shift: Shift | None = None
        self._died: Died | None = None
        self._last_words = ""
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())

    def begin(self, shift: "Shift", begin: Begin) -> None:
        """Start a call; raises RunnerDied if it hears nothing any more, ToolError if that is too long."""
        if self.line is None or self.line.is_closing:  # since it was given to somebody
            raise RunnerDied("its child process was gone before the call began", began=False)
        self._shift = shift
        self._tell_keeper(Watch(self.number, begin.limits))
        self.line.send(begin)

    def send(self, said: Frame) -> None:
        """Say something to the call that runs."""
        if self.line is not None:
            self.line.send(said)

    def signal(self, number: int) -> None:
        """To it and to all that it started."""
        if not self.gone.done():
            self.is_doomed = self.is_doomed or number == signal.SIGKILL
            self._tell_keeper(Signal(self.number, number))

    def settle(self) -> None:
        """The call is over: have what it printed said."""
        self._tell_keeper(Settle(self.number))

    def free(self) -> None:
        """No call runs in it any more."""
        self._shift = None

    def hear(self, said: Frame) -> None:
        """From the child or, about it, from the keeper."""
        if isinstance(said, Died):
            self._died = said
            if self.line is None:
                self._bury()
            else:  # what it said before its end may still be on its way
                asyncio.get_running_loop().call_later(EOF_S, self._bury)
            return
        if isinstance(said, Said) and not self.ready.done():
            self._last_words = f"; its last words: {lines(said.lines[-1], 500)}"
        if self._shift is not None:
            self._shift.hear(said)

    def _bury(self) -> None:
        died = self._died
        if died is None or self.gone.done():
            return
        self.gone.set_result(died)
        if not self.ready.done():
            text = f"its child process {ended(died.code)} while it loaded the tool{self._last_words}"
            text = f"no child process: {died.why}" if died.why else text
            self.ready.set_exception(RunnerDied(text, began=False))
        if self._shift is not None:
            self._shift.hear(died)

    def lost(self, why: str, *, is_garbage: bool) -> None:
        """Its pipe carries garbage, or is closed: if it is not dead soon, nobody can hear it any more."""
        self.line = None
        if self._died is not None:
            self._bury()
        elif is_garbage:
            self._give_up(why)
        else:
            asyncio.get_running_loop().call_later(EOF_S, self._give_up, why)

    def _give_up(self, why: str) -> None:
        if not self.gone.done():
            self.why = self.why or why
            self.signal(signal.SIGKILL)


class Shift:
    """One call in one child: what it says goes to its run, what it is told comes from there."""

    def __init__(self, child: Child, run: Run, begin: Begin, grace_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._child, self._run, self._begin, self._grace_s = child, run, begin, grace_s
        self._over: asyncio.Future[None] = loop.create_future()
        self._settled: asyncio.Future[None] = loop.create_future()
        self._done: Done | None = None
        self._spent_s = 0.0
        self._is_worn = False
        self._asked: dict[int, asyncio.Task[None]] = {}

    @property
    def is_fit(self) -> bool:
        """Whether another call may run in the same child."""
        done = self._done
        ran_out = done is not None and done.trouble is not None and done.trouble.kind == "MemoryError"
        is_worn = self._is_worn or bool(self._child.why) or not self._settled.done()
        return done is not None and not (done.left or ran_out or is_worn)

    async def work(self) -> Result:
        """Run it; raises what the tool raised, ToolError for what it did to itself, RunnerDied."""
        try:
            self._child.begin(self, self._begin)
            await self._ended()
            if self._done is not None:
                await self._said()
        finally:
            self._child.free()
            for task in self._asked.values():
                task.cancel()
            if not self.is_fit:
                self._child.signal(signal.SIGKILL)
        return self._result()

    async def _ended(self) -> None:
        try:
            await asyncio.shield(self._over)
        except asyncio.CancelledError:
            await self._stop()

    async def _stop(self) -> None:
        """Ask it to stop, then firmly, then kill it; all of it within its grace (C7)."""
        self._child.send(Cancel(self._run.cancelled or "cancelled"))
        steps = ((COOPERATIVE, signal.SIGTERM), (FIRM, signal.SIGKILL))
        for share, number in steps:
            await asyncio.wait([self._over], timeout=share * self._grace_s)
            if self._over.done():
                return
            self._child.signal(number)
            self._is_worn = True  # whatever a signal met in it, also what an earlier call left at rest
        await asyncio.wait([self._over], timeout=DYING_S)
        if not self._over.done():
            raise asyncio.CancelledError

    async def _said(self) -> None:
        self._child.settle()
        await asyncio.wait([self._settled], timeout=LAST_WORDS_S)

    def _result(self) -> Result:
        done = self._done
        if done is not None and done.result is not None:
            return done.result
        if self._run.cancelled is not None:
            raise asyncio.CancelledError
        tool, limits = self._begin.tool, self._begin.limits
        if done is None:
            raise explained(tool, limits, self._child.gone.result(), self._child.why)
        assert done.trouble is not None
        raise broken(tool, limits, done.trouble)

    def hear(self, said: Frame) -> None:
        """Pass it on."""
        match said:
            case Read(p=progress, t=total, m=message):
                self._run.report(progress, total, message)
            case Told():
                parts = said.data, said.partial, said.checkpoint
                self._run.content(Report(said.progress, said.total, said.message, *parts))
            case Alive():
                self._run.alive()
            case Words(text=text, level=level, logger=logger):
                self._run.log(text, level, logger)
            case Said(stream=stream, lines=written):
                for one in written:
                    self._run.log(lines(one, 10 * self._begin.message_limit), "info", stream)
            case Ask() | Invoke():
                task = asyncio.create_task(self._answer(said))
                self._asked[said.number] = task
            case Withdraw(number=number):
                if (asked := self._asked.pop(number, None)) is not None:
                    asked.cancel()
            case _:
                self._note(said)

    def _note(self, said: Frame) -> None:
        match said:
            case Used(cpu_s=cpu_s):
                self._spend(cpu_s)
            case Settled(worn=worn):
                self._is_worn = self._is_worn or worn
                if not self._settled.done():
                    self._settled.set_result(None)
            case Done(cpu_s=cpu_s) | Died(cpu_s=cpu_s):
                self._spend(cpu_s)
                if isinstance(said, Done):
                    self._done = said
                for one in (self._over, self._settled) if isinstance(said, Died) else (self._over,):
                    if not one.done():
                        one.set_result(None)

    def _spend(self, cpu_s: float) -> None:
        if cpu_s > self._spent_s:
            self._run.spent(cpu_s - self._spent_s)
            self._spent_s = cpu_s

    async def _answer(self, said: Ask | Invoke) -> None:
        """Ask the engine, and pass on what comes of it."""
        try:
            if isinstance(said, Ask):
                reply = Reply(said.number, answer=await self._run.ask(said.question))
            else:
                result = await self._run.call(said.tool, said.arguments, said.weight)
                reply = Reply(said.number, result=whole(result))
            self._child.send(reply)
        except Exception as error:  # also one that is too long to be sent
            self._child.send(Reply(said.number, trouble=troubled(error)))
        finally:
            self._asked.pop(said.number, None)
