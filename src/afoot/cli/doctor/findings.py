"""`Finding` is the result of one check of `afoot doctor`."""

from msgspec import Struct

from afoot.core.redaction import DEFAULT_REDACTOR


class Finding(Struct, frozen=True):
    """The result of one check: ok, warn or fail, a short text, and how to fix it."""

    check: str
    state: str
    text: str
    fix: str = ""


def finding_line(one: Finding) -> str:
    """A finding as a line for a person."""
    from afoot.cli.terminal.text import clean

    fix = f"; {one.fix}" if one.fix else ""
    return clean(f"{one.state:<5} {one.check}: {one.text}{fix}")  # a server's text may be in it


def ok(check: str, text: str) -> Finding:
    """A check that passed."""
    return _clean(Finding(check, "ok", text))


def warn(check: str, text: str, fix: str) -> Finding:
    """A check that passed, but may fail later."""
    return _clean(Finding(check, "warn", text, fix))


def fail(check: str, text: str, fix: str) -> Finding:
    """A check that failed."""
    return _clean(Finding(check, "fail", text, fix))


def _clean(one: Finding) -> Finding:
    """The finding without secrets: it may quote a setting (S7)."""
    return Finding(one.check, one.state, DEFAULT_REDACTOR.prose(one.text), DEFAULT_REDACTOR.prose(one.fix))
