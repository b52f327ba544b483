"""The log on a terminal, in which names and texts of servers steer nothing."""

import logging

from afoot.cli.terminal.log_output import LogFormatter


def test_the_log_steers_no_terminal() -> None:
    """V2, S1: names of servers, and what they say, stand in it."""
    record = logging.LogRecord("afoot.servers", logging.WARNING, "", 0, "server %s", ("\x1b[2J\u202e",), None)
    text = LogFormatter("%(message)s").format(record)
    assert "\x1b" not in text and "\u202e" not in text and text.startswith("server ")
