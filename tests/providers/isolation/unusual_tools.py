"""A file of tools for child processes that do what nobody expects."""

import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tqdm import tqdm

import afoot
from afoot import Context, ToolError
from afoot.providers.isolation.frames import ChildExit, encode_frame

isolated = afoot.tool(isolate=True)
kept: list[Any] = []


class Mute(Exception):
    """It cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unnoted(Exception):
    """What was said besides cannot be read."""

    @property
    def __notes__(self) -> list[str]:  # pyrefly: ignore[bad-override]
        raise RuntimeError("no notes")


class ArrayMemoryError(MemoryError):
    """As libraries of numbers have it."""


@isolated
def raises(what: str) -> None:
    """Raise what is hard to send."""
    errors: dict[str, Any] = {
        "no text": OSError("cannot read " + os.fsdecode(b"/nowhere/\xff")),
        "no words": Mute(),
        "odd fields": ToolError(ValueError("inside"), code=404),  # pyrefly: ignore[bad-argument-type]
        "no notes": Unnoted("said"),
        "no line": SyntaxError("odd", ("file", 1, 2, 5)),  # pyrefly: ignore[no-matching-overload]
        "interrupt": KeyboardInterrupt("typed"),
        "no memory": ArrayMemoryError("8 GB"),
    }
    raise errors[what]


@isolated
def gives(megabytes: int) -> str:
    """More than can be sent."""
    return "x" * (megabytes * 1_000_000)


@isolated
def saves(megabytes: int, ctx: Context) -> str:
    """More than can be sent, before its end."""
    ctx.checkpoint("x" * (megabytes * 1_000_000))
    return "saved"


@afoot.tool(isolate=True, open_files=30)
def opens() -> None:
    """More files than it may."""
    files = []
    while True:
        files.append(open(os.devnull))


@afoot.tool(isolate=True, memory=300_000_000)
def threads(n: int) -> None:
    """More threads than it has memory for."""
    rest = threading.Event()
    for _ in range(n):
        threading.Thread(target=rest.wait, daemon=True).start()


@afoot.tool(isolate=True, cpu=float("inf"))
def unlimited() -> str:
    """Has no limit of processor time."""
    return "done"


@isolated
def polite(ctx: Context) -> str:
    """Stops when it is told to."""
    while not ctx.cancelled:
        time.sleep(0.005)
    return f"stopped: {ctx.cancelled}"


@isolated
def naps(seconds: float) -> int:
    """Says nothing."""
    time.sleep(seconds)
    return os.getpid()


@isolated
def where() -> int:
    """The process it runs in."""
    return os.getpid()


@isolated
def leaves_a_thread() -> int:
    """One that goes on, prints and reports."""

    def go_on() -> None:
        while True:
            print("left behind")
            afoot.report(7, 7, "left behind")
            time.sleep(0.01)

    threading.Thread(target=go_on, daemon=True).start()
    return os.getpid()


@isolated
def leaves_a_pool() -> int:
    """Threads that rest."""
    kept.append(ThreadPoolExecutor(2))
    kept[-1].submit(time.sleep, 0).result()
    return os.getpid()


def _polls() -> None:
    while not threading.Event().wait(0.05):
        print("left behind")


@isolated
def leaves(what: str) -> int:
    """A thread that has something to do later, or one that waits for somebody to have something for it."""
    if what == "timer":
        threading.Timer(0.2, print, ["left behind"]).start()
    elif what == "poll":
        threading.Thread(target=_polls, daemon=True).start()
    elif what == "job":
        kept.append(ThreadPoolExecutor(1))
        kept[-1].submit(time.sleep, 600)
    elif what == "bar":
        list(tqdm(range(3)))
    elif what == "queue":
        kept.append(queue.Queue())
        threading.Thread(target=kept[-1].get, daemon=True).start()
    return os.getpid()


@isolated
def hands_to_the_pool() -> int:
    """More work for the threads that an earlier call left at rest."""
    kept[-1].submit(time.sleep, 600)
    return os.getpid()


@isolated
def keeps(megabytes: int) -> int:
    """Memory that nobody gets back."""
    kept.append(bytearray(b"x") * (megabytes * 1_000_000))
    return os.getpid()


@afoot.tool(isolate=True, memory=300_000_000)
def modest() -> int:
    """Needs little memory, and may have little."""
    return len(bytearray(150_000_000))


def square(n: int) -> int:
    """What other processes do."""
    afoot.report(n, 4, "squared elsewhere")
    return n * n


@isolated
def spreads(method: str) -> list[int]:
    """Has other processes do it."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        return pool.map(square, range(1, 5))


@isolated
def ends_what_it_forked() -> int | None:
    """Ends a process that would sleep, as `Pool` does with its own."""
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    process.start()
    process.terminate()
    process.join(5)
    code = process.exitcode
    process.kill()
    return code


@isolated
def floods_from_below(n: int) -> None:
    """A program reports as fast as it can."""
    program = f"import afoot\nfor n in range(1, {n} + 1): afoot.report(n, {n}, 'x' * 5000)"
    subprocess.run([sys.executable, "-c", program], check=True)


@isolated
def reports_oddly() -> None:
    """A program reports what JSON does not know."""
    said = "Fraction(1, 2), float('nan'), ['a', 'list']"
    program = f"import afoot; from fractions import Fraction; afoot.report({said})"
    subprocess.run([sys.executable, "-c", program], check=True)


@isolated
def forges() -> None:
    """Says of itself what only its fork server may say."""
    said = encode_frame(ChildExit(1, 0))
    for number in range(3, 64):
        try:
            os.set_blocking(number, False)
            os.write(number, said)
        except OSError:
            pass
    time.sleep(600)


@isolated
def hides(ctx: Context) -> None:
    """A program in a session of its own, its environment empty; waits for ever."""
    subprocess.Popen(["sleep", "613"], start_new_session=True, env={})
    ctx.report(1, None, "started")
    time.sleep(600)


@afoot.tool(isolate=True, processes=16)
def backgrounds(n: int) -> str:
    """One program after the other leaves another behind, which ends at once."""
    for _ in range(n):
        subprocess.run(["sh", "-c", "true & exit 0"], check=True)
        time.sleep(0.01)
    return "done"


@afoot.tool(isolate=True, processes=16)
def doubles(times: int) -> None:
    """Twice as many processes each time, each in a session of its own."""
    for _ in range(times):
        if not os.fork():
            os.setsid()
    time.sleep(600)
