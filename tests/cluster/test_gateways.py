"""Gateways in processes of their own on one Redis: any of them answers for all, also if one is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from afoot.cluster.member import NOTICE_S
from tests.cluster.redis_server import RedisServer
from tests.cluster.worker_process import WorkerProcess
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, call, modern, request
from tests.serve.api_client import Api

PUBLIC_NAME = "gateways.test"  # by which a load balancer may call a gateway


def gateway(
    folder: Path, redis: RedisServer, number: int, *tools: Path, prefix: Sequence[str] = ()
) -> Gateway:
    """One more gateway of the cluster, with a state folder of its own; `tools` come besides the usual.

    `prefix`: the words before its command, as those that put it into a namespace.
    """
    place = folder / str(number)
    place.mkdir(parents=True, exist_ok=True)
    config = place / "afoot.toml"
    allowed = f'allow_hosts = ["{PUBLIC_NAME}"]\n'
    config.write_text(f'unanswerable = "wait"\n{allowed}[cluster]\nredis = "{redis.url}"\nlease_s = 1.0\n')
    made = Gateway(place, {"config": config, "drain_s": 0.2, "server_concurrency": 0}, tools, prefix)
    made.start()
    return made


@pytest.fixture(scope="module")
def two(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Two gateways of one cluster."""
    folder = tmp_path_factory.mktemp("gateways")
    one, other = gateway(folder, redis, 1), gateway(folder, redis, 2)
    yield one, other
    one.stop()
    other.stop()


def ask(to: Gateway, message: dict[str, Any]) -> dict[str, Any]:
    """Send one request of 2026-07-28 on a connection of its own, and give the result."""
    with Http(to.url) as http:
        answer = http.ask(message)
    assert "result" in answer, answer
    return dict(answer["result"])


def answered(
    gateways: Sequence[Gateway], tool: str, arguments: dict[str, str], asked: dict[str, Any]
) -> dict[str, Any]:
    """Answer round after round, each at the next gateway, and give the result."""
    content = {"name": {"name": "Ann"}, "age": {"age": 40}}
    for turn in cycle(gateways):
        assert asked["resultType"] == "input_required", asked
        answers = {
            key: {"action": "accept", "content": content[key]} for key in asked.get("inputRequests", {})
        }
        again = call(tool, arguments, requestState=asked["requestState"], inputResponses=answers)
        asked = ask(turn, again)
        if asked["resultType"] == "complete":
            return asked
    raise AssertionError("unreachable")


def test_every_retry_lands_at_another_gateway(two: tuple[Gateway, Gateway]) -> None:
    """D1, Q1: the same call goes on, is asked the next question there, and is not run a second time."""
    one, other = two
    asked = ask(one, call("ask_two_in_turn", {"tag": "retry"}))
    done = answered((other, one), "ask_two_in_turn", {"tag": "retry"}, asked)
    assert "Ann" in json.dumps(done) and "40" in json.dumps(done)
    assert one.marks("retry") == ["ran"] and not other.marks("retry")


def test_a_call_is_shown_and_cancelled_anywhere(two: tuple[Gateway, Gateway]) -> None:
    """D1, X1: at a gateway that does not run it."""
    one, other = two
    api = Api(one)
    running = api.start("linger", tag="anywhere")
    one.until_marked("anywhere", "")
    until(lambda: Api(other).get("/api/calls?state=live").body["calls"], "the call at the other gateway")
    seen = Api(other).call(running)
    assert seen["state"] == "running" and seen["tool"] == "linger"
    assert Api(other).post(f"/api/calls/{running}/cancel", {"reason": "enough"}).status == 202
    assert api.ended(running)["outcome"] == "cancelled"
    assert Api(other).ended(running)["message"] == "cancelled: enough"


