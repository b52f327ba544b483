"""`scripts/bench under_load` runs 200 calls that report while 16 processes compute: none may time out.

The tools report every 0.4 s, on the gateway's loop, in threads and in child processes, under an idle limit of
2 s. The load leaves the gateway a small part of the processor, so its loop comes late again and again. That
must not count as the silence of a tool.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.isolation import Client, gateway

IDLE_S = 2.0
TOOLS = f"""
import asyncio, time
import afoot
from afoot import Context

@afoot.tool(idle={IDLE_S})
async def on_loop(seconds: float, ctx: Context) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ctx.report(message="working")
        await asyncio.sleep(0.4)
    return "done"

def work(seconds: float, ctx: Context) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ctx.report(message="working")
        time.sleep(0.4)
    return "done"

@afoot.tool(idle={IDLE_S})
def in_thread(seconds: float, ctx: Context) -> str:
    return work(seconds, ctx)

@afoot.tool(idle={IDLE_S}, isolate=True, concurrency=50)
def in_child(seconds: float, ctx: Context) -> str:
    return work(seconds, ctx)
"""
CALLS = {"on_loop": 140, "in_thread": 50, "in_child": 10}
LOAD = 16
ROUNDS = 3


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that compute."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def call(url: str, tool: str, seconds: float, ends: "Counter[str]") -> None:
    """Make one call, and count how it ended."""
    try:
        *_, (_, end) = Client(url).call(tool, {"seconds": seconds})
        ends[f"{tool}: {describe(end)}"] += 1
    except Exception as error:  # a connection that breaks is an end too
        ends[f"{tool}: {type(error).__name__}: {error}"] += 1


def describe(end: dict[str, Any]) -> str:
    """The end of a call in a word or two."""
    if "result" not in end:
        return str(end.get("error"))
    error = end["result"].get("_meta", {}).get("dev.afoot/error")
    return "ok" if error is None else str(error["code"])


def run_round(url: str, seconds: float) -> "Counter[str]":
    """Run all calls at once under the load; gives how many ended in which way."""
    ends: Counter[str] = Counter()
    threads = [
        threading.Thread(target=call, args=(url, tool, seconds, ends))
        for tool, number in CALLS.items()
        for _ in range(number)
    ]
    with load(LOAD):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ends


def main() -> int:
    """Run the rounds; the exit status says whether all calls ended well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="of each call")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    is_well = True
    with tempfile.TemporaryDirectory() as folder, gateway(Path(folder), TOOLS) as url:
        for number in range(1, given.rounds + 1):
            ends = run_round(url, given.seconds)
            is_well = is_well and set(ends) == {f"{tool}: ok" for tool in CALLS}
            print(f"round {number}: {dict(sorted(ends.items()))}", flush=True)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
