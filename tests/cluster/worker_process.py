"""A worker in a process of its own, as an operator would start it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import pytest

from tests.cluster.redis_server import RedisServer

TOOLS = Path(__file__).parent / "cluster_tools.py"
START_S = 40.0
STOP_S = 20.0


class WorkerProcess:
    """One worker of the cluster of this name, which runs the tools of these tests."""

    def __init__(
        self,
        redis: RedisServer,
        name: str,
        folder: Path,
        slots: int = 4,
        prefix: Sequence[str] = (),
        label: str = "",
        tools: Sequence[Path] = (TOOLS,),
        marks: Path | None = None,
    ) -> None:
        """`marks`: the folder in which the tools of tests from end to end leave their marks."""
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "worker.toml"
        config.write_text(f'drain_s = 2\n[cluster]\nredis = "{redis.url}"\nname = "{name}"\nlease_s = 1.0\n')
        self._errors = folder / "stderr"
        words = ["worker", *map(str, tools), "--config", str(config), "--slots", str(slots), "--json"]
        words += ["--label", label] if label else []
        environment = {**os.environ, "AFOOT_HOME": str(folder / "home"), "PYTHONPATH": str(TOOLS.parents[2])}
        environment |= {} if marks is None else {"E2E_MARKS": str(marks)}
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "afoot", *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment,
            )  # fmt: skip
        self.id = ""

    def wait_until_ready(self) -> None:
        """Wait until it takes calls."""
        assert self._process.stdout is not None
        with DefaultSelector() as selector:
            selector.register(self._process.stdout, EVENT_READ)
            line = self._process.stdout.readline() if selector.select(START_S) else b""
        if not line.startswith(b"{"):
            self.kill()
            pytest.fail(f"the worker did not start: {line!r}\n{self._errors.read_text()[-4000:]}")
        self.id = str(json.loads(line)["worker"])

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def wait(self) -> int:
        """Wait until it ends by itself; gives its exit code."""
        return self._wait()

    def stop(self) -> int:
        """End it as an operator would; gives its exit code."""
        self._process.terminate()
        return self._wait()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._process.kill()
        self._wait()

    def _wait(self) -> int:
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            pytest.fail(f"the worker did not end\n{self._errors.read_text()[-4000:]}")
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()


@contextmanager
def workers(
    redis: RedisServer, name: str, folder: Path, count: int = 1, slots: int = 4
) -> Iterator[list[WorkerProcess]]:
    """So many workers, which are killed at the end of the block if they are still there."""
    started = [WorkerProcess(redis, name, folder / f"worker{number}", slots) for number in range(count)]
    try:
        for one in started:
            one.wait_until_ready()
        yield started
    finally:
        for one in started:
            one.kill()
