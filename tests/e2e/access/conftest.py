"""Tests of access share a gateway that requires a token."""

from collections.abc import Iterator

import pytest

from tests.e2e.gateway_with_servers import Front, fronting


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway that wants to know who calls."""
    with fronting(tmp_path_factory.mktemp("closed"), {}, {"access": {"required": True}}) as one:
        yield one