def test_the_live_stream_of_one_gateway_tells_of_the_calls_of_the_other(two: tuple[Gateway, Gateway]) -> None:
    """D1, H2: the console shows every call of the cluster, wherever it is opened."""
    one, other = two
    with Api(other).stream("/api/events") as events:
        assert next(events).event == "snapshot"
        running = Api(one).start("count_up", n=3)
        facts = list[str]()
        for event in events:
            if event.event == "changes":
                told = json.loads(event.data)
                facts += [one["fact"]["type"] for one in told["facts"] if one["call"] == running]
            if "finished" in facts:
                break
        assert facts[:2] == ["opened", "started"] and "finished" in facts


def test_a_parked_call_of_a_killed_gateway_is_found_by_its_state(
    two: tuple[Gateway, Gateway], redis: RedisServer, tmp_path: Path
) -> None:
    """D2, Q1: the retry goes to any gateway; a safe call is run again there, and nobody is asked twice."""
    doomed = gateway(tmp_path, redis, 3)
    asked = ask(doomed, call("ask_safely", {"tag": "parked"}))
    doomed.kill()
    done = answered(two[::-1], "ask_safely", {"tag": "parked"}, asked)
    assert "Ann" in json.dumps(done) and "40" in json.dumps(done)
    assert doomed.marks("parked") == ["ran"]


def test_an_unsafe_call_of_a_killed_gateway_is_uncertain(
    two: tuple[Gateway, Gateway], redis: RedisServer, tmp_path: Path
) -> None:
    """D2, U4: within the lease and a moment, it is told so at every other gateway."""
    doomed = gateway(tmp_path, redis, 4)
    running = Api(doomed).start("linger", tag="doomed")
    doomed.until_marked("doomed", "")
    doomed.kill()
    for other in two:
        assert Api(other).ended(running)["outcome"] == "uncertain"


def test_modern_requests_need_no_particular_gateway(two: tuple[Gateway, Gateway]) -> None:
    """D1: the same list of tools, wherever it is asked for."""
    listed = [ask(one, modern("tools/list"))["tools"] for one in two]
    assert listed[0] == listed[1]


def test_requests_with_one_key_at_every_gateway_are_one_call(two: tuple[Gateway, Gateway]) -> None:
    """D2: sent at the same moment to different gateways, as a client does that retries behind a balancer."""
    for tag in ("key1", "key2", "key3"):
        message = call("nap", {"tag": tag}, **{"dev.afoot/idempotency": tag})
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(ask, two * 3, [message] * 6))
        calls = {answer["_meta"]["dev.afoot/call"] for answer in answers}
        assert len(calls) == 1
        assert (two[0].marks(tag) + two[1].marks(tag)).count("started") == 1


def test_the_members_of_the_cluster_are_listed_at_every_gateway(two: tuple[Gateway, Gateway]) -> None:
    """V4, V8: with their leases, and the one that answers; both are ready for a load balancer."""
    own = {listed(one)["id"] for one in two}

    def living(at: Gateway) -> set[str]:
        return {one["id"] for one in listed(at)["members"] if one["left_s"] > 0}

    for one in two:  # those that other tests have killed are over soon
        until(lambda at=one: living(at) == own, "both to be heard of, and no others")
    assert all(Api(one).get("/readyz").body == {"status": "ready"} for one in two)


def test_the_figures_of_the_cluster_are_at_every_gateway(two: tuple[Gateway, Gateway]) -> None:
    """V8, D1: members with their leases, how far each gateway is behind, and whether Redis answers."""
    for one in two:
        until(lambda at=one: figures(at)["afoot_cluster_redis_up"] == [1], "a look at Redis")
        until(lambda at=one: len(figures(at)["afoot_cluster_member_calls"]) > 1, "both to be heard of")
        found = figures(one)
        assert all(value <= 1 for value in found["afoot_cluster_member_lease_seconds"])
        assert sum(found["afoot_cluster_members"]) == len(found["afoot_cluster_member_calls"])
        assert found["afoot_cluster_queue_length"] == [0]
        assert abs(found["afoot_cluster_clock_skew_seconds"][0]) < 1
        until(lambda at=one: figures(at)["afoot_cluster_tail_lag"] == [0], "all facts to be known")


