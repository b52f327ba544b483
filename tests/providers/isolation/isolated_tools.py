"""Tools for child processes: those of the provider contract, and ones that behave as badly as they can."""

import asyncio
import ctypes
import logging
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

import afoot
from afoot import Context, Partial, ToolError
from afoot.providers.isolation.frames import ProgressReading, encode_frame

SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
isolated = afoot.tool(isolate=True)


# The tools of the contract.


@isolated
def echo(text: str) -> str:
    return text


@isolated
def count(n: int, ctx: Context) -> str:
    for step in range(1, n + 1):
        ctx.report(step, n)
    return str(n)


@isolated
async def crash() -> None:
    raise ValueError("boom")


@isolated
def missing() -> None:
    raise ToolError.not_found("no such thing", code="gone")


@isolated
async def hang(ctx: Context) -> None:
    ctx.report()
    await asyncio.Event().wait()


@isolated
def confirm(ctx: Context) -> str:
    return "yes" if ctx.ask("sure?", SURE).content["sure"] else "no"


# What crosses the boundary.


@isolated
def where() -> list[int]:
    return [os.getpid(), os.getppid(), os.getpgid(0)]


@isolated
async def pieces(n: int) -> AsyncIterator[Partial]:
    for number in range(n):
        yield Partial(f"piece {number}\n")


@isolated
def wordy(ctx: Context) -> None:
    print("printed")
    os.write(1, b"written to a descriptor\n")
    subprocess.run(["echo", "from a program"], check=True)
    logging.getLogger("own").error("logged")
    ctx.log("said", "warning")
    ctx.alive()
    ctx.resource_changed("x://1")
    ctx.report(1, 2, "with data", data={"phase": "one"})
    ctx.checkpoint({"at": 7})
    os.write(2, b"without an end")


@isolated
def resumed(ctx: Context) -> Any:
    return ctx.resumed_from


@isolated
async def below(ctx: Context) -> str:
    return str(await ctx.call("echo", {"text": "from below"}))


@isolated
def from_a_thread(ctx: Context) -> None:
    thread = threading.Thread(target=lambda: ctx.report(3, 4, "from a thread"))
    thread.start()
    thread.join()


def _report_twice() -> None:
    afoot.report(1, 2, "from a fork")
    afoot.report(2, 2, "from a fork")


@isolated
def from_grandchildren() -> None:
    program = "import afoot; afoot.report(5, 6, 'from a program')"
    subprocess.run([sys.executable, "-c", program], check=True)
    fork = multiprocessing.get_context("fork").Process(target=_report_twice)
    fork.start()
    fork.join()


@isolated
def by_hand_in_a_fork(ctx: Context) -> None:
    pid = os.fork()
    if not pid:
        ctx.report(1, 1, "by the context")
        os._exit(0)
    os.waitpid(pid, 0)


@isolated
def bars() -> None:
    for _ in tqdm(range(5), desc="steps"):
        time.sleep(0.06)


@isolated
def flood(n: int, ctx: Context) -> int:
    for number in range(1, n + 1):
        ctx.report(number, n)
    return n


@isolated
def polite(ctx: Context) -> str:
    ctx.report()
    while not ctx.cancelled:
        time.sleep(0.005)
    return f"stopped: {ctx.cancelled}"


@isolated
def clears_up(mark: str, ctx: Context) -> None:
    ctx.report()
    try:
        while True:
            time.sleep(0.005)
    finally:
        Path(mark).write_text("cleared up")


@isolated
def spends(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


# What must hurt nobody.


@afoot.tool(isolate=True, cpu=0.3)
def endless() -> None:
    while True:
        pass


@afoot.tool(isolate=True, cpu=0.3)
def endless_below() -> None:
    subprocess.run([sys.executable, "-c", "while True: pass"], check=False)


@afoot.tool(isolate=True, memory=400_000_000)
def greedy() -> int:
    return len(bytearray(10_000_000_000))


@afoot.tool(isolate=True, memory=300_000_000)
def shares_greedily() -> None:
    """Memory that is shared is no data of this process: only the fork server sees it."""
    shared = mmap.mmap(-1, 600_000_000)
    for at in range(0, 600_000_000, 4096):
        shared[at] = 1
    time.sleep(60)


@afoot.tool(isolate=True, processes=8)
def forks(n: int) -> None:
    for _ in range(n):
        subprocess.Popen(["sleep", "60"], start_new_session=True)
    time.sleep(60)


@afoot.tool(isolate=True, open_files=40)
def opens() -> int:
    files = []
    try:
        while True:
            files.append(open(os.devnull))
    except OSError:
        return len(files)


@isolated
def segfault() -> None:
    ctypes.string_at(0)


@isolated
def exits(code: int) -> None:
    os._exit(code)


@isolated
def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@afoot.tool(isolate=True, idempotent=True)
def is_killed_once(mark: str) -> str:
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "the second time"


@isolated
def garbage(ctx: Context) -> None:
    ctx.report(1, 2)
    for number in range(3, 64):
        try:
            os.set_blocking(number, False)
            os.write(number, os.urandom(4096))
        except OSError:
            pass
    time.sleep(60)


@isolated
def half_a_report() -> None:
    for number in range(3, 64):
        with suppress(OSError):
            os.write(number, encode_frame(ProgressReading(1, 2))[:-4])
    os._exit(0)


@isolated
def deaf_to_signals(ctx: Context) -> None:
    """Goes on whatever it is told; so does what it started, in a session of its own."""
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    ctx.report(1, None, "started")
    while True:
        try:
            while True:
                time.sleep(0.005)
        except BaseException:
            ctx.log("went on")


@isolated
def double_forks() -> str:
    """Leaves a daemon behind that nobody is the parent of, in a session of its own, its environment empty."""
    pid = os.fork()
    if not pid:
        os.setsid()
        if not os.fork():
            os.execve("/bin/sleep", ["sleep", "600"], {})
        os._exit(0)
    os.waitpid(pid, 0)
    return "left"


@isolated
def talks(lines: int) -> str:
    for number in range(lines):
        os.write(1, b"%d\n" % number)
    return "said"


@afoot.tool(cpu_bound=True)
def crunch() -> int:
    return os.getpid()


@afoot.tool(cpu_bound=True, isolate=False)
def crunch_here() -> int:
    return os.getpid()
