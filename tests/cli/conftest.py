"""What the tests of the command line share: a gateway, and the real program beside it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.gateway import Gateway, serving
from tests.serve.api_client import Api

LIMIT_S: Final = 45.0
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway on HTTP."""
    with serving(tmp_path_factory.mktemp("cli"), {"cancel_grace_s": 1}) as started:
        yield started


@pytest.fixture
def api(gateway: Gateway) -> Api:
    """Its API."""
    return Api(gateway)


@pytest.fixture
def run(gateway: Gateway) -> Run:
    """Runs the program where the gateway is found."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return program(words, gateway.environment)

    return run


@pytest.fixture
def lone(tmp_path: Path) -> dict[str, str]:
    """An environment in which no gateway runs."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AFOOT_")}
    return {**kept, "AFOOT_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def program(
    words: tuple[str, ...], environment: Mapping[str, str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The real program in pipes, with nobody at the keyboard."""
    return subprocess.run(
        [sys.executable, "-m", "afoot", *words],
        env=dict(environment), cwd=folder, timeout=LIMIT_S,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
