"""`Deadlines` applies the clocks of calls, by one lazy timer for each; `LoopClock` measures their time.

Hearing a tool touches no timer: `LiveCall.heard` moves, and the timer that fires too early is set anew.

The gateway's own lateness is no silence of a tool. While calls live, the loop is expected at a regular beat:

- A stop of the process, or a sleep of the machine, is left out of `LoopClock`. No clock counts it.
- Any other lateness moves `heard` of all calls but the one whose tool held the loop.
- A clock that is due fires a few loop passes later, unless what waits in a socket or queue speaks against it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from math import inf

from afoot.core.call import State
from afoot.core.facts import Fact
from afoot.core.ports import TimerHandle
from afoot.core.rules import Tick, next_deadline
from afoot.engine.live_call import LiveCall

DEFER_S = 0.05  # a call gets its timer at this age, unless its clocks are as short
SHORT_LIMIT_S = 1.0  # a call with a shorter limit gets its timer at once
BEATS = 10  # in the shortest idle limit; so large a part of it may be lost unseen
MIN_BEAT_S, MAX_BEAT_S = 0.05, 1.0
MIN_LATE_S = 0.02  # a loop that comes round later than this is late
MIN_STOP_S = 1.0  # a process that neither ran nor computed for so long was stopped
# Passes of the loop between a clock that is due and its end of the call. Each pass reads what has come, and
# a report needs some to get from a socket through the tasks that read it: over HTTP three.
PASSES = 8

log = logging.getLogger("afoot.engine")


class LoopClock:
    """The loop's time, counted from 1970: wall time that never jumps, and fake where the loop's time is.

    It stands still while the process does not run. `holder` is the call whose tool holds the loop, if one was
    seen to: then the process does run.
    """

    __slots__ = ("_cpu_s", "_expected", "_loop", "_suspect", "holder", "offset", "skew_s")
    _loop: asyncio.AbstractEventLoop
    offset: float
    holder: object | None
    _expected: float
    _suspect: float
    skew_s: float  # by which the clock of the cluster is ahead of this machine's
    _cpu_s: float  # of the process, at the last beat

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the time of this loop from now on."""
        self._loop = loop
        self.skew_s = 0.0
        self.offset = time.time() - loop.time()
        self.holder = None
        self.expect_nothing()

    def follow(self, skew_s: float) -> None:
        """Take the time of the cluster, which is so far ahead of this machine's, before any call lives."""
        self.skew_s = skew_s
        self.offset = time.time() + skew_s - self._loop.time()

    def now(self) -> float:
        at = self._loop.time()
        # The first look at the clock after a stop finds it: nobody has seen a time that must be taken back.
        if at > self._suspect:
            self._leave_out_stop(at)
        return at + self.offset

    def at(self, when: float, then: Callable[[], object]) -> TimerHandle:
        """Call a function at an instant, or earlier if the clock stood still in between."""
        return self._loop.call_at(when - self.offset, then)

    def expect(self, within_s: float) -> None:
        """Note that the loop runs now, and is expected to run again within so long."""
        self._expected = self._loop.time() + within_s
        self._suspect = self._expected + MIN_STOP_S
        self._cpu_s = time.process_time()
        self.holder = None

    def expect_nothing(self) -> None:
        """Take no lateness for a stop: no call lives."""
        self._expected = self._suspect = inf
        self._cpu_s = 0.0
        self.holder = None  # else its result would be kept until the next call

    def late_s(self) -> float:
        """The seconds by which the loop runs later than expected, without a stop of the process."""
        self.now()
        return max(0.0, self._loop.time() - self._expected)

    def _leave_out_stop(self, at: float) -> None:
        """Stop the clock for a time in which the process did not run, if there was such a time."""
        self._suspect = inf  # until the next beat
        lost_s = at - self._expected
        if self.holder is None and time.process_time() - self._cpu_s < lost_s / 2:
            self.offset -= lost_s
            self._expected = at
            log.info("the gateway did not run for %.1f s: the clocks of all calls stood still", lost_s)


