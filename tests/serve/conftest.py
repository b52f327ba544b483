"""What the tests of the operator's API share: a gateway in a process of its own, once a module."""

from collections.abc import Iterator

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.providers.conftest import pytest_pyfunc_call
from tests.serve.api_client import Api

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP."""
    with serving(tmp_path_factory.mktemp("api")) as started:
        yield started


@pytest.fixture
def api(gateway: Gateway) -> Api:
    """Its API."""
    return Api(gateway)