def afoot(at: Gateway, *words: str) -> subprocess.CompletedProcess[str]:
    """A command at a gateway."""
    command = [sys.executable, "-m", "afoot", "cluster", *words, "--at", at.url]
    return subprocess.run(
        command, env=at.environment, capture_output=True, text=True, timeout=30, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_gateway_is_drained_and_taken_over_by_commands(redis: RedisServer, tmp_path: Path) -> None:
    """D6, V4: drained, it is not ready; declared dead, it ends, and its calls are elsewhere."""
    one, other = gateway(tmp_path, redis, 8), gateway(tmp_path, redis, 9)
    try:
        ids = [listed(at)["id"] for at in (one, other)]
        until(lambda: {each["id"] for each in listed(other)["members"]} >= {*ids}, "both to be heard of")
        drained = afoot(other, "drain", ids[0], "--wait", "--json")
        assert drained.returncode == 0, drained.stderr
        assert json.loads(drained.stdout)["draining"] is True
        ready = Api(one).get("/readyz")
        assert (ready.status, ready.body) == (503, {"status": "draining"})
        refused = Api(one).post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}})
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert afoot(other, "resume", ids[0]).returncode == 0
        assert Api(one).get("/readyz").status == 200

        unknown = afoot(other, "drain", "nobody")
        assert unknown.returncode != 0 and "unknown member 'nobody'" in unknown.stderr
        lives = afoot(other, "takeover", ids[0])
        assert lives.returncode != 0 and "lives" in lives.stderr
        call = Api(one).start("ask_safely", tag="taken-over")
        Api(one).asked(call)
        taken = afoot(other, "takeover", ids[0], "--force", "--json")
        assert taken.returncode == 0, taken.stderr
        assert json.loads(taken.stdout)["calls"] == 1
        assert one.wait(30) == 0
        assert "declared dead by an operator" in one.said()
        assert "was declared dead, by operator" in other.said()
        assert Api(other).asked(call)["call"] == call
    finally:
        for at in (one, other):
            if at.process.poll() is None:
                at.stop()


def test_a_session_is_served_until_the_load_balancer_knows_of_the_drain(
    redis: RedisServer, tmp_path: Path
) -> None:
    """D6: calls of the handshake era, with and without a key; those of 2026-07-28 go elsewhere at once."""
    one = gateway(tmp_path, redis, 12)
    try:
        with Http(one.url) as http:
            http.shake_hands()
            own = listed(one)["id"]
            assert Api(one).post(f"/api/cluster/{own}/drain", {}).status == 200
            assert Api(one).get("/readyz").status == 503
            plain: dict[str, Any] = {"name": "add", "arguments": {"a": 1, "b": 2}}
            for called in (plain, {**plain, "_meta": {"dev.afoot/idempotency": "drained"}}):
                answer = http.ask(request("tools/call", called))
                assert answer["result"]["structuredContent"] == {"sum": 3}
            refused = Api(one).post("/api/calls", {"tool": "add", "arguments": {"a": 1, "b": 2}})
            assert refused.status == 503
            time.sleep(NOTICE_S)
            assert "drains this gateway" in http.ask(request("tools/call", plain))["error"]["message"]
    finally:
        one.stop()


