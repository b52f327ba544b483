"""What a check-up found, one line a check."""

from msgspec import Struct

STATES = ("ok", "warn", "fail")


class Finding(Struct, frozen=True):
    """One check: ok, warn or fail, in a few words, and what to do about it."""

    check: str
    state: str
    text: str
    fix: str = ""


def ok(check: str, text: str) -> Finding:
    """As it should be."""
    return Finding(check, "ok", text)


def warn(check: str, text: str, fix: str) -> Finding:
    """It works, and may not for long."""
    return Finding(check, "warn", text, fix)


def fail(check: str, text: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(check, "fail", text, fix)
