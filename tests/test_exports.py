"""The public names of afoot, and of what it offers to tests."""

import subprocess
import sys
from types import ModuleType

import pytest

import afoot
import afoot.testing

modules = pytest.mark.parametrize("module", [afoot, afoot.testing], ids=lambda module: module.__name__)


@modules
def test_the_public_names_are_sorted_and_can_be_had(module: ModuleType) -> None:
    """House: what is offered is there, once, in order."""
    assert list(module.__all__) == sorted(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_the_public_names_are_all_that_is_found() -> None:
    """House: the table behind the lazy imports and the list are the same."""
    assert sorted(vars(afoot)["_WHERE"]) == afoot.__all__
    assert not hasattr(afoot, "nonsense")


@modules
def test_every_public_name_says_what_it_promises(module: ModuleType) -> None:
    """House: a docstring on each."""
    for name in module.__all__:
        assert (getattr(module, name).__doc__ or "").strip(), f"{module.__name__}.{name} has no docstring"


def test_a_star_import_brings_exactly_these() -> None:
    """House: no more, no less."""
    brought: dict[str, object] = {}
    exec("from afoot import *", brought)
    assert sorted(name for name in brought if not name.startswith("__")) == afoot.__all__


def test_importing_afoot_brings_neither_pydantic_nor_mcp() -> None:
    """Deliver 8: client commands start fast."""
    check = "import afoot, sys; print(sorted({'pydantic', 'mcp', 'msgspec', 'uvicorn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_one_that_is_installed() -> None:
    """House: one number."""
    from importlib.metadata import version

    assert afoot.__version__ == version("afoot")
