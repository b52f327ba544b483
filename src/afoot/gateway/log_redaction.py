"""`redact_logs` takes the secrets out of everything that the gateway logs (S7)."""

import logging
from collections.abc import Callable


def redact_logs(clean: Callable[[str], str]) -> None:
    """Let every handler of the root log clean what it writes, by this function from now on."""
    for handler in logging.getLogger().handlers:
        found = [one for one in handler.filters if isinstance(one, RedactingFilter)]
        for one in found:
            one.clean = clean
        if not found:
            handler.addFilter(RedactingFilter(clean))


class RedactingFilter(logging.Filter):
    """Takes the secrets out of every line of the log, and out of the traces below it."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self.clean = clean

    def filter(self, record: logging.LogRecord) -> bool:
        """The record, cleaned; all pass."""
        try:
            text = record.getMessage()
        except Exception:  # a wrong format is told by the handler itself
            return True
        record.msg = self.clean(text)
        record.args = ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.clean(record.exc_text)
        return True
