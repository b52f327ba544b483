"""`describe_exit` says in words how a process ended."""

import signal


def describe_exit(code: int) -> str:
    """Say how a process ended, by its exit code: one below zero is a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        found = signal.Signals(-code)
    except ValueError:  # a real-time signal has no name
        return f"was ended by signal {-code}"
    return f"was ended by {found.name} ({signal.strsignal(found)})"
