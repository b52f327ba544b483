"""Processes that tests, and what they start, leave behind or must not."""

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.gateway import until

START_S = 20.0


def marked(word: str) -> list[int]:
    """The processes that live and have this word in their environment, wherever they descend from."""
    return [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdecimal() and _has(folder, word)
    ]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listening(command: list[str], environment: Mapping[str, str], port: int) -> Iterator[None]:
    """A program that serves on a port; it ends with the block."""
    child = subprocess.Popen(
        command, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        assert child.poll() is None, f"{command} did not start"
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        until(answers, f"{command} on port {port}", START_S)
        yield
    finally:
        child.kill()
        child.wait()


def _has(process: Path, word: str) -> bool:
    with suppress(OSError):  # it may end meanwhile
        is_dead = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_dead and word.encode() in (process / "environ").read_bytes()
    return False
