"""`log_to_stderr` sends the log to a terminal, in which names and texts of servers steer nothing.

`log_of_server` does that for a gateway or a worker, and never blocks it.
"""

import logging
import sys
from typing import TextIO

from afoot.cli.terminal.nonblocking_output import nonblocking
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


def log_of_server() -> None:
    """Send the log of a gateway or a worker to stderr. No output blocks it if nobody reads."""
    sys.stdout, sys.stderr = nonblocking(sys.stdout), nonblocking(sys.stderr)
    log_to_stderr(sys.stderr, logging.WARNING)
    logging.getLogger("afoot").setLevel(logging.INFO)
    for chatty in ("httpx2", "mcp"):  # they log a line for each request, with addresses
        logging.getLogger(chatty).setLevel(logging.WARNING)
