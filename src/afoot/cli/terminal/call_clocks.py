"""`read_clocks` tells how the two clocks of a call stand at an instant; `GatewayClock` knows its time.

Pure: time is an argument. `web/lib/call/clock_reading.js` computes the same on the same test vectors.
"""

from msgspec import Struct

from afoot.core.call import Call, State

LAST_SILENCE = 0.25  # of the idle limit
LAST_OF_CEILING = 0.1  # of the ceiling
CLOCK_JUMP_S = 2.0  # more than a slow network explains: a machine slept, or the gateway did not run
# The offset falls only after so many messages and so much time: one late message says nothing.
WINDOW_MESSAGES = 20
WINDOW_S = 5.0


class ClockReading(Struct, frozen=True):
    """The two clocks of a call as they stand at one instant.

    `frozen`: why both stand still: asked, below, queued, cancelling, ended; empty while they run.
    """

    silent_s: float
    idle_s: float | None
    silence_left: float  # 0 to 1
    is_silence_last: bool  # the last quarter
    used_s: float
    ceiling_s: float
    used: float  # 0 to 1
    is_ceiling_last: bool  # the last tenth
    ceiling_left_s: float
    frozen: str
    answer_left_s: float | None  # for the first of the call's own questions


def read_clocks(call: Call, heard: float, at: float) -> ClockReading:
    """The clocks of a call at an instant of the gateway's clock.

    `heard`: its last sign of life that is no fact.
    """
    limits = call.opened.limits
    idle_s = None if call.is_patient else limits.idle_s
    frozen = why_frozen(call)
    silent_s = 0.0 if frozen else _silence(call, heard, at)
    used_s = time_on_clock(call, at)
    silence_left = _silence_left(idle_s, silent_s)
    used = _share(used_s / limits.ceiling_s)
    return ClockReading(
        silent_s, idle_s, silence_left, not frozen and silence_left <= LAST_SILENCE,
        used_s, limits.ceiling_s, used, not frozen and used >= 1 - LAST_OF_CEILING,
        max(0.0, limits.ceiling_s - used_s), frozen, _answer_left(call, at) if frozen == "asked" else None,
    )  # fmt: skip


def why_frozen(call: Call) -> str:
    """Why both clocks of a call stand still; empty while they run."""
    if call.state is State.FINISHED:
        return "ended"
    if call.state is State.CANCELLING:
        return "cancelling"
    if has_own_question(call):
        return "asked"
    if call.open:
        return "below"
    if call.state is State.QUEUED:
        return "queued"
    return "below" if call.since is None else ""


def has_own_question(call: Call) -> bool:
    """Whether the call itself asks, and not one below it."""
    return any(one.kind != "below" and not one.below for one in call.open.values())


def is_silence_last(call: Call, heard: float, at: float) -> bool:
    """Whether a quarter of the idle limit is left: `read_clocks` for thousands of calls at once."""
    if call.state is not State.RUNNING or call.open or call.since is None or call.is_patient:
        return False
    return _silence_left(call.opened.limits.idle_s, _silence(call, heard, at)) <= LAST_SILENCE


def time_on_clock(call: Call, at: float) -> float:
    """The seconds that a call has run, without the time of people; a clock set back takes none away."""
    return call.spent_s if call.since is None else call.spent_s + max(0.0, at - call.since)


def _silence(call: Call, heard: float, at: float) -> float:
    last = max(call.heard, heard)
    return max(0.0, at - last) if last else 0.0


def _silence_left(idle_s: float | None, silent_s: float) -> float:
    return 1.0 if idle_s is None else _share(1 - silent_s / idle_s)


def _answer_left(call: Call, at: float) -> float:
    asked = [call.asked_at[one.id] for one in call.open.values() if one.kind != "below" and not one.below]
    limit_s = call.opened.limits.answer_s
    return min(limit_s, max(0.0, min(asked) + limit_s - at))


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


class GatewayClock:
    """The gateway's time, kept by a clock of this machine that nobody sets (`time.monotonic`).

    Messages arrive late, never early, so of two offsets the larger one is better. It falls again if the
    gateway's clock stood still, as it does while the gateway does not run.
    """

    def __init__(self, offset: float = 0.0) -> None:
        """`offset`: the gateway's time minus ours, until it has sent its time."""
        self._offset = offset
        self._is_synced = False
        self._since = 0.0  # the beginning of the window
        self._messages = 0
        self._best = float("-inf")  # the largest offset in the window

    def now(self, here: float) -> float:
        """The gateway's time at an instant of our clock."""
        return here + self._offset

    def hear(self, gateway_time: float, here: float) -> None:
        """Set the clock by a time that the gateway sent and that arrived at an instant of our clock."""
        found = gateway_time - here
        self._messages += 1
        self._best = max(self._best, found)
        is_enough = self._messages >= WINDOW_MESSAGES and here - self._since >= WINDOW_S
        if not self._is_synced or found > self._offset or self._offset - found > CLOCK_JUMP_S:
            self._offset = found
        elif is_enough:
            self._offset = self._best
        else:
            return
        self._is_synced = True
        self._since = here
        self._messages = 0
        self._best = float("-inf")
