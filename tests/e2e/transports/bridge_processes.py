"""Bridges to one state folder, in which they start the gateway themselves."""

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.e2e.gateway import TOOLS, Gateway, until
from tests.e2e.raw_client import Message, Pipe, call, request

ERAS: Final = ("2026-07-28", "handshake")


class Hall:
    """A folder with a config; where hosts start bridges, and bridges a gateway."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        config = folder / "afoot.toml"
        config.write_text(f"targets = [{json.dumps(str(TOOLS))}]\n")
        own = {"config": config, "store": folder / "calls.db", "http": "127.0.0.1:0", "drain_s": 0.2}
        self.gateway = Gateway(folder, {**own, **(settings or {})})
        self._pipes: list[Pipe] = []

    def bridge(self, era: str = "") -> Pipe:
        """A new bridge; with an era, ready for its first call."""
        pipe = Pipe(self.gateway, bridged=True)
        self._pipes.append(pipe)
        if era == "handshake":
            pipe.shake_hands()
        return pipe

    @property
    def address(self) -> dict[str, Any]:
        """What the running gateway has announced; empty if none has."""
        with suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((self.gateway.folder / "home" / "gateway.json").read_text())
            return found
        return {}

    @property
    def pid(self) -> int:
        """The process of the gateway, once it has announced itself."""
        return until(lambda: int(self.address.get("pid", 0)), "a gateway", 20)

    def kill(self) -> int:
        """Kill the gateway as a crash would; its process."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), f"the end of {pid}")  # and of all its threads
        return pid

    def started(self) -> int:
        """How many gateways came up here."""
        log = self.gateway.folder / "home" / "gateway.log"
        return log.read_text().count("afoot serves ")

    def close(self) -> None:
        """End everything."""
        for pipe in self._pipes:
            pipe.__exit__()
        pid = self.address.get("pid")
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def hall(folder: Path, settings: Mapping[str, object] | None = None) -> Iterator[Hall]:
    """A hall that is cleared at the end."""
    found = Hall(folder, settings)
    try:
        yield found
    finally:
        found.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def called(era: str, tool: str, arguments: Message, id: int | str = 1, **meta: Any) -> Message:
    """A `tools/call` of either era."""
    if era == "handshake":
        return request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta}, id)
    return call(tool, arguments, id, **meta)


def said(answer: Message) -> str:
    """The text of a result."""
    text: str = answer["result"]["content"][0]["text"]
    return text
