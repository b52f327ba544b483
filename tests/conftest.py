"""For all tests: properties are judged by examples, lines by no terminal; a home that is nobody's."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("afoot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afoot")
os.environ.pop("COLUMNS", None)  # whoever runs tests side by side sets it, and programs cut their lines by it
# Folders whose files take long, the longest first; all others are over in a moment.
LONG = (("conformance", "docs", "chaos"), ("browser", "cli", "e2e"))
PLACES = ("AFOOT_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files begin before short ones, in random order as ever: so at the end nobody waits for one."""
    items.sort(key=lambda item: [item.path.parent.name not in folders for folders in LONG])


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home folder for what has no other: programs leave nothing in that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
