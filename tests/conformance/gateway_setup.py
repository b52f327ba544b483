"""A gateway for the suite to judge: its own tools, and an `mcp` SDK server behind it, as the case may be."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final

import pytest
from msgspec import Struct

from tests.conformance.fixture import OTHER_TOOLS, write_other_tools
from tests.conformance.fixture_offers import OTHER_PROMPTS, write_other_prompts
from tests.conformance.suite import HERE, ROOT
from tests.e2e.gateway import until

START_S: Final = 30.0
STOP_S: Final = 20.0
UPSTREAM: Final = "tests.conformance.upstream"


class Arrangement(Struct, frozen=True):
    """What stands where: `own` tools and only the rest behind, or nearly everything behind.

    The carrier "none" has no server behind: resources, prompts and completions are the gateway's own, too.
    """

    own: bool
    carrier: str = "stdio"  # or http, none
    era: str = "auto"  # in which the gateway speaks to the server behind it


@contextmanager
def serving(arrangement: Arrangement, folder: Path) -> Iterator[str]:
    """The address of a gateway with everything that the suite wants."""
    other, other_prompts = folder / "other.py", folder / "other_prompts.py"
    write_other_tools(other)
    write_other_prompts(other_prompts)
    is_alone = arrangement.carrier == "none"
    with behind(arrangement, folder) as server:
        config = folder / "afoot.toml"
        config.write_text(f'[servers.everything]\nera = "{arrangement.era}"\n{server}' * (not is_alone))
        # Questions that the suite leaves open are not worth waiting for at the end.
        settings = {"AFOOT_HOME": str(folder / "home"), "AFOOT_DRAIN_S": "0.5", OTHER_TOOLS: str(other)}
        settings[OTHER_PROMPTS] = str(other_prompts)
        files = ["fixture.py" if arrangement.own else "fixture_rest.py", "fixture_tasks.py"]
        files += ["fixture_offers.py"] if is_alone else []
        targets = [*(str(HERE / file) for file in files), *([str(other)] if arrangement.own else [])]
        targets += [str(other_prompts)] if is_alone else []
        command = [sys.executable, "-m", "afoot", "serve", *targets, "--reload", "--config", str(config)]
        command += ["--http", "127.0.0.1:0", "--json", "--store", str(folder / "calls.db")]
        with started(command, folder, settings) as process:
            yield address(process, folder / "stderr")


@contextmanager
def behind(arrangement: Arrangement, folder: Path) -> Iterator[str]:
    """How the gateway reaches the server behind it, as lines of the configuration."""
    tools = "" if arrangement.own else "tools"
    if arrangement.carrier == "none":
        yield ""
        return
    if arrangement.carrier == "stdio":
        words = json.dumps(["-m", UPSTREAM, "", tools])
        yield f'command = "{sys.executable}"\nargs = {words}\ncwd = "{ROOT}"\n'
        return
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    below = folder / "upstream"
    below.mkdir()
    with started([sys.executable, "-m", UPSTREAM, str(port), tools], below, {}):
        until(partial(is_listening, port), "the server behind the gateway", START_S)
        yield f'url = "http://127.0.0.1:{port}/mcp"\n'


def is_listening(port: int) -> bool:
    """Whether somebody listens on a port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def started(command: list[str], folder: Path, settings: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended as an operator would, and with force only after that."""
    with (folder / "stderr").open("w+b") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | settings,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                pytest.fail(f"{command[2:4]} did not stop within {STOP_S:.0f} s of SIGTERM")
            finally:
                if process.stdout is not None:
                    process.stdout.close()


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
