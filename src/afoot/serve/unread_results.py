"""`UnreadResults` counts, by caller, the bytes of large results that are being sent and not read yet.

A result over the bound of its caller waits for its turn in the history and not in memory: whoever asks for
many results and reads none costs disk, which `retain` bounds. Small results are not counted, as the system's
buffers have more of them than we do.
"""

from collections import Counter
from collections.abc import Callable

from afoot.wire.jsonrpc import INTERNAL_ERROR, Fault
from afoot.wire.results import ErrorMeta

LARGE_RESULT_BYTES = 1024 * 1024  # of a result from which on it is counted
MAX_HELD_BYTES = 256 * 1024 * 1024  # of results that the history does not have, and that wait for their turn
CALLERS_AT_ONCE = 4  # all callers together may have as many times the bytes of one


class UnreadResults:
    """The bytes of large results on their way; `most` gives the bytes that one caller may have there."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._by_caller: Counter[str] = Counter()
        self._total = 0
        self._held = 0  # bytes that wait in memory
        self._waiting: dict[Callable[[], object], None] = {}  # in the order in which they came

    def take(self, caller: str, size: int) -> bool:
        """Count a result of this caller, if there is room for it. One alone always has room."""
        own, most = self._by_caller.get(caller, 0), self._most()
        if own and own + size > most:
            return False
        if self._total and self._total + size > CALLERS_AT_ONCE * most:
            return False
        self._by_caller[caller] += size
        self._total += size
        return True

    def free(self, caller: str, size: int) -> None:
        """Count a result no more, and wake those that wait for room."""
        self._by_caller[caller] -= size
        if not self._by_caller[caller]:
            del self._by_caller[caller]
        self._total -= size
        for wake in list(self._waiting):
            wake()

    def hold(self, size: int) -> bool:
        """Count a result that waits in memory because the history does not have it; False if it may not.

        A negative size counts it no more.
        """
        if size > 0 and self._held and self._held + size > MAX_HELD_BYTES:
            return False
        self._held += size
        return True

    def await_room(self, wake: Callable[[], object]) -> None:
        """Call a function whenever a result was read, until `leave`."""
        self._waiting[wake] = None

    def leave(self, wake: Callable[[], object]) -> None:
        """Stop calling the function of `await_room`."""
        self._waiting.pop(wake, None)

    def refusal(self, caller: str) -> Fault:
        """The answer for a caller that must read other results first."""
        text = (
            f"{self._by_caller[caller]} bytes of results wait to be read by {caller}"
            " (max_unread_bytes); read them, then ask again"
        )
        told = ErrorMeta("rate_limit", "unread_results", True, 1.0)
        return Fault(INTERNAL_ERROR, text, data={"dev.afoot/error": told}, status=429)
