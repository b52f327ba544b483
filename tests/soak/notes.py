"""`Notes`: what the clients of a soak asked for, what they were told, and what was wrong with it."""

import threading
from dataclasses import dataclass, field
from typing import Final

MOST_FAULTS: Final = 200  # more say nothing new


@dataclass
class Request:
    """A call that a client wanted; its id once it was acknowledged, and the ends that were told."""

    tool: str
    tag: str
    call: str = ""
    told: set[str] = field(default_factory=set)  # "ok" or "not ok"
    is_unrecorded: bool = False


class Notes:
    """The requests of one phase, and faults that were seen on the wire. Threads share it."""

    def __init__(self, phase: int) -> None:
        self.phase = phase
        self.requests: dict[str, Request] = {}  # by tag
        self.faults: list[str] = []
        self.counts: dict[str, int] = {}  # by action
        self._lock = threading.Lock()

    def new(self, tool: str) -> Request:
        """Note a call that is about to be asked for; its tag is its own in the whole soak."""
        with self._lock:
            request = Request(tool, f"p{self.phase}-{len(self.requests)}")
            self.requests[request.tag] = request
        return request

    def acknowledge(self, request: Request, call: str) -> None:
        """Note that the gateway has named the call; it must never name another for the same request."""
        if request.call and request.call != call:
            self.fault(f"{request.tool} {request.tag}: was call {request.call} and is {call}")
        request.call = call

    def count(self, what: str) -> None:
        """Count an action."""
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fault(self, text: str) -> None:
        """Note something that may not be."""
        with self._lock:
            if len(self.faults) < MOST_FAULTS:
                self.faults.append(text)

    def newest_tags(self, count: int) -> list[str]:
        """The tags of the newest requests."""
        with self._lock:
            return list(self.requests)[-count:]


class RisingProgress:
    """The progress that one token was told: each value is higher than the one before (P4)."""

    def __init__(self, notes: Notes, request: Request) -> None:
        self._notes = notes
        self._request = request
        self._last: float | None = None

    def hear(self, value: float) -> None:
        """Take in the next value."""
        if self._last is not None and value <= self._last:
            self._notes.fault(f"{self._request.tool} {self._request.tag}: {value} came after {self._last}")
        self._last = value
