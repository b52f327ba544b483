"""`python -m bench.cluster` measures the cost of a call and of a report in a cluster on one Redis.

The gateways are in this process, so that two of them have one clock; Redis and the workers are processes of
their own.
"""

import asyncio
import gc
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import uvloop
from redis.asyncio import Redis

import afoot
from afoot import Gateway
from afoot.config.settings import Settings, make_settings
from afoot.core.facts import Reading, Reported
from bench.table import align

ROUNDS: Final = 3
CALLS: Final = 200  # one after the other
MANY: Final = 50  # at once
FLIGHT: Final = 1_000
WAITING: Final = 1_000  # calls whose question is open
REPORTS: Final = 100
WORKERS: Final = (1, 2, 3)
SLOTS: Final = 50
START_S: Final = 60.0
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
FORM: Final = {"type": "object", "properties": {"name": {"type": "string"}}}
Figures = dict[str, list[float]]


@afoot.tool(read_only=True)
async def noop() -> str:
    """Do nothing."""
    return "done"


@afoot.tool
async def wait(ctx: afoot.Context) -> str:
    """Wait for an answer."""
    await ctx.ask("who?", FORM)
    return "done"


@afoot.tool
async def readings(n: int, ctx: afoot.Context) -> str:
    """Report numbers; the message is the time."""
    for number in range(1, n + 1):
        ctx.report(number, n, repr(time.monotonic()))
        await asyncio.sleep(0.02)
    return "done"


@afoot.tool
async def facts(n: int, ctx: afoot.Context) -> str:
    """Report data, which is a fact; the message is the time."""
    for number in range(1, n + 1):
        ctx.report(number, n, repr(time.monotonic()), data={"at": number})
        await asyncio.sleep(0.02)
    return "done"


TOOLS: Final = (noop, wait, readings, facts)


async def main() -> int:
    """Measure in rounds and print the best and the median of each figure."""
    found: Figures = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with redis_server(Path(folder)) as url:
            for number in range(ROUNDS):
                await calls(Path(folder), url, f"calls{number}", found)
                await reports(url, f"reports{number}", found)
                await consumer_group(url, f"group{number}", found)
            await waiting(url, found)
            for count in WORKERS:
                for number in range(2):
                    await on_workers(Path(folder), url, f"workers{count}{number}", count, found)
    lines = [["", "best", "median"]]
    for what, values in found.items():
        best = max(values) if "a second" in what else min(values)
        lines.append([what, f"{best:,.3f}", f"{statistics.median(values):,.3f}"])
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(align(lines))
    return 0


def note(found: Figures, what: str, value: float) -> None:
    """Keep one figure of one round, and show it."""
    print(f"{what}: {value:,.2f}", file=sys.stderr, flush=True)
    found.setdefault(what, []).append(value)


def settings(url: str, name: str) -> Settings:
    """The settings of a gateway of one cluster."""
    return make_settings({"cluster": {"redis": url, "name": name}, "drain_s": 0, "unanswerable": "wait"})


async def calls(folder: Path, url: str, name: str, found: Figures) -> None:
    """A call at the gateway that owns it, without a cluster and in one."""
    redis: Any = Redis.from_url(url)
    alone = make_settings({"store": str(folder / f"{name}.db"), "drain_s": 0})
    for where, chosen in (("alone", alone), ("in a cluster", settings(url, name))):
        async with Gateway(*TOOLS, settings=chosen) as gateway:
            p50, p99 = await one_by_one(lambda at=gateway: at.call("noop"))
            note(found, f"{where}: call, ms, p50", p50)
            note(found, f"{where}: call, ms, p99", p99)
            served = await redis_cpu_s(redis)
            began, spent = time.monotonic(), time.process_time()
            await at_once(lambda at=gateway: at.call("noop"), FLIGHT)
            note(found, f"{where}: calls a second, {MANY} at once", FLIGHT / (time.monotonic() - began))
            note(
                found, f"{where}: processor time of a call, ms", (time.process_time() - spent) / FLIGHT * 1e3
            )
            if gateway.member is not None:
                used = (await redis_cpu_s(redis) - served) / FLIGHT * 1e3
                note(found, "in a cluster: processor time of Redis for a call, ms", used)
    await redis.aclose()


