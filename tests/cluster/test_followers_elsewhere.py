"""A caller that follows its call at two gateways cancels it only where it leaves the last of them (Q1)."""

import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest

from tests.cluster.redis_server import RedisServer
from tests.cluster.test_gateways import ask, gateway
from tests.e2e.gateway import Gateway, until
from tests.e2e.raw_client import Http, call
from tests.serve.api_client import Api

ADA = {"name": {"action": "accept", "content": {"name": "Ada"}}}


@pytest.fixture(scope="module")
def two(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    """Two gateways of one cluster."""
    folder = tmp_path_factory.mktemp("gateways")
    one, other = gateway(folder, redis, 1), gateway(folder, redis, 2)
    yield one, other
    one.stop()
    other.stop()


@pytest.mark.parametrize("leaves_first", ["owner", "other"])
def test_a_call_goes_on_while_it_is_followed_anywhere(
    two: tuple[Gateway, Gateway], leaves_first: str
) -> None:
    """D1, Q1 d, X1: whichever gateway owns the call."""
    one, other = two
    tag = f"mark-{uuid4().hex}"
    asked = ask(one, call("ask_then_linger", {"tag": tag}))
    retry = call("ask_then_linger", {"tag": tag}, requestState=asked["requestState"], inputResponses=ADA)
    first, second = (one, other) if leaves_first == "owner" else (other, one)
    with Http(second.url) as stays:
        stays.put(retry)
        one.until_marked(tag, "answered")
        with Http(first.url) as leaves:
            leaves.put({**retry, "params": {**retry["params"], "inputResponses": {}}})
            ask(first, call("nap", {"sleep_s": 0.3}))  # it follows by now
        ask(first, call("nap", {"sleep_s": 0.5}))
        assert one.marks(tag) == ["ran", "answered"]
    one.until_marked(tag, "cancelled: the client closed the stream")


def test_followers_of_a_killed_gateway_count_no_more(
    two: tuple[Gateway, Gateway], redis: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """D2, X1: its clients have lost their connections."""
    one, tag = two[0], f"mark-{uuid4().hex}"
    doomed = gateway(tmp_path_factory.mktemp("doomed"), redis, 3)
    asked = ask(one, call("ask_then_linger", {"tag": tag}))
    retry = call("ask_then_linger", {"tag": tag}, requestState=asked["requestState"], inputResponses=ADA)
    with Http(one.url) as stays, Http(doomed.url) as lost:
        stays.put(retry)
        one.until_marked(tag, "answered")
        lost.put({**retry, "params": {**retry["params"], "inputResponses": {}}})
        ask(doomed, call("nap", {"sleep_s": 0.3}))
        doomed.kill()
        until(lambda: _living(one) == 2, "its lease to run out")
        time.sleep(0.5)  # the next look at the leases
        assert one.marks(tag) == ["ran", "answered"]
        with suppress(OSError):
            lost.close()
    one.until_marked(tag, "cancelled: the client closed the stream")


def _living(at: Gateway) -> int:
    """The number of gateways that live."""
    return sum(one["left_s"] > 0 for one in Api(at).get("/api/cluster").body["members"])
