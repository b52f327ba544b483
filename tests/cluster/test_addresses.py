"""Addresses of a Redis: one server and a Sentinel's service work, all others are refused in one sentence."""

import os
import shutil
import socket
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
from afoot.store.redis.journal import RedisJournal
from tests.cluster.cluster_tools import until
from tests.cluster.redis_server import RedisServer, redis_server
from tests.cluster.worker_process import TOOLS, workers

SERVICE = "facts"
PASSWORD, AT_SENTINEL = "hidden-at-server", "hidden-at-sentinel"
SENTINEL_LOGIN = f"?sentinel_username=ann&sentinel_password={AT_SENTINEL}"
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


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_gateway_and_worker_follow_a_sentinel_to_the_next_master(tmp_path: Path, host: str) -> None:
    """D5, D1: calls go on while the master is gone, and work at the one that takes its place.

    The Sentinel on IPv6 has a login of its own, and the servers have another one.
    """
    is_closed = ":" in host
    if is_closed:
        need_ipv6()
    with sentinel(tmp_path, host, is_closed=is_closed) as (watched, master, replica):
        settings = make_settings({"cluster": _cluster(watched.url), "drain_s": 0})
        gateway = Gateway(settings=settings)
        gateway.bare = True
        with workers(watched, "watched", tmp_path / "workers", 1):
            async with gateway:
                await until(lambda: any(one.name == "quick" for one in gateway.tools()), "the functions")
                assert (await gateway.result(gateway.submit("quick"))).end is not None
                master.kill()
                await until(lambda: is_master(replica), "a new master")
                journal = gateway.engine.recorder
                await until(lambda: journal.degraded is None, "the history at the new master")
                call = gateway.submit("quick")
                done = await gateway.result(call)
                assert done.end is not None and done.end.outcome == "ok"
                await journal.recorded()
                assert replica.client().exists(f"{{watched}}:facts:{call}") == 1


async def test_gateway_and_worker_use_a_server_on_ipv6(tmp_path: Path) -> None:
    """D5, D1: its address stands in brackets."""
    need_ipv6()
    with redis_server(tmp_path / "redis", "::1") as server:
        gateway = Gateway(settings=make_settings({"cluster": _cluster(server.url), "drain_s": 0}))
        gateway.bare = True
        with workers(server, "watched", tmp_path / "workers", 1):
            async with gateway:
                await until(lambda: any(one.name == "quick" for one in gateway.tools()), "the functions")
                done = await gateway.result(gateway.submit("quick"))
                assert done.end is not None and done.end.outcome == "ok"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis+sentinel://:hidden@one:1/facts?sentinel_password=hidden", "redis+sentinel://one:1/facts"),
        ("redis://one:1/0?password=hidden", "redis://one:1/0"),
    ],
)
def test_the_address_in_messages_has_no_login(url: str, place: str) -> None:
    """S7: of the server or of the Sentinels, before the hosts or behind the question mark."""
    assert RedisJournal(url).place == place


def is_master(server: RedisServer) -> bool:
    """Whether a server is the master. The Sentinel breaks the connections of one that is to become it."""
    with suppress(RedisError):
        return bool(server.client().execute_command("ROLE")[0] == b"master")
    return False


def need_ipv6() -> None:
    """Skip a test on a machine that has no IPv6."""
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 address ::1")


@contextmanager
def sentinel(
    folder: Path, host: str, *, is_closed: bool
) -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    """A Sentinel that watches a master and its replica; the `url` of the first leads to their service.

    `is_closed`: the servers have a password, and the Sentinel a user with another one.
    """
    at_server, at_sentinel, asked = "", "", ""
    more: dict[str, str] = {}
    lines = ""
    if is_closed:
        at_server, at_sentinel, asked = f":{PASSWORD}@", f"ann:{AT_SENTINEL}@", SENTINEL_LOGIN
        more = {"requirepass": PASSWORD, "masterauth": PASSWORD}
        lines = f"user default off\nuser ann on >{AT_SENTINEL} allchannels +@all\n"
    with (
        redis_server(folder / "master", host, **more) as master,
        redis_server(folder / "replica", host, replicaof=f"{host} {master.port}", **more) as replica,
    ):
        watched = RedisServer(folder / "sentinel", host)
        place = watched.url.partition("://")[2].partition("/")[0]
        watched.url = f"redis+sentinel://{at_server}{place}/{SERVICE}{asked}"
        auth = f"sentinel auth-pass {SERVICE} {PASSWORD}\n" if is_closed else ""
        config = watched.folder / "sentinel.conf"
        config.write_text(
            f"port {watched.port}\nbind {host}\ndir {watched.folder}\n{lines}"
            f"sentinel monitor {SERVICE} {host} {master.port} 1\n{auth}"
            f"sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 2000\n"
        )
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None, "redis-server is missing; scripts/test installs it"
        with (watched.folder / "log").open("ab") as log:
            process = subprocess.Popen([program, str(config), "--sentinel"], stdout=log, stderr=log)
        try:
            _wait_until_replicated(f"redis://{at_sentinel}{place}")
            yield watched, master, replica
        finally:
            process.kill()
            process.wait()


def _wait_until_replicated(url: str) -> None:
    """Wait until the Sentinel knows the replica, which takes it up to ten seconds."""
    deadline = time.monotonic() + REPLICATED_S
    while time.monotonic() < deadline:
        with suppress(RedisError, OSError):
            client = Redis.from_url(url, protocol=2)
            found = client.execute_command("SENTINEL", "REPLICAS", SERVICE)
            if found and "slave" in str(found[0]) and "s_down" not in str(found[0]):
                return
        time.sleep(0.1)
    pytest.fail("the Sentinel found no replica")


def _cluster(url: str) -> dict[str, object]:
    return {"redis": url, "name": "watched", "lease_s": 1.0}
