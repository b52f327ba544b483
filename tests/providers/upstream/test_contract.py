"""The provider contract, kept by servers on stdio, behind HTTP and in process, in both eras."""

from collections.abc import Callable, Iterator

import pytest

from afoot.config.settings import Server
from afoot.core.ports import Provider
from afoot.providers.upstream.provider import Upstream
from tests.providers.provider_contract import *  # noqa: F403
from tests.providers.upstream.started_servers import raw, sdk_on_http

PLACES = ("stdio", "http", "in process")
ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with sdk_on_http() as url:
        yield url


@pytest.fixture(params=[(place, era) for place in PLACES for era in ERAS], ids=" ".join)
def provider(request: pytest.FixtureRequest) -> Callable[[], Provider]:
    place, era = request.param
    if place == "stdio":
        server = raw(era[:4], era=era)
    elif place == "http":
        server = Server(url=request.getfixturevalue("address"), era=era)
    else:
        server = Server(module="tests.providers.upstream.sdk_server:server", era=era)
    return lambda: Upstream("far", server)
