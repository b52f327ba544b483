"""For all tests: properties are judged by examples, lines by no terminal; a home that is nobody's."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("afoot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("afoot")
os.environ.pop("COLUMNS", None)  # tools that run tests side by side set it; programs cut their lines by it
# Images of containers set this, and users do not. Without bytecode each program that the tests start compiles
# afoot again, and each worker compiles all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
TESTS = Path(__file__).parent
# Folders whose files take long, the longest first; all others are over in a moment.
LONG = (("conformance", "docs", "chaos"), ("browser", "cli", "cluster", "e2e"))
# Folders whose tests start programs and judge them by a clock. Four at a time, two cores sometimes starve
# one for longer than it waits. What failed is tried once more, and the summary names it with its trace.
CLOCKED = ("attack", "chaos", "cli", "cluster", "conformance", "docs", "e2e", "gateway")
# Folders of `--quick`: their tests need no browser, no Node and no process of their own.
QUICK = (
    "bridge",
    "config",
    "core",
    "engine",
    "hosts",
    "observe",
    "providers/functions",
    "serve",
    "store",
    "wire",
)
# Files in these folders that start or kill processes all the same.
PROCESSES = (
    "progress/test_programs.py",
    "store/test_lock.py",
    "store/test_purge.py",
    "serve/api/",
    "serve/test_console.py",
)
PLACES = ("AFOOT_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, which `scripts/test --quick` passes on."""
    parser.addoption(
        "--quick", action="store_true", help="only tests without a browser, Node or killed process"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick`, leave slow tests out before they are imported: the import takes a third of the time."""
    if config.getoption("--quick") and collection_path.is_relative_to(TESTS):
        return None if _is_quick(collection_path) else True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort long files first, so that no worker waits at the end."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in CLOCKED:
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: [item.path.relative_to(TESTS).parts[0] not in folders for folders in LONG])


def _is_quick(path: Path) -> bool:
    """Whether a file is of `--quick`, or a folder has such files."""
    place = path.relative_to(TESTS).as_posix()
    if path.is_dir():
        return any(
            f"{place}/".startswith(f"{quick}/") or f"{quick}/".startswith(f"{place}/") for quick in QUICK
        )
    return place.startswith(tuple(f"{quick}/" for quick in QUICK)) and not any(
        part in place for part in PROCESSES
    )


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home folder for what has no other: programs leave nothing in that of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
