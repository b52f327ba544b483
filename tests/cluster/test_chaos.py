"""Gateways, workers and Redis are killed under load: every call ends once, and nothing unsafe runs twice."""

import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from afoot.wire.framing import ServerSentEvent
from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import gateway
from tests.cluster.worker_process import TOOLS, WorkerProcess
from tests.e2e.gateway import Gateway, until
from tests.serve.api_client import Api

LOAD_S = 6.0
SEED = 16
TOOLS_OF_LOAD = ("safe", "unsafe", "worker/safe", "worker/unsafe")
KILLS = 4


class Load:
    """The calls that gateways accepted, and the file in which each leaves its marks."""

    def __init__(
        self,
        folder: Path,
        chance: random.Random,
        tools: Sequence[str] = TOOLS_OF_LOAD,
        lasts_s: Sequence[float] = (0.0, 0.05, 0.5),
    ) -> None:
        self.folder = folder
        self._lasts_s = lasts_s
        self._tools = tools
        self.accepted: dict[str, tuple[str, Path]] = {}  # by call: its tool, its marks
        self._chance = chance
        self._number = 0

    def add(self, to: Gateway) -> None:
        """Start a call at a gateway; one that is dead, or refuses, has accepted nothing."""
        self._number += 1
        file = self.folder / f"marks{self._number}"
        tool = self._chance.choice(self._tools)
        seconds = self._chance.choice(self._lasts_s)
        arguments: dict[str, object] = {"file": str(file), "seconds": seconds}
        if tool.endswith("alone"):
            arguments["lock"] = str(self.folder / tool.replace("/", "-"))
        body = {"tool": tool, "arguments": arguments}
        with suppress(OSError, HTTPException, AssertionError):
            answer = Api(to).post("/api/calls", body, prefer="respond-async")
            if answer.status == 202:
                self.accepted[str(answer.body["id"])] = tool, file


@pytest.mark.timeout(240)
def test_every_accepted_call_ends_once_and_truthfully(redis: RedisServer, tmp_path: Path) -> None:
    """D1, D2, D3, U4: whatever dies, and whenever."""
    chance = random.Random(SEED)
    gateways = list[Gateway]()
    workers = list[WorkerProcess]()
    load = Load(tmp_path, chance)
    troubles: list[Callable[[], object]] = [
        lambda: revive(gateways[chance.randrange(2)]),
        lambda: replace_worker(workers, redis, tmp_path, chance.randrange(2)),
        lambda: cut(redis),
        lambda: (redis.kill(), redis.start()),
    ]
    chance.shuffle(troubles)
    try:
        for number in range(2):
            gateways.append(started(tmp_path, redis, number))
            workers.append(WorkerProcess(redis, "afoot", tmp_path / f"w{number}"))
        for one in workers:
            one.wait_until_ready()
        until(lambda: "worker" in servers_of(gateways[0]), "the functions of the workers")
        end = time.monotonic() + LOAD_S
        while time.monotonic() < end or troubles:
            for _ in range(12):
                load.add(chance.choice(gateways))
            if troubles:
                troubles.pop()()
        judge(load, gateways)
    finally:
        for worker in workers:
            worker.kill()
        for gateway_left in gateways:
            gateway_left.stop()


@pytest.mark.timeout(240)
def test_functions_on_workers_outlive_their_gateways(redis: RedisServer, tmp_path: Path) -> None:
    """D2: whatever gateway is killed, and whenever: each accepted call runs once, and ends well."""
    chance = random.Random(SEED)
    gateways = list[Gateway]()
    workers = list[WorkerProcess]()
    load = Load(tmp_path, chance, TOOLS_OF_LOAD[2:], (0.0, 0.5, 2.0))
    redis.client().flushall()  # other tests of this file use the same cluster
    try:
        for number in range(2):
            gateways.append(started(tmp_path, redis, number))
            workers.append(WorkerProcess(redis, "afoot", tmp_path / f"w{number}", slots=8))
        for one in workers:
            one.wait_until_ready()
        for one_gateway in gateways:
            until(lambda at=one_gateway: "worker" in servers_of(at), "the functions of the workers")
        for number in range(KILLS):
            for _ in range(8):
                load.add(chance.choice(gateways))
            time.sleep(chance.choice([0.0, 0.05, 0.3]))
            revive(gateways[number % 2])
            until(lambda: all("worker" in servers_of(at) for at in gateways), "the functions again")
        judge(load, gateways)
        api = Api(gateways[0])
        for call, (tool, file) in load.accepted.items():
            facts = [json.loads(event.data) for event in past(api, call)]
            kinds = [one["fact"]["type"] for one in facts if "fact" in one]
            assert api.call(call)["outcome"] == "ok", (call, tool, kinds)
            assert file.read_text() == "x" and kinds.count("started") == 1, (call, tool, kinds)
    finally:
        for worker in workers:
            worker.kill()
        for gateway_left in gateways:
            gateway_left.stop()


