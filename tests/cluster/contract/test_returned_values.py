"""The tests of values that tools return, over a cluster."""

from collections.abc import Iterator

import pytest

from tests.cluster.contract.cluster_front import PLACES, cluster_front
from tests.e2e.clients.test_returned_values import *  # noqa: F403
from tests.e2e.clients.test_returned_values import TOOLS
from tests.e2e.gateway import Gateway


@pytest.fixture(scope="module", params=PLACES)
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A cluster with the tools of these tests."""
    with cluster_front(tmp_path_factory.mktemp("values"), str(request.param), tools=[TOOLS]) as front:
        yield front
