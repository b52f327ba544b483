"""A gateway in a process of its own, as an operator or a client would start it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final, TypeVar

import pytest

TOOLS: Final = Path(__file__).parent / "tools.py"
DANGEROUS: Final = TOOLS.with_name("approval_tools.py")
START_S: Final = 45.0
STOP_S: Final = 30.0
T = TypeVar("T")


class Gateway:
    """One process, its folder, and what can be asked of both."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        tools: Sequence[Path] = (),
        prefix: Sequence[str] = (),
    ) -> None:
        """Settings are the environment's, without `AFOOT_`, in lower case; `tools` come besides the usual."""
        self._tools = tools
        self._prefix = prefix  # words before its command
        self.folder = folder
        self.store = folder / "calls.db"
        self.errors = folder / "stderr"
        self._settings = {f"AFOOT_{key.upper()}": str(value) for key, value in (settings or {}).items()}
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        assert self._process is not None
        return self._process

    @property
    def environment(self) -> dict[str, str]:
        """The environment its process runs in."""
        self.folder.mkdir(parents=True, exist_ok=True)
        own = {"AFOOT_HOME": str(self.folder / "home"), "E2E_MARKS": str(self.folder)}
        return {**os.environ, **own, **self._settings}

    def command(self, *surface: str) -> list[str]:
        """The command that serves the tools on a surface."""
        tools = map(str, (TOOLS, DANGEROUS, *self._tools))
        return [sys.executable, "-m", "afoot", "serve", *tools, "--store", str(self.store), *surface]

    def bridge(self) -> list[str]:
        """The command that bridges a pipe to it."""
        return [sys.executable, "-m", "afoot", "connect"]

    def start(self) -> None:
        """Start it on HTTP; fails with what it said if it does not come up."""
        command = [*self._prefix, *self.command("--http", "127.0.0.1:0", "--json")]
        environment = self.environment
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
            )
        assert self.process.stdout is not None
        with DefaultSelector() as selector:
            selector.register(self.process.stdout, EVENT_READ)
            line = self.process.stdout.readline() if selector.select(START_S) else b""
        if not line.startswith(b"{"):
            self.kill()
            pytest.fail(f"no address within {START_S:.0f} s but {line!r}\n{self.said()[-4000:]}")
        self.url = str(json.loads(line)["mcp"])

    def stop(self) -> None:
        """End it as an operator would; with force only after that."""
        if self.process.poll() is None:
            self.process.terminate()
        self.wait(STOP_S)

    def wait(self, limit_s: float) -> int:
        """Wait for its end, and give its exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"the gateway did not end within {limit_s:.0f} s\n{self.said()[-4000:]}")
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self.process.kill()
        self.wait(STOP_S)

    def said(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text(errors="replace")

    def marks(self, tag: str) -> list[str]:
        """What the tool that was given this tag has noted."""
        file = self.folder / tag
        return file.read_text().splitlines() if file.exists() else []

    def until_marked(self, tag: str, text: str) -> None:
        """Wait for a mark that begins so."""
        until(lambda: any(line.startswith(text) for line in self.marks(tag)), f"{tag}: {text}")


def until(happened: Callable[[], T], what: str, limit_s: float = 20.0) -> T:
    """Wait until something is true, and give it; fails when the time is over."""
    end = time.monotonic() + limit_s
    while not (found := happened()):
        if time.monotonic() > end:
            pytest.fail(f"did not happen within {limit_s:g} s: {what}")
        time.sleep(0.01)
    return found


@contextmanager
def serving(
    folder: Path, settings: Mapping[str, object] | None = None, tools: Sequence[Path] = ()
) -> Iterator[Gateway]:
    """A gateway that is ended with the block."""
    gateway = Gateway(folder, {"drain_s": 0.2, **(settings or {})}, tools)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


def revive(gateway: Gateway) -> None:
    """Kill it, and start the next one on the same store."""
    gateway.kill()
    gateway.start()
