"""The gateway of the tests from end to end is a cluster: with functions at gateways, or on workers."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.cluster.contract.cluster_front import PLACES, cluster_front
from tests.e2e.gateway import Gateway
from tests.e2e.official_client import Peers, peers


@pytest.fixture(scope="module", params=PLACES)
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The cluster."""
    with cluster_front(tmp_path_factory.mktemp("cluster"), str(request.param)) as front:
        yield front


@pytest.fixture(scope="module")
def clients(gateway: Gateway) -> Iterator[Peers]:
    """Official clients of both eras."""
    with peers({"http": gateway}) as found:
        yield found


@pytest.fixture
def fresh() -> Callable[[], str]:
    """Makes tags that no other test uses."""
    return lambda: f"mark-{uuid4().hex}"
