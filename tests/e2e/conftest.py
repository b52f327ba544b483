"""What the tests from end to end share: a gateway on HTTP, and official clients, once a module."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.e2e.official_client import ERAS, Peers, peers


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP."""
    with serving(tmp_path_factory.mktemp("http")) as started:
        yield started


@pytest.fixture(scope="module")
def clients(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    """Official clients by transport and era; each on stdio has a gateway, and a folder, of its own."""
    own = {f"stdio {era}": Gateway(tmp_path_factory.mktemp("stdio")) for era in ERAS}
    bridged = {f"connect {era}": gateway for era in ERAS}
    with peers({"http": gateway, **own, **bridged}) as found:
        yield found


@pytest.fixture
def fresh() -> Callable[[], str]:
    """Makes tags that no other test uses."""
    return lambda: f"mark-{uuid4().hex}"
