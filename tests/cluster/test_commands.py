"""`afoot cluster` and `afoot worker` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import gateway
from tests.cluster.worker_process import TOOLS, workers
from tests.e2e.gateway import Gateway, until


def run(at: Gateway, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the environment of a gateway."""
    command = [sys.executable, "-m", "afoot", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=50, check=False, env=at.environment
    )


def test_gateways_and_workers_are_listed(redis: RedisServer, tmp_path: Path) -> None:
    """V4, D1: one line each, with the one that answers marked; or one object each."""
    here = gateway(tmp_path, redis, 1)
    try:
        with workers(redis, "afoot", tmp_path / "workers") as [worker]:
            until(lambda: worker.id in run(here, "cluster").stdout, "the worker to be listed")
            text = run(here, "cluster").stdout.splitlines()
            assert len(text) == 2 and text[0].startswith("* gateway") and text[1].startswith("  worker ")
            assert "0 calls of 4 slots" in text[1]
            found = [json.loads(line) for line in run(here, "cluster", "--json").stdout.splitlines()]
            assert [(one["role"], one["is_this"]) for one in found] == [("gateway", True), ("worker", False)]
            assert found[1]["id"] == worker.id and found[1]["slots"] == 4
    finally:
        here.stop()


def test_a_worker_that_cannot_work_says_why(tmp_path: Path) -> None:
    """E4: without a Redis, without functions, and with a number of slots that is none."""
    alone = Gateway(tmp_path)
    told = run(alone, "worker", str(TOOLS))
    assert told.returncode == 2 and "cluster.redis" in told.stderr
    told = run(alone, "worker", str(TOOLS), "--slots", "0")
    assert told.returncode == 2 and "--slots" in told.stderr
    away = Gateway(tmp_path, {"cluster": "redis://127.0.0.1:1"})
    told = run(away, "worker", str(TOOLS))
    assert told.returncode != 0 and "127.0.0.1:1" in told.stderr and "Traceback" not in told.stderr
