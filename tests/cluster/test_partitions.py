"""Machines are cut off from Redis, without a broken connection: nothing runs twice, and each end is true."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.namespaces import Machine, Network, cut_for, network
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import gateway
from tests.cluster.worker_process import TOOLS, WorkerProcess
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api

SHORT_S = 0.1  # of a cut; the lease is ten times as long
RUNS_S = 8.0  # of a function, longer than a lease and the look for the dead


class Partitioned:
    """Two gateways and two workers, each on a machine of its own, and what is seen there."""

    def __init__(self, folder: Path, net: Network, stack: ExitStack) -> None:
        (folder / "redis").mkdir()
        self.redis = RedisServer(folder / "redis", net.host)
        self.redis.start()
        stack.callback(self.redis.close)
        self.machines = [net.add() for _ in range(4)]
        self.workers = [
            WorkerProcess(self.redis, "afoot", folder / f"w{at}", prefix=self.machines[at].prefix)
            for at in (2, 3)
        ]
        for worker in self.workers:
            stack.callback(worker.kill)
        self.gateways = list[Gateway]()
        for at in (0, 1):
            self.gateways.append(gateway(folder, self.redis, at, TOOLS, prefix=self.machines[at].prefix))
            stack.callback(self.gateways[-1].kill)
        for worker in self.workers:
            worker.wait_until_ready()
        for at in (0, 1):
            until(lambda at=at: self.offers_workers(at), "the functions of the workers")

    def offers_workers(self, at: int) -> bool:
        """Whether a gateway offers the functions of workers."""
        tools = self.ask(at, "/api/tools")["tools"]
        return any(tool["server"] == "worker" for tool in tools)

    def ask(self, at: int, path: str) -> dict[str, Any]:
        """Ask a gateway, on its own machine."""
        return self.machines[at].inside(lambda: dict(Api(self.gateways[at]).get(path).body))

    def start(self, at: int, tool: str, file: Path, seconds: float) -> str:
        """Start a call of a tool that leaves marks, and wait until it runs."""
        wanted = {"file": str(file), "seconds": seconds}
        call = self.machines[at].inside(lambda: Api(self.gateways[at]).start(tool, **wanted))
        until(file.exists, "the tool to begin")
        return call

    def outcome(self, at: int, call: str) -> str:
        """The outcome of a call, once a gateway knows it."""
        found = until(
            lambda: self.ask(at, f"/api/calls/{call}").get("outcome"), f"the end at gateway {at}", 30
        )
        return str(found)

    def worker_of(self, call: str) -> tuple[Machine, WorkerProcess]:
        """The machine and the worker that run a call."""
        run = self.redis.client().hget(f"{{afoot}}:call:{call}", "run")
        assert isinstance(run, bytes)
        name = run.decode().split()[1]
        at = next(at for at, worker in enumerate(self.workers) if worker.id == name)
        return self.machines[2 + at], self.workers[at]

    def kinds(self, call: str) -> Counter[str]:
        """How many facts of each kind Redis has of a call."""
        found = Counter[str]()
        for fields in self._entries(f"facts:{call}"):
            found.update(str(fact["type"]) for fact in json.loads(fields[b"b"]))
        return found

    def writers(self, call: str) -> list[str]:
        """The gateways that wrote the facts of a call, in their order."""
        return [one[b"o"].decode() for one in self._entries("tail") if one[b"c"].decode() == call]

    def _entries(self, stream: str) -> list[dict[bytes, bytes]]:
        found: Any = self.redis.client().execute_command("XRANGE", f"{{afoot}}:{stream}", "-", "+")
        pairs = [fields if isinstance(fields, list) else list(sum(fields.items(), ())) for _, fields in found]
        return [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in pairs]


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partitioned]:
    """The machines for all tests of this file; each test mends what it cuts."""
    with network() as net, ExitStack() as stack:
        yield Partitioned(tmp_path_factory.mktemp("partitions"), net, stack)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("tool", "outcome", "starts"), [("worker/unsafe", "uncertain", 1), ("worker/safe", "ok", 2)]
)
def test_a_worker_that_is_cut_off(
    cut_off: Partitioned, tmp_path: Path, tool: str, outcome: str, starts: int
) -> None:
    """D2, U4: what it ran is uncertain, or ran again elsewhere if it may; its late word changes nothing."""
    file = tmp_path / "marks"
    call = cut_off.start(0, tool, file, RUNS_S)
    machine, worker = cut_off.worker_of(call)
    machine.cut()
    try:
        assert cut_off.outcome(0, call) == outcome
    finally:
        machine.mend()
    until(lambda: worker.id in living(cut_off), "the worker to be back", 30)
    assert file.read_text() == "x" * starts
    later = cut_off.start(1, "worker/unsafe", tmp_path / "later", 0.1)
    assert cut_off.outcome(1, later) == "ok"
    found = cut_off.kinds(call)
    assert (found["started"], found["finished"]) == (starts, 1)
    assert cut_off.outcome(1, call) == outcome


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tool", "outcome"), [("worker/unsafe", "ok"), ("unsafe", "uncertain")])
def test_an_owner_that_is_cut_off(cut_off: Partitioned, tmp_path: Path, tool: str, outcome: str) -> None:
    """D2, D3: the other gateway goes on with its call; it writes nothing more, and tells the same at last."""
    file = tmp_path / "marks"
    call = cut_off.start(0, tool, file, RUNS_S)
    until(lambda: cut_off.ask(1, f"/api/calls/{call}").get("state") == "running", "the other to see it")
    cut_off.machines[0].cut()
    try:
        assert cut_off.outcome(1, call) == outcome
    finally:
        cut_off.machines[0].mend()
    assert cut_off.outcome(0, call) == outcome
    until(lambda: cut_off.ask(0, "/readyz").get("status") == "ready", "the owner before to be back", 30)
    assert file.read_text() == "x"
    found = cut_off.kinds(call)
    assert (found["started"], found["finished"]) == (1, 1)
    writers = cut_off.writers(call)
    assert len(dict.fromkeys(writers)) == 2 and writers == sorted(writers, key=writers.index)


@pytest.mark.timeout(120)
def test_a_cut_that_is_shorter_than_a_lease_costs_nothing(cut_off: Partitioned, tmp_path: Path) -> None:
    """D2: neither gateway nor worker takes the other for dead."""
    file = tmp_path / "marks"
    call = cut_off.start(0, "worker/unsafe", file, 2.0)
    machine, _ = cut_off.worker_of(call)
    cut_for(SHORT_S, machine, cut_off.machines[0])
    assert cut_off.outcome(0, call) == "ok" and file.read_text() == "x"
    assert len(set(cut_off.writers(call))) == 1


def living(seen: Partitioned) -> set[str]:
    """The members of the cluster whose leases have not run out."""
    members = seen.ask(1, "/api/cluster")["members"]
    return {one["id"] for one in members if one["left_s"] > 0}