def test_a_gateway_that_is_stopped_leaves_what_waits_to_the_other(redis: RedisServer, tmp_path: Path) -> None:
    """D6: a call that waits for an answer is not cancelled by a restart; it is answered elsewhere."""
    one, other = gateway(tmp_path, redis, 6), gateway(tmp_path, redis, 7)
    try:
        until(lambda: len([each for each in listed(one)["members"] if each["left_s"] > 0]) > 1, "the other")
        call = Api(one).start("ask_safely", tag="left-behind")
        unsafe = Api(one).start("linger", tag="cut-short")
        asked = Api(one).asked(call)
        one.until_marked("cut-short", "started")
        one.stop()
        question = until(lambda: Api(other).question(call) or {}, "the question at the other gateway")
        assert question["id"] == asked["id"]
        for content in ({"name": "Ann"}, {"age": 40}):
            question = until(lambda: Api(other).question(call) or {}, "a question at the other gateway")
            given = {"action": "accept", "content": content}
            assert Api(other).post(f"/api/questions/{question['id']}/answer", given).status == 200
            until(
                lambda id=question["id"]: (Api(other).question(call) or {}).get("id") != id, "it to be taken"
            )
        assert Api(other).ended(call)["outcome"] == "ok"
        assert Api(other).ended(unsafe)["outcome"] == "cancelled", "it ran, and may not run twice"
    finally:
        for at in (one, other):
            if at.process.poll() is None:
                at.stop()


def test_functions_on_workers_go_on_when_their_gateway_is_stopped(redis: RedisServer, tmp_path: Path) -> None:
    """D6, D2: whether they may be repeated or not, also one that waits for another; each runs once."""
    worker = WorkerProcess(redis, "afoot", tmp_path / "worker")
    one, other = gateway(tmp_path, redis, 10), gateway(tmp_path, redis, 11)
    try:
        worker.wait_until_ready()
        until(lambda: "safe" in tools_of(one) & tools_of(other), "the functions of the worker")
        until(lambda: len([each for each in listed(one)["members"] if each["left_s"] > 0]) > 2, "the others")
        started: dict[str, Path] = {}
        for tool in ("safe", "unsafe", "call_unsafe"):
            file = tmp_path / tool
            started[Api(one).start(tool, file=str(file), seconds=4.0)] = file
            until(file.exists, "the function to begin")
        one.stop()
        for call, file in started.items():
            assert Api(other).ended(call)["outcome"] == "ok", file.name
            assert file.read_text() == "x"
    finally:
        worker.kill()
        for at in (one, other):
            if at.process.poll() is None:
                at.stop()


def test_orders_need_the_right_to_administrate(two: tuple[Gateway, Gateway]) -> None:
    """S2, D6, D7: a token that may watch sees the members, and changes none."""
    command = [sys.executable, "-m", "afoot", "tokens", "add", "watcher", "--scope", "watch"]
    made = subprocess.run(
        command, env=two[0].environment, capture_output=True, text=True, timeout=30, check=True
    )
    watcher = Api(two[0])
    watcher.token = made.stdout.strip()
    own = watcher.get("/api/cluster").body["id"]
    for method, path in (("POST", "drain"), ("DELETE", "drain"), ("POST", "takeover")):
        assert watcher.send(method, f"/api/cluster/{own}/{path}", None, {}).status == 403
    assert watcher.send("POST", "/api/cluster/rotate-keys", None, {}).status == 403
    assert Api(two[0]).get("/readyz").status == 200


def figures(at: Gateway) -> dict[str, list[float]]:
    """The figures of a gateway as Prometheus reads them: all values of each name."""
    found: dict[str, list[float]] = {}
    for family in text_string_to_metric_families(Api(at).get("/metrics").body):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.value)
    return found


def tools_of(at: Gateway) -> set[str]:
    """The names of the tools that a gateway offers."""
    return {tool["name"] for tool in Api(at).get("/api/tools").body["tools"]}


def listed(at: Gateway) -> dict[str, Any]:
    """The cluster as one gateway knows it."""
    return dict(Api(at).get("/api/cluster").body)


def test_a_session_of_the_handshake_era_is_known_at_another_gateway(two: tuple[Gateway, Gateway]) -> None:
    """D1, D2: by its sealed id, as after a restart."""
    with Http(two[0].url) as first, Http(two[1].url) as second:
        first.shake_hands()
        second.session = first.session
        answer = second.ask(request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}))
        assert answer["result"]["structuredContent"] == {"sum": 3}
