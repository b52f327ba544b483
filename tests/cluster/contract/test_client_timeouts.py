"""The tests of clients with fixed limits, over a cluster: handles and rounds are taken up at any gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.contract.cluster_front import PLACES, cluster_front
from tests.e2e.clients.test_client_timeouts import *  # noqa: F403
from tests.e2e.clients.test_client_timeouts import TOLD_S
from tests.e2e.clients.test_client_timeouts import __file__ as here
from tests.e2e.gateway import Gateway
from tests.e2e.official_client import Peers, peers


@pytest.fixture(scope="module", params=PLACES)
def hurried(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A cluster that knows of its callers' limit, and has one tool more."""
    folder, slow = tmp_path_factory.mktemp("hurried"), Path(here).with_name("slow_tools.py")
    with cluster_front(folder, str(request.param), {"caller_limit_s": TOLD_S}, [slow]) as front:
        yield front


@pytest.fixture(scope="module")
def hurried_clients(hurried: Gateway) -> Iterator[Peers]:
    """Official clients of both eras."""
    with peers({"http": hurried}) as found:
        yield found


@pytest.fixture
def transport() -> str:
    """HTTP: pipes belong to one gateway."""
    return "http"
