"""`afoot connect` as a program: what it needs to start, what it prints, what it takes."""

import subprocess
import sys
from typing import Final

from tests.cli.conftest import Run, program
from tests.e2e.gateway import Gateway

# What a bridge must not load: it is started by every host, and waited for.
HEAVY: Final = {"pydantic", "mcp", "mcp_types", "httpx2", "uvicorn", "uvloop", "rich", "sqlite3"}
OTHERS: Final = {
    "afoot.engine",
    "afoot.serve",
    "afoot.providers",
    "afoot.store",
    "afoot.gateway",
    "afoot.app",
}


def test_a_bridge_starts_without_anything_heavy(gateway: Gateway) -> None:
    """House: a bridge loads neither `mcp` nor pydantic nor the engine."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "afoot", "connect"],
        env=gateway.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}
    assert done.returncode == 0 and done.stdout == ""
    assert {"afoot.bridge.relay", "msgspec"} <= loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    assert not {".".join(name.split(".")[:2]) for name in loaded} & OTHERS


def test_a_client_that_says_nothing_gets_nothing(run: Run) -> None:
    """V2: not a word on stdout, which belongs to the protocol."""
    done = run("connect")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_wrong_usage_is_told_in_one_line(lone: dict[str, str]) -> None:
    """V2: exit 2, and where to read more."""
    done = program(("connect", "--port", "7"), lone)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "afoot connect --help" in done.stderr
