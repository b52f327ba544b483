"""A gateway whose tools make trees of calls."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.providers.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP, with the tools beside this file."""
    folder = tmp_path_factory.mktemp("story")
    with serving(folder, {"drain_s": 0.2}, tools=[Path(__file__).with_name("tree_tools.py")]) as started:
        yield started
