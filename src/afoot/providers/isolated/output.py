"""What a child, and all that it starts, writes to stdout and stderr: read to its end, told up to a bound."""

import os
import selectors
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

LINES: Final = 200
CHARACTERS: Final = 64 * 1024
_LONGEST: Final = 4000
_GULP: Final = 65_536
_GULPS: Final = 16  # a turn, so that a flood keeps nobody else waiting
NAMES: Final = ("stdout", "stderr")

Told = tuple[str, list[str]]


class Output:
    """Two pipes and the lines in them. What goes beyond the bound is read and dropped: nobody has to wait."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        self._others: list[int] = []
        self._rest = dict.fromkeys(NAMES, b"")
        self._left_lines = self._left_characters = 0
        try:
            for _ in NAMES:
                mine, other = os.pipe()
                self.ends.append(mine)
                self._others.append(other)
                os.set_blocking(mine, False)
        except OSError:  # there are no more descriptors
            self.close()
            raise
        self.begin()

    def begin(self) -> None:
        """Another call: it may say as much as the one before."""
        self._left_lines, self._left_characters = LINES, CHARACTERS

    def child(self) -> None:
        """In the child: write here, read nothing."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, end in enumerate([nothing, *self._others]):
            os.dup2(end, number)

    def parent(self) -> None:
        """In the keeper: the other ends belong to the child alone."""
        for end in self._others:
            os.close(end)
        self._others = []

    def read(self, selector: selectors.BaseSelector) -> Iterator[Told]:
        """The lines that have come, as far as they may be told."""
        for name, end in zip(NAMES, self.ends, strict=True):
            for _ in range(_GULPS):
                try:
                    data = os.read(end, _GULP)
                except OSError:
                    break
                if not data:  # the child closed it
                    with suppress(KeyError, ValueError):
                        selector.unregister(end)
                    break
                yield name, self._split(name, data)

    def end(self) -> list[Told]:
        """What was not ended is a line too."""
        told = [(name, self._told(rest)) for name, rest in self._rest.items() if rest.strip()]
        self._rest = dict.fromkeys(NAMES, b"")
        return [(name, [text]) for name, text in told if text]

    def close(self) -> None:
        """Read no more."""
        for end in (*self.ends, *self._others):
            os.close(end)

    def _split(self, name: str, data: bytes) -> list[str]:
        if self._left_lines < 0:
            return []
        *done, rest = (self._rest[name] + data).split(b"\n")
        # A carriage return starts the line anew: of a bar only its last state is kept.
        self._rest[name] = rest[rest.rfind(b"\r", 0, -1) + 1 :][: 2 * _LONGEST]
        return [text for text in map(self._told, done) if text]

    def _told(self, line: bytes) -> str:
        text = line[-_LONGEST * 4 :].decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2][:_LONGEST]
        if not text.strip() or self._left_lines < 0:
            return ""
        self._left_lines -= 1
        self._left_characters -= len(text)
        if self._left_lines >= 0 and self._left_characters >= 0:
            return text
        self._left_lines = -1
        return f"output is cut here: over {LINES} lines or {CHARACTERS // 1024} KB"
