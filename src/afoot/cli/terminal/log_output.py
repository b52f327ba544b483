"""`log_to_stderr` sends the log to a terminal, in which names and texts of servers steer nothing."""

import logging
from typing import TextIO

from afoot.cli.terminal.text import clean


class LogFormatter(logging.Formatter):
    """Formats the log for a terminal: names and texts of servers in it steer nothing."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text, with a visible mark for each character that steers a terminal."""
        return clean(super().format(record), keep="\n\t")


def log_to_stderr(stream: TextIO, level: int) -> None:
    """Send the log to this stream, from this level on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=level)
