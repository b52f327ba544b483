"""The tests of the console's scripts that need no browser: Node runs them, one file a test here."""

import subprocess
from pathlib import Path

import pytest

from tests.conformance.suite import node

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*.test.mjs")))
def test_what_needs_no_browser_holds_in_node(file: str) -> None:
    """V1: the parts of the console, each by itself; the names of Node's tests say what for."""
    command = [
        node(),
        "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
        "--test",
        "--test-reporter=spec",
        file,
    ]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=25, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
