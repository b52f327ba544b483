"""How a command ends: exit codes, one clear line for what went wrong, and nothing for a reader that left."""

import os
import sys
from collections.abc import Callable

from afoot.errors import AfootError

OK, FAILED, USAGE, TIMED_OUT, CANCELLED, REFUSED, LOST = range(7)
INTERRUPTED = 130

# By outcome of a call.
CODES = {
    "ok": OK,
    "failed": FAILED,
    "timed_out": TIMED_OUT,
    "cancelled": CANCELLED,
    "refused": REFUSED,
    "lost": LOST,
    "uncertain": LOST,
}


class Stop(Exception):
    """The command ends here: with this code, and this line."""

    def __init__(self, code: int, message: str, **more: object) -> None:
        super().__init__(message)
        self.code, self.message, self.more = code, message, more


def ending(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command and give its exit code; every error raised on purpose is one line."""
    _reopen()
    try:
        code = run(words)
        sys.stdout.flush()
        return code
    except Stop as stop:
        return _told(stop, words)
    except AfootError as error:
        return _told(Stop(USAGE, str(error)), words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _reopen() -> None:
    """Have all three streams, also where one was closed: its number would go to the next file opened."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _told(stop: Stop, words: list[str]) -> int:
    if stop.message:
        from afoot.observe.terminal import clean

        print(f"afoot: {clean(stop.message, keep=chr(10))}", file=sys.stderr)  # a tool's words may be in it
        if "--json" in words and words[:1] != ["serve"]:
            import json

            print(
                json.dumps({"error": {"message": stop.message, "exit": stop.code, **stop.more}}), flush=True
            )
    return stop.code
