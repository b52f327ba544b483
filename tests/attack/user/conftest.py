"""A gateway of the owner, which another user of the machine attacks."""

from collections.abc import Iterator

import pytest

from tests.e2e.gateway import Gateway, serving


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with the usual settings."""
    with serving(tmp_path_factory.mktemp("usual")) as started:
        yield started
