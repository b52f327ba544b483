"""What the settings of a Redis may lose, in words."""

import pytest

from afoot.cluster.checks import LossyRedis, RedisSettings, costs, is_too_old, losses
from afoot.cluster.member import ClusterMember
from afoot.config.settings import make_settings
from tests.cluster.redis_server import RedisServer

SAFE = RedisSettings("7.0.15", "yes", "everysec", "0", "noeviction")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (SAFE, []),
        (RedisSettings("7.0.15", "yes", "always", "1000", "noeviction", 2), []),
        (RedisSettings("7.0.15", "no", "everysec", "0", "noeviction"), ["appendonly no"]),
        (RedisSettings("7.0.15", "yes", "no", "0", "noeviction"), ["appendfsync no"]),
        (RedisSettings("7.0.15", "yes", "everysec", "1000", "allkeys-lru"), ["allkeys-lru"]),
        (RedisSettings("7.0.15", "yes", "everysec", "0", "allkeys-lru"), []),
        (RedisSettings("7.0.15", "no", "", "1000", "volatile-lru"), ["appendonly no", "volatile-lru"]),
        (RedisSettings(), []),
    ],
)
def test_each_setting_that_loses_facts_is_told(settings: RedisSettings, told: list[str]) -> None:
    """D5: and no other."""
    found = losses(settings)
    assert len(found) == len(told)
    assert all(word in one.text for one, word in zip(found, told, strict=True))


def test_the_cost_of_safe_settings_is_told() -> None:
    """D5: in words that an operator understands."""
    assert costs(SAFE) == "a machine that fails loses up to one second; no replica: a lost disk loses it all"
    assert "nothing" in costs(RedisSettings("7.2", "yes", "always", replicas=2))
    assert "does not tell" in costs(RedisSettings())


def test_an_old_server_is_told() -> None:
    """D5: commands are missing there."""
    assert is_too_old(RedisSettings("6.0.16")) and not is_too_old(SAFE) and not is_too_old(RedisSettings())


async def test_a_required_history_refuses_settings_that_may_lose_it(redis: RedisServer, name: str) -> None:
    """D5: before anything is served; a history that is not required is only warned about."""
    cluster = make_settings({"cluster": {"redis": redis.url, "name": name}}).cluster
    redis.client().config_set("appendonly", "no")
    try:
        with pytest.raises(LossyRedis, match="set appendonly yes"):
            async with ClusterMember(cluster, is_history_required=True):
                pass
        async with ClusterMember(cluster) as member:
            assert member.journal.epoch
    finally:
        redis.client().config_set("appendonly", "yes")
    async with ClusterMember(cluster, is_history_required=True) as member:
        assert len(member.keys.arguments_key) == 32
