"""`RateLimit` is a bucket of tokens, which says whether something may be done now. Time is an argument."""


class RateLimit:
    """A bucket of tokens: `burst` at once, and `per_s` more each second."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst = self._left = burst
        self._per_s = per_s
        self._at = 0.0

    def take(self, now: float, tokens: float = 1.0) -> bool:
        """Take tokens; False if there are not as many."""
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_s)
        self._at = now
        if self._left < tokens:
            return False
        self._left -= tokens
        return True
