"""`afoot doctor` on the Redis of a cluster."""

from afoot.cli.doctor.cluster import check_cluster
from afoot.config.settings import Settings, make_settings
from tests.cluster.redis_server import RedisServer


def of(url: str, **more: object) -> Settings:
    """Settings of a cluster at this address."""
    return make_settings({"cluster": {"redis": url}, **more})


def test_a_gateway_that_is_alone_is_not_asked_for_a_redis() -> None:
    """D5: nothing is told where nothing is set."""
    assert list(check_cluster(Settings())) == []


def test_the_doctor_says_what_the_server_keeps_and_what_it_may_lose(redis: RedisServer) -> None:
    """D5: a setting that loses facts is a warning, and a failure if the history is required."""
    [found] = check_cluster(of(redis.url))
    assert found.state == "ok" and "up to one second" in found.text and "version" in found.text
    redis.client().config_set("appendonly", "no")
    try:
        [found] = check_cluster(of(redis.url))
        assert found.state == "warn" and found.fix == "set appendonly yes"
        [found] = check_cluster(of(redis.url, history="required"))
        assert found.state == "fail"
    finally:
        redis.client().config_set("appendonly", "yes")


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    """D5, S7: with the place, and what to do."""
    [found] = check_cluster(of("redis://ann:hidden@127.0.0.1:1/0"))
    assert found.state == "fail" and "127.0.0.1:1" in found.text and "hidden" not in found.text
