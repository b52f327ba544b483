"""`Place`: the gateway of a soak, its servers, its disk and its clock, and all that may be done to them."""

import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.chaos.killable_gateway import SAFE
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import ROOT, Front, python
from tests.e2e.processes import free_port, marked
from tests.serve.api_client import Api

TOOLS: Final = Path(__file__).parent / "tools.py"
CLOCK: Final = Path(__file__).parent / "clock"
WORD: Final = "SOAK_PLACE"  # in the environment of all processes of one soak, so that none is left
READY_S: Final = 90.0
STORE_ROOM_BYTES: Final = 64 * 1024  # how much a "full" disk still takes: a log may have room left
SETTINGS: Final[dict[str, object]] = {
    "restart_limit": 1000,
    "answer_s": 5,
    "cancel_grace_s": 1,
    "queue_limit_s": 30,
    "start_limit_s": 20,
    "sse_after_s": 1,
    "keepalive_s": 2,
    "stuck_s": 3,
    "task_after_s": 0,
    "task_ttl_s": 20,
    "ask_by": "both",
    "unanswerable": "wait",
    "retain": {"bytes": 0},
}
STDIO: Final = ("older", "newer")
HTTP: Final = "remote"
SERVERS: Final = (*STDIO, HTTP)


class SoakGateway(Front):
    """A gateway whose marks have a folder of their own, and whose clock the soak sets."""

    def __init__(self, folder: Path, port: int) -> None:
        self.marks_folder = folder / "marks"
        self.marks_folder.mkdir(parents=True)
        self.clock_file = folder / "clock"
        self.clock_file.write_bytes(struct.pack("d", 0.0))
        marks = {"E2E_MARKS": str(self.marks_folder), WORD: str(folder)}
        servers = {name: python("tests.soak.server", name, **marks) for name in STDIO}
        servers["older"]["era"] = "2025-11-25"
        tables = {f"{name}/{name}_safe": SAFE for name in SERVERS}
        super().__init__(
            folder,
            {**servers, HTTP: {"url": f"http://127.0.0.1:{port}/mcp"}},
            {**SETTINGS, "tools": tables},
            own=(TOOLS,),
        )

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the gateway: its marks, its clock, and the word that finds its processes."""
        return {
            **super().environment,
            "E2E_MARKS": str(self.marks_folder),
            "SOAK_CLOCK": str(self.clock_file),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(CLOCK), os.environ.get("PYTHONPATH", "")])),
            WORD: str(self.folder),
        }

    def start(self) -> None:
        """Start it, and read what its tools print: a pipe that nobody reads would hold up the gateway."""
        super().start()
        assert self.process.stdout is not None
        copy = os.dup(self.process.stdout.fileno())
        threading.Thread(target=_drain, args=(copy,), daemon=True).start()

    def marks(self, tag: str) -> list[str]:
        """The marks of a tag."""
        file = self.marks_folder / tag
        return file.read_text().splitlines() if file.exists() else []


class Place:
    """One gateway after the other on one store, with a server on HTTP beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.gateway = SoakGateway(folder, self.port)
        self.lives = 0  # gateways so far
        self.is_up = threading.Event()
        self.change = threading.Lock()  # held while the gateway is killed and started
        self._remote: subprocess.Popen[bytes] | None = None
        self._endless = resource.getrlimit(resource.RLIMIT_FSIZE)
        self._ahead_s = 0.0

    @property
    def pid(self) -> int:
        """The process of the gateway that runs now."""
        return self.gateway.process.pid

    @property
    def api(self) -> Api:
        """The API of the gateway that runs now."""
        return Api(self.gateway)

    def start(self) -> None:
        """Start the next gateway."""
        self.gateway.start()
        self.lives += 1
        self.is_up.set()

    def wait_for_servers(self) -> None:
        """Wait until the tools of all servers are known."""
        wanted = {f"{name}_work" for name in SERVERS}
        api = self.api
        until(
            lambda: wanted <= {tool["name"] for tool in api.get("/api/tools").body["tools"]},
            "all servers to be known",
            READY_S,
        )

    def kill_gateway(self) -> None:
        """Kill the gateway, and start the next one on the same store."""
        with self.change:
            self.is_up.clear()
            self.gateway.kill()
            self.start()

    def start_remote(self) -> None:
        """Start the server on HTTP."""
        command = [sys.executable, "-m", "tests.soak.server", HTTP, str(self.port)]
        marks = {"E2E_MARKS": str(self.gateway.marks_folder), WORD: str(self.folder)}
        self._remote = subprocess.Popen(
            command, env={**os.environ, **marks}, cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def restart_remote(self) -> None:
        """Kill the server on HTTP, and start it again on its port."""
        self.stop_remote()
        self.start_remote()

    def revive_remote(self) -> None:
        """Start the server on HTTP again if it was killed."""
        if self._remote is not None and self._remote.poll() is not None:
            self.start_remote()

    def stop_remote(self) -> None:
        """Kill the server on HTTP, if it runs."""
        if self._remote is not None:
            self._remote.kill()
            self._remote.wait()

    def server_pids(self) -> list[int]:
        """The processes of the servers that run now; the gateway may be busy or away."""
        found = [one.get("pid") for one in self.api.get("/api/servers").body["servers"]]
        remote = [] if self._remote is None else [self._remote.pid]
        return [pid for pid in found if pid] + remote

    def tool_pids(self, tags: list[str]) -> list[int]:
        """The processes in which tools with these tags began, but for the gateway's own."""
        begun = [
            line.split()[1] for tag in tags for line in self.gateway.marks(tag)[-1:] if line[:5] == "begun"
        ]
        return [int(pid) for pid in begun if int(pid) != self.pid]

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process of this soak; one that is gone, or somebody else's by now, gets none."""
        with suppress(OSError):
            if f"{WORD}={self.folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                os.kill(pid, number)

    def fill_disk(self) -> None:
        """Let no file of the gateway grow: a write fails with EFBIG, as SQLite tells of a full disk.

        The limit is set from outside (`prlimit`), so it needs neither root nor help of the gateway.
        """
        logs = (self.gateway.store, Path(f"{self.gateway.store}-wal"))
        most = max(file.stat().st_size for file in logs if file.exists()) if logs[0].exists() else 0
        limit = max(STORE_ROOM_BYTES, min(most, logs[-1].stat().st_size if logs[-1].exists() else most))
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (limit, self._endless[1]))

    def free_disk(self) -> None:
        """Let files grow again."""
        with suppress(ProcessLookupError):
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, self._endless)

    def set_clock(self, by_s: float) -> None:
        """Set the wall clock of the gateway and of its children."""
        self._ahead_s += by_s
        with self.gateway.clock_file.open("r+b") as file:
            file.write(struct.pack("d", self._ahead_s))

    def close(self) -> None:
        """End everything that this soak has started; nothing is left of it."""
        self.is_up.clear()
        gateway = self.gateway
        if self.lives and gateway.process.poll() is None:
            gateway.process.kill()
            gateway.wait(READY_S)
        self.stop_remote()
        for pid in marked(f"{WORD}={self.folder}"):
            if pid != os.getpid():
                self.signal(pid, signal.SIGKILL)


def _drain(pipe: int) -> None:
    """Read a pipe to its end."""
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        while stream.read(65_536):
            pass


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """A gateway with its servers, all of them ended with the block."""
    one = Place(folder)
    try:
        one.start_remote()
        one.start()
        one.wait_for_servers()
        yield one
    finally:
        one.close()
