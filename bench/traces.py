"""`python -m bench.traces FILE` records the progress of real work, for the test of estimated ends."""

import hashlib
import json
import random
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

KEPT = 80  # readings of a trace

Step = tuple[int, int | None]  # done, of how many


def main(file: str) -> None:
    """Run all pieces of work, two at a time as on a busy machine, and write their reports to a file."""
    with ProcessPoolExecutor(2) as pool:
        traces = list(pool.map(record, WORK))
    lines = ",\n".join(json.dumps(one) for one in traces)
    Path(file).write_text(f"[\n{lines}\n]\n")


def record(name: str) -> dict[str, object]:
    """Run one piece of work: instants in seconds from its start, the progress, and the end."""
    began = time.monotonic()
    readings: list[tuple[float, int, int | None]] = []
    for done, total in WORK[name]():
        readings.append((round(time.monotonic() - began, 3), done, total))
    ended = round(time.monotonic() - began, 3)
    step = max(1, len(readings) // KEPT)
    return {"name": name, "ended": ended, "readings": readings[::step]}


def hash_files() -> Iterator[Step]:
    """Files of all sizes, counted one by one."""
    files = [file for file in Path(sys.prefix).rglob("*") if file.is_file()][:5000]
    for number, file in enumerate(files, 1):
        for _ in range(6):
            hashlib.sha256(file.read_bytes()).digest()
        yield number, len(files)


def hash_bytes() -> Iterator[Step]:
    """The same files, counted by bytes."""
    files = [file for file in Path(sys.prefix).rglob("*.so*") if file.is_file()][:400]
    total, done = sum(file.stat().st_size for file in files), 0
    for file in files:
        data = file.read_bytes()
        for _ in range(12):
            hashlib.sha256(data).digest()
        done += len(data)
        yield done, total


def compress() -> Iterator[Step]:
    """Text that compresses well first, noise later."""
    for number in range(1, 161):
        text = b"the same again " * 60_000 if number < 80 else random.randbytes(700_000)
        zlib.compress(text, 9)
        yield number, 160


def primes() -> Iterator[Step]:
    """Numbers that take longer the larger they are."""
    top, found = 900_000, 0
    for number in range(2, top):
        found += all(number % other for other in range(2, int(number**0.5) + 1))
        if number % 5000 == 0:
            yield number, top


def collatz() -> Iterator[Step]:
    """Chains of unequal length, reported in coarse steps."""
    for block in range(1, 25):
        for start in range(block * 30_000, block * 30_000 + 30_000):
            while start > 1:
                start = start // 2 if start % 2 == 0 else 3 * start + 1
        yield block, 24


def insert_rows() -> Iterator[Step]:
    """Rows into a table with two indexes, in batches."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE rows (a TEXT, b TEXT)")
    db.execute("CREATE INDEX of_a ON rows (a)")
    db.execute("CREATE INDEX of_b ON rows (b)")
    for batch in range(1, 61):
        rows = [(hex(random.getrandbits(64)), hex(random.getrandbits(64))) for _ in range(9000)]
        db.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        yield batch, 60


def three_phases() -> Iterator[Step]:
    """Read, work, write: three speeds, one count."""
    for number in range(1, 301):
        size = 2_000 if number <= 100 else 90_000 if number <= 200 else 20_000
        sorted(random.random() for _ in range(size))
        yield number, 300


def pages() -> Iterator[Step]:
    """A paged answer: each page takes a different time, and some are slow."""
    for page in range(1, 41):
        time.sleep(random.expovariate(4.0) + (1.5 if page % 13 == 0 else 0.05))
        yield page, 40


def slow_start() -> Iterator[Step]:
    """No progress for a while, then an even pace."""
    time.sleep(3.0)
    for number in range(1, 101):
        time.sleep(0.08)
        yield number, 100


def tail() -> Iterator[Step]:
    """Fast up to nine tenths; the last tenth takes as long again."""
    for number in range(1, 101):
        time.sleep(0.06 if number <= 90 else 0.5)
        yield number, 100


def waves() -> Iterator[Step]:
    """A pace that rises and falls."""
    for number in range(1, 201):
        time.sleep(0.02 + 0.06 * (number // 25 % 2))
        yield number, 200


def growing_total() -> Iterator[Step]:
    """A queue that grows while it is worked off: the total is known only later."""
    total = 60
    for number in range(1, 121):
        time.sleep(0.09)
        total = max(total, min(120, number + 40))
        yield number, total


WORK: dict[str, Callable[[], Iterator[Step]]] = {
    one.__name__: one
    for one in (
        hash_files, hash_bytes, compress, primes, collatz, insert_rows, three_phases, pages, slow_start,
        tail, waves, growing_total,
    )
}  # fmt: skip

if __name__ == "__main__":
    main(sys.argv[1])
