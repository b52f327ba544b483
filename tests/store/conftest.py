"""Every journal there is, opened for the shared contract; and async tests run by a loop of their own."""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from afoot.core.ports import Journal
from afoot.store.memory import MemoryJournal
from afoot.store.sqlite import SqliteJournal

Opener = Callable[[], AbstractAsyncContextManager[Journal]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An async test gets a new loop; its fixtures are plain."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(params=["memory", "sqlite", "sqlite-full"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens a journal of each kind; the contract holds for all of them."""
    kinds: dict[str, Opener] = {
        "memory": MemoryJournal,
        "sqlite": lambda: SqliteJournal(tmp_path / "history.db"),
        "sqlite-full": lambda: SqliteJournal(tmp_path / "history.db", "full"),
    }
    return kinds[request.param]
