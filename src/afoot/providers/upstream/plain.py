"""Whoever makes a request that is no tool call, and can be asked meanwhile."""

from collections.abc import Awaitable, Callable
from itertools import count

from afoot.core.facts import Answer, Question
from afoot.wire.client_reading import Said, Told

Ask = Callable[[Question], Awaitable[Answer]]


class Plain:
    """Answers questions; has no use for progress and logs."""

    def __init__(self, caller: str, ask: Ask) -> None:
        self.caller = caller
        self._ask = ask
        self._keys = count(1)

    def key(self) -> str:
        """A name for the next question."""
        return f"u{next(self._keys)}"

    def ask(self, question: Question) -> Awaitable[Answer]:
        """Whoever can answer is asked."""
        return self._ask(question)

    def progress(self, told: Told) -> None:
        """Nobody shows it."""

    def log(self, said: Said) -> None:
        """Nobody keeps it."""
