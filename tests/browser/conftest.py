"""What the browser tests share: a site, and one browser of each kind, started when first wanted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.chain_fixtures import bench, carried, chain, either, linked
from tests.browser.chromium import NATIVE, Chromium, running
from tests.browser.site import Site, served
from tests.providers.conftest import pytest_pyfunc_call

__all__ = ["bench", "carried", "chain", "either", "linked", "pytest_pyfunc_call"]

HERE = Path(__file__).parent
# A browser takes seconds to start where others run beside it, and tells some things after half a minute.
SLOW = pytest.mark.timeout(120)
# Where many do, it is sometimes starved for longer than any test waits. What failed is tried once
# more, and the summary names it with its trace; what fails twice fails.
AGAIN = pytest.mark.flaky(reruns=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of this folder have more time: one of them starts the browser."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(AGAIN)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(SLOW)


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """The pages that tests open."""
    with served() as one:
        yield one


@pytest.fixture(autouse=True)
def no_pages_of_others(site: Site) -> Iterator[None]:
    """What one test made up is not served to the next; what a module made up stays."""
    before = dict(site.pages)
    yield
    site.pages = before


@pytest.fixture(scope="session")
def native_browser() -> Iterator[Chromium]:
    """A browser with WebMCP of its own."""
    with running("--headless=new", NATIVE) as browser:
        yield browser


@pytest.fixture(scope="session")
def plain_browser() -> Iterator[Chromium]:
    """A browser without WebMCP."""
    with running("--headless=new") as browser:
        yield browser


@pytest.fixture(params=["native", "plain"])
def browser(request: pytest.FixtureRequest) -> Iterator[Chromium]:
    """Either browser, with no tab of another test."""
    one: Chromium = request.getfixturevalue(f"{request.param}_browser")
    one.clear()
    yield one


@pytest.fixture
def native(native_browser: Chromium) -> Chromium:
    """The browser with WebMCP, with no tab of another test."""
    native_browser.clear()
    return native_browser


@pytest.fixture
def plain(plain_browser: Chromium) -> Chromium:
    """The browser without WebMCP, with no tab of another test."""
    plain_browser.clear()
    return plain_browser
