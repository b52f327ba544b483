"""Addresses of a Redis: one server and a Sentinel's service work, all others are refused in one sentence."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from afoot import Gateway
from afoot.cli.doctor.cluster import check_cluster
from afoot.cluster.member import ClusterMember
from afoot.config.settings import make_settings
from afoot.errors import StoreError
from tests.cluster.cluster_tools import until
from tests.cluster.redis_server import RedisServer, redis_server
from tests.cluster.worker_process import TOOLS, workers

SERVICE = "facts"
REPLICATED_S = 20.0


def told_by(command: str, folder: Path, address: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The run of a command whose config file has this address."""
    (folder / "afoot.toml").write_text(f'[cluster]\nredis = "{address}"\n')
    environment = {**os.environ, "AFOOT_HOME": str(folder / "home")}
    words = [sys.executable, "-m", "afoot", command, *more, "--config", str(folder / "afoot.toml")]
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=folder
    )


@pytest.mark.parametrize("command", ["serve", "worker", "config", "doctor"])
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("redis+cluster://ann:hidden@127.0.0.1:1", "redis+cluster:// is not supported"),
        ("rediss+sentinel://ann:hidden@127.0.0.1:1/a", "rediss+sentinel:// is not supported"),
        ("redis+sentinel://ann:hidden@127.0.0.1:1/a?ssl_ca_certs=b", "takes no options"),
        ("ann:hidden@127.0.0.1", "has no scheme"),
    ],
)
def test_an_address_that_does_not_work_is_refused_by_file_and_key(
    tmp_path: Path, command: str, address: str, told: str
) -> None:
    """D5, S7: before anything is opened; the sentence says which addresses work, and has no password."""
    done = told_by(command, tmp_path, address)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "hidden" not in said, said
    assert told in said and "cluster.redis" in said and "afoot.toml" in said, said
    assert "redis://, rediss:// or unix://" in said, said


async def test_a_node_of_a_redis_cluster_is_refused(tmp_path: Path) -> None:
    """D5: by gateway, worker and doctor; before, calls on workers did not begin, and nothing said why."""
    with redis_server(tmp_path / "node", cluster_enabled="yes") as node:
        node.client().execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        settings = make_settings({"cluster": {"redis": node.url}}).cluster
        with pytest.raises(StoreError, match=r"cluster\.redis: .*Redis Cluster.*use one server"):
            async with ClusterMember(settings):
                pass
        done = told_by("worker", tmp_path, node.url, str(TOOLS))
        assert done.returncode != 0 and "node of a Redis Cluster" in done.stderr


def test_the_doctor_names_a_node_of_a_redis_cluster(tmp_path: Path) -> None:
    """D5: as the gateway does."""
    with redis_server(tmp_path / "node", cluster_enabled="yes") as node:
        [found] = check_cluster(make_settings({"cluster": {"redis": node.url}}))
    assert found.state == "fail" and "node of a Redis Cluster" in found.text


async def test_gateway_and_worker_follow_a_sentinel_to_the_next_master(tmp_path: Path) -> None:
    """D5, D1: calls go on while the master is gone, and work at the one that takes its place."""
    with sentinel(tmp_path) as (watched, master, replica):
        settings = make_settings({"cluster": _cluster(watched.url), "drain_s": 0})
        gateway = Gateway(settings=settings)
        gateway.bare = True
        with workers(watched, "watched", tmp_path / "workers", 1):
            async with gateway:
                await until(lambda: any(one.name == "quick" for one in gateway.tools()), "the functions")
                assert (await gateway.result(gateway.submit("quick"))).end is not None
                master.kill()
                await until(lambda: replica.client().execute_command("ROLE")[0] == b"master", "a new master")
                journal = gateway.engine.recorder
                await until(lambda: journal.degraded is None, "the history at the new master")
                call = gateway.submit("quick")
                done = await gateway.result(call)
                assert done.end is not None and done.end.outcome == "ok"
                await journal.recorded()
                assert replica.client().exists(f"{{watched}}:facts:{call}") == 1


@contextmanager
def sentinel(folder: Path) -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    """A Sentinel that watches a master and its replica; the `url` of the first leads to their service."""
    with (
        redis_server(folder / "master") as master,
        redis_server(folder / "replica", replicaof=f"127.0.0.1 {master.port}") as replica,
    ):
        watched = RedisServer(folder / "sentinel")
        watched.url = f"redis+sentinel://127.0.0.1:{watched.port}/{SERVICE}"
        config = watched.folder / "sentinel.conf"
        config.write_text(
            f"port {watched.port}\nbind 127.0.0.1\ndir {watched.folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {master.port} 1\n"
            f"sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 2000\n"
        )
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None, "redis-server is missing; scripts/test installs it"
        with (watched.folder / "log").open("ab") as log:
            process = subprocess.Popen([program, str(config), "--sentinel"], stdout=log, stderr=log)
        try:
            _wait_until_replicated(watched.port)
            yield watched, master, replica
        finally:
            process.kill()
            process.wait()


def _wait_until_replicated(port: int) -> None:
    """Wait until the Sentinel knows the replica, which takes it up to ten seconds."""
    deadline = time.monotonic() + REPLICATED_S
    while time.monotonic() < deadline:
        with suppress(RedisError, OSError):
            client = Redis(port=port, protocol=2)
            found = client.execute_command("SENTINEL", "REPLICAS", SERVICE)
            if found and "slave" in str(found[0]) and "s_down" not in str(found[0]):
                return
        time.sleep(0.1)
    pytest.fail("the Sentinel found no replica")


def _cluster(url: str) -> dict[str, object]:
    return {"redis": url, "name": "watched", "lease_s": 1.0}
