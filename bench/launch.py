"""`running` starts and ends the servers of the bench: their commands, their Python, their core."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.wire import BenchError

ROOT = Path(__file__).resolve().parent.parent
SERVERS = ROOT / "bench" / "servers"
PEERS = ROOT / ".bench-venv"
PINS = ("fastmcp==4.1.2", "mcp==2.3.0", "uvloop", "httptools")
SUBJECTS = ("afoot", "mcp", "fastmcp", "bare")
START_S = 40.0


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that all servers of a run share."""

    peers_python: str
    folder: Path
    uvloop: bool = False
    """Give the peers uvloop too; by their own `run` they use asyncio's loop."""
    before: Path | None = None
    """The folder of an older afoot, which the subject `before` runs."""


@dataclass(slots=True)
class Server:
    """A running server: a port on HTTP, pipes on stdio."""

    subject: str
    child: "subprocess.Popen[bytes]"
    port: int | None
    errors: Path

    def processor_s(self) -> float:
        """Return the processor time of all threads of the process, exact to the nanosecond."""
        threads = Path(f"/proc/{self.child.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def rss(self) -> int:
        """Resident bytes of the process and its children."""
        return sum(rss_of(pid) for pid in tree(self.child.pid))

    def complaint(self) -> str:
        """Return the last lines of the server's stderr."""
        return self.errors.read_text(errors="replace")[-1500:].strip()


def peers_python() -> str:
    """Return a Python with both peers installed; its environment is made if it is missing."""
    given = os.environ.get("AFOOT_BENCH_PEERS_PYTHON")
    if given:
        return given
    python = PEERS / "bin" / "python"
    done = PEERS / "installed"
    if not done.exists() or done.read_text() != " ".join(PINS):
        print(f"bench: installing {' '.join(PINS)} into {PEERS.name}", file=sys.stderr)
        venv.create(PEERS, with_pip=True, symlinks=True, clear=True)
        (PEERS / ".gitignore").write_text("*\n")
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PINS]
        made = subprocess.run(pip, capture_output=True, text=True, check=False)
        if made.returncode:
            raise BenchError(f"pip could not install the peers: {made.stderr[-1500:]}")
        done.write_text(" ".join(PINS))
    return str(python)


def cores() -> tuple[set[int], set[int]]:
    """Return the server's cores and the client's: one each if there are two, else all for both."""
    mine = sorted(os.sched_getaffinity(0))
    return ({mine[0]}, {mine[1]}) if len(mine) > 1 else (set(mine), set(mine))


def raise_limits() -> None:
    """Raise the soft limit of open files, which children inherit: each waiting call is a connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def running(subject: str, transport: str, setup: Setup, core: set[int]) -> Iterator[Server]:
    """Start a server on its core, wait until it listens, and end it at the end of the block."""
    port = free_port() if transport == "http" else None
    folder = Path(tempfile.mkdtemp(dir=setup.folder))
    source = setup.before if subject == "before" else None
    with started(subject, command(subject, port, setup, folder), port, folder, core, source) as server:
        yield server


@contextlib.contextmanager
def started(
    subject: str, line: list[str], port: int | None, folder: Path, core: set[int], source: Path | None = None
) -> Iterator[Server]:
    """Start a command line as a server; `source` is the folder of another afoot than this one."""
    errors = folder / "stderr"
    pipe = subprocess.PIPE if port is None else subprocess.DEVNULL
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, core)  # the child inherits it from its start
    try:
        with errors.open("wb") as log:
            child = subprocess.Popen(
                line,
                stdin=pipe,
                stdout=pipe,
                stderr=log,
                cwd=source or ROOT,
                env=environment(folder, source),
            )
    finally:
        os.sched_setaffinity(0, before)
    server = Server(subject, child, port, errors)
    try:
        await_port(server)
        yield server
    finally:
        end(child)


def command(subject: str, port: int | None, setup: Setup, folder: Path) -> list[str]:
    """Return the command line of a subject."""
    if subject in ("afoot", "before"):
        where = ["--stdio"] if port is None else ["--http", f"127.0.0.1:{port}"]
        tools = "bench/servers/afoot_tools.py"  # in the folder that it runs in, the older one's in `before`
        return [sys.executable, "-m", "afoot", "serve", tools, *where, "--store", str(folder / "store.db")]
    where = ["stdio"] if port is None else ["http", str(port)]
    if subject == "bare":
        return [sys.executable, str(SERVERS / "bare.py"), *where]
    loop = ["--uvloop"] if setup.uvloop else []
    return [setup.peers_python, str(SERVERS / f"{subject}_server.py"), *where, *loop]


def environment(folder: Path, source: Path | None = None) -> dict[str, str]:
    """Return the environment of a server: no rate limit, and a temporary state folder."""
    found = {**os.environ, "AFOOT_PROGRESS_HZ": "0", "AFOOT_HOME": str(folder)}
    if source is not None:
        found["PYTHONPATH"] = str(source / "src")  # it comes before what is installed
    return found


def await_port(server: Server) -> None:
    """Wait until the server listens; a stdio server needs no wait."""
    limit = time.monotonic() + START_S
    while server.port is not None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
            return
        if server.child.poll() is not None or time.monotonic() > limit:
            raise BenchError(f"{server.subject} did not start: {server.complaint()}")
        time.sleep(0.05)


def end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the server at once: calls may be waiting, and nothing of it is needed any more."""
    child.kill()
    child.wait()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += tree(int(child))
    return found


def rss_of(pid: int) -> int:
    """Return the resident bytes of one process."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
