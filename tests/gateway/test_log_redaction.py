"""The gateway's own log has no secrets."""

import io
import logging

from afoot.core.redaction import REDACTED_TEXT, Redactor
from afoot.gateway.log_redaction import RedactingFilter, redact_logs


def logged(redactor: Redactor) -> tuple[logging.Logger, io.StringIO]:
    """A log of its own, with its text."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(RedactingFilter(redactor.text))
    log = logging.Logger("alone")
    log.addHandler(handler)
    return log, out


def test_the_log_has_no_secrets() -> None:
    """S4: in lines, in what they are filled with, and in traces."""
    redactor = Redactor()
    redactor.add_named_secrets({"API_TOKEN": "0123456789"})
    log, out = logged(redactor)
    log.warning("with %s and password=%s", "0123456789", "hunter2")
    try:
        raise ValueError("token: hunter2 of 0123456789")
    except ValueError:
        log.exception("it failed")
    text = out.getvalue()
    assert f"with {REDACTED_TEXT} and password={REDACTED_TEXT}\n" in text
    assert "Traceback" in text and f"ValueError: token: {REDACTED_TEXT} of {REDACTED_TEXT}" in text
    assert "hunter2" not in text and "0123456789" not in text


def test_a_line_that_cannot_be_filled_in_is_left_to_its_handler() -> None:
    """S4: a mistake in a line of the log hurts nobody."""
    record = logging.LogRecord("alone", logging.INFO, "", 1, "%d", ("x",), None)
    assert RedactingFilter(str).filter(record) and record.msg == "%d"


def test_every_handler_is_guarded_once() -> None:
    """S4: a gateway that is started twice in a process cleans once."""
    root, handler = logging.getLogger(), logging.StreamHandler(io.StringIO())
    root.addHandler(handler)
    try:
        redact_logs(str)
        redact_logs(str)
        assert [type(one) for one in handler.filters] == [RedactingFilter]
    finally:
        root.removeHandler(handler)
        for one in root.handlers:
            one.filters = [kept for kept in one.filters if not isinstance(kept, RedactingFilter)]
