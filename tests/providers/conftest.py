"""Async tests run by a loop of their own, and a process left as it was found."""

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from afoot.providers.functions import output_capture
from afoot.testing import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An async test gets a new loop, with the fake clock if its module says so; its fixtures are plain."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    runs = run if getattr(pyfuncitem.module, "HAS_FAKE_CLOCK", False) else asyncio.run
    runs(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def no_capture_left() -> Iterator[None]:
    """A test that ran a tool listens to this test's streams; the next one has its own."""
    yield
    output_capture.uninstall()
