"""Fixtures: chains for a module of tests, and tabs for each test."""

from collections.abc import Iterator

import pytest

from tests.browser.chain import Bench, Chain, attaching, linking
from tests.browser.site import Site

# Longer than the extension waits before it tries the second and the third time.
GRACE_S = 10.0
NATIVE_AND_NOT = ("native", "plain")
# For tests of what has nothing to do with who supplies WebMCP: one browser is enough.
ONCE = pytest.mark.parametrize("linked", ["native"], indirect=True)


@pytest.fixture(scope="module", params=NATIVE_AND_NOT)
def linked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Site
) -> Iterator[Chain]:
    """A gateway that approves everything, with the extension; a lost link has not long to come back."""
    browser = request.getfixturevalue(f"{request.param}_browser")
    settings = {"browser": {"link_grace_s": GRACE_S}}
    with linking(tmp_path_factory.mktemp("linked"), browser, site, settings) as one:
        yield one


@pytest.fixture(
    scope="module",
    params=[(how, kind) for how in ("extension", "cdp") for kind in NATIVE_AND_NOT],
    ids=" ".join,
)
def carried(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Site
) -> Iterator[Chain]:
    """A gateway that has its browser by either way."""
    how, kind = request.param
    browser = request.getfixturevalue(f"{kind}_browser")
    made = linking if how == "extension" else attaching
    with made(tmp_path_factory.mktemp("carried"), browser, site) as one:
        yield one


@pytest.fixture
def chain(linked: Chain) -> Chain:
    """The extension's chain, with no tab of another test."""
    linked.browser.clear()
    return linked


@pytest.fixture
def bench(chain: Chain) -> Bench:
    """A tab with every tool."""
    return chain.open()


@pytest.fixture
def either(carried: Chain) -> Chain:
    """A chain by either way, with no tab of another test."""
    carried.browser.clear()
    return carried
