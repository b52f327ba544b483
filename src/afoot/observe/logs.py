"""The gateway's own log, without secrets (S4)."""

import logging
from collections.abc import Callable


class Discreet(logging.Filter):
    """Takes the secrets out of every line, and out of the traces below it."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean = clean

    def filter(self, record: logging.LogRecord) -> bool:
        """The record, cleaned; all pass."""
        try:
            text = record.getMessage()
        except Exception:  # a wrong format is told by the handler itself
            return True
        record.msg, record.args = self._clean(text), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._clean(record.exc_text)
        return True


def guard(clean: Callable[[str], str]) -> None:
    """Have every handler of the root log clean what it writes; once."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(one, Discreet) for one in handler.filters):
            handler.addFilter(Discreet(clean))