class Deadlines:
    """The timers of calls. `commit` applies a `Tick` to a call; `stop` is called where a clock has fired."""

    def __init__(
        self,
        clock: LoopClock,
        commit: Callable[[LiveCall, Tick], tuple[Fact, ...]],
        stop: Callable[[LiveCall], None],
        calls: Mapping[str, LiveCall],
    ) -> None:
        self._clock = clock
        self._commit = commit
        self._stop = stop
        self._calls = calls
        self._beat_s = MAX_BEAT_S
        self._beat_timer: TimerHandle | None = None
        # Actions that are needed only by what outlives DEFER_S, by the object they are for. An object that
        # is over before takes its action out.
        # Nearly every call ends before, so one timer, shared by all of them, stands for the timer of each and
        # for the watch of each request. Measured: a timer that is set and cancelled costs 1.4 to 2.2 µs.
        self.deferred: dict[object, Callable[[], object]] = {}
        self._is_scheduled = False

    def defer(self, owner: object, action: Callable[[], object]) -> None:
        """Call a function after a moment, unless its owner removes it from `deferred` before."""
        self.deferred[owner] = action
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_later(DEFER_S, self._run_deferred)
            if self._beat_timer is None:
                self._beat()

    def _run_deferred(self) -> None:
        actions = self.deferred
        self.deferred = dict[object, Callable[[], object]]()
        self._is_scheduled = False
        for action in actions.values():
            action()

    def begin(self, live: LiveCall, now: float) -> None:
        """Start the clocks of an attempt that begins now; its timer is set later, if it is still needed."""
        limits = live.call.opened.limits
        idle_s = inf if limits.idle_s is None else limits.idle_s
        live.due = now + min(limits.ceiling_s, idle_s)
        if limits.patient and live.call.is_patient:
            live.due = 0.0  # its first report begins another clock
        if live.timer is not None or limits.ceiling_s < SHORT_LIMIT_S or idle_s < SHORT_LIMIT_S:
            self.arm(live)
        self.defer(live, lambda: None if live.timer is not None else self.tick(live))

    def arm(self, live: LiveCall) -> None:
        """Set the timer of a call to its next deadline. Only its grace runs once it was told to stop."""
        call = live.call
        if call.state is State.CANCELLING:
            return
        if live.timer is not None:
            live.timer.cancel()
            live.timer = None
        when = next_deadline(call, live.heard)
        live.due = inf if when is None else when
        if call.is_patient and call.state is State.RUNNING:
            live.due = 0.0  # its first report begins another clock
        if when is not None:
            live.timer = self._clock.at(when, lambda: self.tick(live))
            if self._beat_timer is None or _beat_s(live) < self._beat_s:
                self._beat()

    def arm_grace(self, live: LiveCall, over: Callable[[], object]) -> None:
        """Give a call that was told to stop its grace; `over` is called after it."""
        if live.timer is not None:
            live.timer.cancel()
        live.due = inf  # no other clock runs any more, and none may take this timer's place
        self._wait_out_grace(live, self._clock.now() + live.call.opened.limits.grace_s, over)

    def _wait_out_grace(self, live: LiveCall, until: float, over: Callable[[], object]) -> None:
        if self._clock.now() < until:  # else it is over, or the clock stood still meanwhile
            live.timer = self._clock.at(until, lambda: self._wait_out_grace(live, until, over))
        else:
            over()

    def tick(self, live: LiveCall) -> None:
        """Look at the clocks of a call whose timer fired: one may be due. Otherwise set the timer anew."""
        self._forgive_lateness()
        when, now = next_deadline(live.call, live.heard), self._clock.now()
        if when is None or now < when:
            self.arm(live)
        elif now > when:
            self._look_again(live, PASSES)
        else:  # to the moment, as on a fake clock: nothing can have come in between
            self.apply(live)

    def hear_late(self, live: LiveCall) -> None:
        """Take in a sign of life of a tool after the instant at which one of its clocks was due.

        The loop was late, so the sign may be an old one. It counts, unless the tool itself held the loop.
        """
        if live is self._clock.holder:
            self.apply(live)
            return
        live.heard = self._clock.now()
        self.tick(live)
        if not live.due:  # a first report is being noted: the clock it begins can be set only after it
            asyncio.get_running_loop().call_soon(self.arm, live)

    def apply(self, live: LiveCall) -> None:
        """Apply the clocks of a call now, and set its timer anew if none fires."""
        if self._commit(live, Tick(self._clock.now(), live.heard)):
            self._stop(live)
        else:
            self.arm(live)

    def _look_again(self, live: LiveCall, passes: int) -> None:
        """Let what waits in sockets, pipes and queues be read first, then apply the clocks."""
        if passes:
            live.due = inf  # a report that is read meanwhile counts
            live.timer = asyncio.get_running_loop().call_soon(self._look_again, live, passes - 1)
        else:
            self.apply(live)

    # The beat at which the loop is expected while calls live

    def _beat(self) -> None:
        """Forgive the lateness of the loop since the last beat, and set the next, if any call lives."""
        self._forgive_lateness()
        if self._beat_timer is not None:
            self._beat_timer.cancel()
            self._beat_timer = None
        running = [live for live in self._calls.values() if live.call.end is None and live.mirror is None]
        if not (running or self._is_scheduled):
            self._clock.expect_nothing()
            return
        self._beat_s = min(map(_beat_s, running), default=MAX_BEAT_S)
        self._clock.expect(self._beat_s)
        self._beat_timer = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def _forgive_lateness(self) -> None:
        """Let the time in which the loop did not run count as no tool's silence, but the holder's own."""
        late_s = self._clock.late_s()
        if late_s < MIN_LATE_S:
            return
        holder, now = self._clock.holder, self._clock.now()
        self._clock.expect(self._beat_s)
        for live in list(self._calls.values()):
            if live is holder:
                self.apply(live)
            elif live.heard < now:
                live.heard = min(now, live.heard + late_s)


def _beat_s(live: LiveCall) -> float:
    """The distance of beats that a call needs."""
    idle_s = live.call.opened.limits.idle_s
    return MAX_BEAT_S if idle_s is None else min(MAX_BEAT_S, max(MIN_BEAT_S, idle_s / BEATS))
