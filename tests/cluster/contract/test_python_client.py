"""The tests of the official Python client, over a cluster."""

import pytest

from tests.e2e.clients.test_python_client import *  # noqa: F403
from tests.e2e.official_client import ERAS, Peer, Peers


@pytest.fixture(params=ERAS)
def peer(request: pytest.FixtureRequest, clients: Peers) -> Peer:
    """A client of each era, on HTTP: pipes belong to one gateway."""
    return clients("http", str(request.param))