@pytest.mark.timeout(240)
def test_a_tool_runs_alone_whatever_dies(redis: RedisServer, tmp_path: Path) -> None:
    """D8: no slot is given twice, and none is kept: at the end every call has had its turn."""
    chance = random.Random(SEED)
    gateways = list[Gateway]()
    workers = list[WorkerProcess]()
    load = Load(tmp_path, chance, ("alone", "worker/alone"), (0.0, 0.05, 0.3))
    redis.client().flushall()  # other tests of this file use the same cluster
    troubles: list[Callable[[], object]] = [
        lambda: revive(gateways[0]),
        lambda: replace_worker(workers, redis, tmp_path, chance.randrange(3)),
        lambda: cut(redis),
        lambda: (redis.kill(), redis.start()),
        lambda: revive(gateways[1]),
    ]
    chance.shuffle(troubles)
    try:
        for number in range(2):
            gateways.append(started(tmp_path, redis, number))
        workers += [WorkerProcess(redis, "afoot", tmp_path / f"w{number}") for number in range(3)]
        for one in workers:
            one.wait_until_ready()
        for one_gateway in gateways:
            until(lambda at=one_gateway: "worker" in servers_of(at), "the functions of the workers")
        for trouble in troubles:
            for _ in range(16):
                load.add(chance.choice(gateways))
            time.sleep(chance.choice([0.0, 0.2, 0.5]))
            trouble()
        judge(load, gateways)
        assert not list(tmp_path.glob("*.overlap"))
        for kind in ("slots", "waiting"):
            until(lambda kind=kind: not redis.client().keys(f"{{afoot}}:{kind}:*"), f"no {kind} to be left")
    finally:
        for worker in workers:
            worker.kill()
        for gateway_left in gateways:
            gateway_left.stop()


def judge(load: Load, gateways: list[Gateway]) -> None:
    """Look at every accepted call: its end, its history, and how often it ran."""
    api = Api(gateways[0])
    assert len(load.accepted) > 20
    until(lambda: not api.get("/api/calls?state=live").body["calls"], "all calls to end", 60)
    for call, (tool, file) in load.accepted.items():
        found = api.call(call)
        ran = len(file.read_text()) if file.exists() else 0
        facts = [json.loads(event.data) for event in past(api, call)]
        kinds = [one["fact"]["type"] for one in facts if "fact" in one]
        assert kinds.count("finished") == 1, (call, kinds)
        assert found["outcome"] in ("ok", "uncertain", "lost", "failed"), found
        assert ran <= 1 or tool.endswith("/safe") or tool == "safe", (call, tool, ran, kinds)
        if found["outcome"] == "ok":
            assert ran, (call, kinds)
        if found["outcome"] == "lost":
            assert not ran, (call, kinds)


def past(api: Api, call: str) -> list[ServerSentEvent]:
    """The events of a call that is over."""
    with api.stream(f"/api/calls/{call}/events?follow=no") as events:
        return [one for one in events if one.event == "fact"]


def servers_of(of: Gateway) -> set[str]:
    """The servers whose tools a gateway offers."""
    return {tool["server"] for tool in Api(of).get("/api/tools").body["tools"]}


def started(folder: Path, redis: RedisServer, number: int) -> Gateway:
    """A gateway that also has the functions itself."""
    return gateway(folder, redis, number, TOOLS)


def revive(dead: Gateway) -> None:
    """Kill a gateway, and start the next in its place."""
    dead.kill()
    dead.start()


def replace_worker(workers: list[WorkerProcess], redis: RedisServer, folder: Path, which: int) -> None:
    """Kill a worker, and start another one."""
    workers[which].kill()
    workers[which] = WorkerProcess(redis, "afoot", folder / f"next{which}")
    workers[which].wait_until_ready()


def cut(redis: RedisServer) -> None:
    """Cut every connection to Redis, once."""
    with suppress(RedisError):
        redis.client().client_kill_filter(_type="normal", skipme=True)
