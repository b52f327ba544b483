"""`Finding` is the result of one check of `afoot doctor`."""

from msgspec import Struct


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
    return Finding(check, "ok", text)


def warn(check: str, text: str, fix: str) -> Finding:
    """A check that passed, but may fail later."""
    return Finding(check, "warn", text, fix)


def fail(check: str, text: str, fix: str) -> Finding:
    """A check that failed."""
    return Finding(check, "fail", text, fix)
