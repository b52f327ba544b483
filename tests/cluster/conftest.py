"""One Redis for each file of tests; each test has a cluster of its own in it."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from afoot.config.settings import Settings, make_settings
from afoot.store.redis.journal import RedisJournal
from tests.cluster.redis_server import RedisServer, redis_server
from tests.store.conftest import Opener, pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

_numbers = count(1)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis for the tests of one file."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def name() -> str:
    """The name of a cluster that no other test uses."""
    return f"test{next(_numbers)}"


@pytest.fixture
def opener(redis: RedisServer, name: str) -> Opener:
    """Opens a journal in Redis."""
    return lambda: RedisJournal(redis.url, name)


@pytest.fixture
def settings(redis: RedisServer, name: str) -> Callable[..., Settings]:
    """Makes the settings of one more gateway of the test's cluster."""

    def made(**more: object) -> Settings:
        cluster = {"redis": redis.url, "name": name, "lease_s": 1.0}
        return make_settings({"cluster": cluster, "drain_s": 0, "unanswerable": "wait", **more})

    return made