async def on_workers(folder: Path, url: str, name: str, count: int, found: Figures) -> None:
    """A function on workers."""
    async with workers(folder, url, name, count):
        gateway = Gateway(settings=settings(url, name))
        gateway.bare = True
        async with gateway:
            await until(lambda: "noop" in gateway.engine.catalog.known)
            p50, p99 = await one_by_one(lambda: gateway.call("noop"))
            if count == 1:
                note(found, "on a worker: call, ms, p50", p50)
                note(found, "on a worker: call, ms, p99", p99)
            began = time.monotonic()
            await at_once(lambda: gateway.call("noop"), FLIGHT // 2)
            took = time.monotonic() - began
            note(found, f"on {count} workers: calls a second, {MANY} at once", FLIGHT // 2 / took)


async def reports(url: str, name: str, found: Figures) -> None:
    """The time from a report at one gateway until a follower at another one has it."""
    async with (
        Gateway(*TOOLS, settings=settings(url, name)) as one,
        Gateway(*TOOLS, settings=settings(url, name)) as two,
    ):
        member = one.member
        assert member is not None
        await until(lambda: member.has_others)
        spent = time.process_time()
        await at_once(lambda: one.call("noop"), FLIGHT)
        await one.engine.recorder.recorded()
        await until(lambda: two.engine.journal.position >= one.engine.journal.position)
        both = (time.process_time() - spent) / FLIGHT * 1e3
        own = statistics.median(found["in a cluster: processor time of a call, ms"])
        note(found, "a call: processor time at another gateway, ms", both - own)
        for tool, kind in (("readings", Reading), ("facts", Reported)):
            call = one.submit(tool, {"n": REPORTS})
            await until(lambda call=call: call in two.engine)
            late = [
                (time.monotonic() - float(one.message or "0")) * 1e3
                async for one in two.follow(call, 1000.0)
                if isinstance(one, kind) and one.message
            ]
            note(found, f"{tool} at another gateway: ms, p50", statistics.median(late))
            note(found, f"{tool} at another gateway: ms, p99", quantile(late))


async def waiting(url: str, found: Figures) -> None:
    """What a call that waits for an answer takes: at its owner, as a mirror, and in Redis."""
    client = Redis.from_url(url)
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(Gateway(*TOOLS, settings=settings(url, "waiting")))
        memory, held = rss(), await redis_bytes(client)
        ids = [one.submit("wait", caller="operator") for _ in range(WAITING)]
        await until(lambda: all(one.engine[id].call.open for id in ids))
        await one.engine.recorder.recorded()
        note(found, "a waiting call: kB at its owner", (rss() - memory) / WAITING / 1024)
        note(found, "a waiting call: kB in Redis", (await redis_bytes(client) - held) / WAITING / 1024)
        memory = rss()
        two = await stack.enter_async_context(Gateway(*TOOLS, settings=settings(url, "waiting")))
        await until(lambda: all(id in two.engine for id in ids))
        note(found, "a waiting call: kB at another gateway", (rss() - memory) / WAITING / 1024)
    await client.aclose()


async def consumer_group(url: str, name: str, found: Figures) -> None:
    """A plain consumer group of Redis and a stream of replies: the least that a call over Redis can cost."""
    asking: Any = Redis.from_url(url, protocol=2)
    working: Any = Redis.from_url(url, protocol=2)
    await asking.xgroup_create(name, "g", "$", mkstream=True)

    async def work() -> None:
        while True:
            for _, entries in await working.xreadgroup("g", "c", {name: ">"}, count=MANY, block=1000) or ():
                for id, fields in entries:
                    async with working.pipeline(transaction=False) as pipe:
                        pipe.xadd(f"{name}:replies", {"to": fields[b"n"]})
                        pipe.xack(name, "g", id)
                        await pipe.execute()

    serving = asyncio.create_task(work())
    place = "0-0"

    async def call() -> None:
        nonlocal place
        await asking.xadd(name, {"n": "1"})
        [[_, [[id, _]]]] = await asking.xread({f"{name}:replies": place}, count=1, block=5000)
        place = id

    p50, p99 = await one_by_one(call)
    note(found, "a plain consumer group: ms, p50", p50)
    note(found, "a plain consumer group: ms, p99", p99)
    while not serving.done():
        serving.cancel()  # again, if need be: the client may take a cancel for a lost connection
        await asyncio.wait([serving], timeout=0.5)
    await asking.aclose()
    await working.aclose()


async def one_by_one(call: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The times of calls one after the other, in ms: p50 and p99."""
    for _ in range(20):
        await call()
    times = list[float]()
    for _ in range(CALLS):
        began = time.monotonic()
        await call()
        times.append((time.monotonic() - began) * 1e3)
    return statistics.median(times), quantile(times)


async def at_once(call: Callable[[], Awaitable[object]], count: int) -> None:
    """Make so many calls, MANY at once."""
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            await call()

    await asyncio.gather(*(caller() for _ in range(MANY)))


def quantile(times: list[float]) -> float:
    """The 99th of 100."""
    return sorted(times)[int(len(times) * 0.99)]


def rss() -> int:
    """The memory of this process, in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def redis_cpu_s(client: "Redis") -> float:
    """The processor time that Redis has used."""
    told = await client.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


async def redis_bytes(client: "Redis") -> int:
    """The memory that Redis has for its data."""
    return int((await client.info("memory"))["used_memory_dataset"])


async def until(happened: Callable[[], object]) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(START_S):
        while not happened():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


@asynccontextmanager
async def redis_server(folder: Path) -> AsyncIterator[str]:
    """A Redis that writes a file each second; gives its address."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SystemExit("redis-server is missing; scripts/test installs it")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    own = ["--port", str(port), "--dir", str(folder), "--save", "", "--appendonly", "yes"]
    process = _start([program, *own])
    try:
        url = f"redis://127.0.0.1:{port}/0"
        async with asyncio.timeout(START_S):
            while not _listens(port):  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()


def _start(command: list[str], environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def workers(folder: Path, url: str, name: str, count: int) -> AsyncIterator[None]:
    """So many workers of a cluster, in processes of their own."""
    config = folder / f"{name}.toml"
    config.write_text(f'drain_s = 0\n[cluster]\nredis = "{url}"\nname = "{name}"\n')
    own = {**os.environ, "AFOOT_HOME": str(folder / name)}
    words = ["worker", __file__, "--config", str(config), "--slots", str(SLOTS), "--json"]
    started = [_start([sys.executable, "-m", "afoot", *words], own) for _ in range(count)]
    try:
        for one in started:
            assert one.stdout is not None
            await asyncio.to_thread(one.stdout.readline)
        yield
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait()


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
