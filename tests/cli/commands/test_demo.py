"""`afoot demo`: a real process that shows something at once, and of which nothing stays."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from afoot.cli.commands.demo import DEMO_CALLS, _free_address
from tests.cli.commands.test_console import _logs_in as logs_in
from tests.cli.commands.test_console import pretend_browser
from tests.cli.commands.test_serve import read, serve
from tests.cli.conftest import LIMIT_S, program
from tests.e2e.gateway import TOOLS, until

NAMES = {name for name, *_ in DEMO_CALLS}
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def environment(lone: dict[str, str]) -> dict[str, str]:
    """Where no gateway runs, and every demo gets a port of its own."""
    return {**lone, "AFOOT_HTTP": "127.0.0.1:0"}


@contextmanager
def demo(
    environment: Mapping[str, str], *words: str, folder: Path | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """The program until the block ends; then Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "afoot", "demo", *words], env=dict(environment), cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)


def lines(environment: Mapping[str, str], *words: str) -> list[dict[str, Any]]:
    """What a client command prints as JSON."""
    done = program((*words, "--json"), environment)
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_newcomer_sees_tools_and_calls_at_once_and_nothing_stays(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """V2: six tools, each called already, found by plain commands; the folder's own config is not read."""
    (tmp_path / "afoot.toml").write_text('targets = ["nowhere.py"]\n')
    with demo(environment, folder=tmp_path) as process:
        said = read(process, "nothing of it stays behind.")
        assert {one["name"] for one in lines(environment, "tools")} == NAMES

        def shown() -> bool:
            calls = lines(environment, "calls", "--state", "live")
            waiting = {one["tool"] for one in calls if one["questions"]}
            return {one["tool"] for one in calls} == NAMES and waiting == {"book_trip", "delete_backups"}

        until(shown, "every tool called, and two of them asking", LIMIT_S)
        assert [one for one in lines(environment, "calls") if one["parent"]]
        [url] = [line.split()[1] for line in said if line.startswith("  console ")]
        assert logs_in(url)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, out, error) == (0, "", "")
    assert not Path(environment["AFOOT_HOME"]).exists()
    assert program(("status",), environment).returncode == 6


def test_its_link_logs_one_browser_in_once(environment: dict[str, str]) -> None:
    """S1: as every link of ours; `--json` is one line, `--open` opens a link of its own."""
    browser, seen = pretend_browser(Path(environment["AFOOT_HOME"]).parent)
    with demo({**environment, **browser}, "--json", "--open") as process:
        told = json.loads(read(process, "{")[0])
        assert set(told) == {"mcp", "console", "token", "pid"} and told["pid"] == process.pid
        until(seen.exists, "a browser", LIMIT_S)
        assert seen.read_text() != told["console"] and told["token"] not in seen.read_text()
        assert logs_in(told["console"]) and logs_in(seen.read_text())
        with pytest.raises(OSError, match="403"):
            logs_in(told["console"])


def test_the_commands_that_it_names_can_be_pasted(environment: dict[str, str], tmp_path: Path) -> None:
    """V2: beside a gateway of the person's own, which keeps its commands and its history to itself."""
    with serve([str(TOOLS)], environment, tmp_path) as own:
        read(own, "Ctrl-C")
        with demo(environment, folder=tmp_path) as process:
            said = read(process, "nothing of it stays behind.")
            command = next(line for line in said if "call export_pages" in line).replace("=20", "=2")
            done = subprocess.run(
                ["bash", "-c", command], env=environment, cwd=tmp_path, capture_output=True, text=True,
                check=False, timeout=LIMIT_S,
            )  # fmt: skip
            assert done.returncode == 0 and json.loads(done.stdout) == {"pages": 2}, done
            assert not NAMES & {one["name"] for one in lines(environment, "tools")}
            assert lines(environment, "calls") == []


def test_a_second_demo_names_the_first_and_a_killed_one_is_cleared_up(environment: dict[str, str]) -> None:
    """V2: one at a time, and what a crash left is no obstacle."""
    with demo(environment, "--json") as process:
        told = json.loads(read(process, "{")[0])
        second = program(("demo",), environment)
        assert second.returncode == 2 and str(told["pid"]) in second.stderr
        process.kill()
        process.wait()
    with demo(environment, "--json") as process:
        again = json.loads(read(process, "{")[0])
        assert again["token"] != told["token"]
    assert not Path(environment["AFOOT_HOME"], "demo").exists()


def test_a_taken_port_is_no_obstacle() -> None:
    """V2: the usual port if it is free, else any."""
    was_free = False
    for _ in range(20):  # another program may take the port meanwhile
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            assert _free_address(address) == "127.0.0.1:0"
        was_free = was_free or _free_address(address) == address
    assert was_free
