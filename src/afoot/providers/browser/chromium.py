"""A Chromium of our own: found, started with a fresh profile, and ended with all its children."""

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from afoot.errors import CallerError
from afoot.providers.browser.cdp.connection import Connection, Hear
from afoot.providers.browser.cdp.wires import Pipe

NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)  # fmt: skip
# It says nothing to anybody, and asks nobody anything.
QUIET = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-breakpad",
    "--disable-crash-reporter", "--password-store=basic", "--use-mock-keychain",
)  # fmt: skip
PIPED = ("--remote-debugging-pipe", "--enable-unsafe-extension-debugging")
STARTED_S = 20.0


def find() -> str:
    """Where a Chromium is; raises CallerError."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise CallerError("no Chromium or Chrome found: install one, or put it on the PATH")


class Chromium:
    """One browser process, controlled over a pipe: when we end, however we end, it ends too."""

    def __init__(
        self, *flags: str, binary: str = "", profile: Path | None = None, hear: Hear | None = lambda _: None
    ) -> None:
        """A profile that is given is kept; its own is thrown away.

        `hear` gets the browser's events; None leaves its `wire` to somebody else.
        """
        self._flags, self._binary, self._hear = flags, binary, hear
        self._owned = profile is None
        self.profile = profile or Path(tempfile.gettempdir())
        self.pid = 0
        self.errors = self.profile / "stderr"  # what it says
        self.wire: Pipe | None = None
        self._connection: Connection | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        binary = self._binary or find()
        if self._owned:
            self.profile = Path(tempfile.mkdtemp(prefix="afoot-chromium-"))
        try:
            await self._start(binary)
        except BaseException:  # also if we are stopped meanwhile
            await self.close()
            raise
        return self

    async def _start(self, binary: str) -> None:
        self.profile.mkdir(parents=True, exist_ok=True)
        self.errors = self.profile / "stderr"
        ours, theirs = _pipes()
        try:
            self.pid = _spawn(self._command(binary), theirs, self.errors)
        except CallerError:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        self.wire = await Pipe.on(*ours)
        if self._hear is not None:
            self._connection = Connection(self.wire, self._hear)
            self._running = asyncio.create_task(self._connection.run())

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End it and its children; by force, as nothing of its profile is wanted."""
        if self.pid:
            pid, self.pid = self.pid, 0
            await asyncio.to_thread(_end, pid)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        elif self.wire is not None:
            await self.wire.close()
        if self._owned:
            # A child may write its last file while this goes on.
            await asyncio.to_thread(shutil.rmtree, self.profile, ignore_errors=True)

    @property
    def connection(self) -> Connection:
        """Its pipe; commands may be sent as soon as it is started."""
        assert self._connection is not None
        return self._connection

    async def command(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """One command to the browser; raises Refusal, ConnectionError, TimeoutError."""
        return await self.connection.call(method, params, limit_s=STARTED_S)

    async def ended(self) -> None:
        """Wait until it is gone, as when a person closes its last window."""
        assert self._running is not None
        await asyncio.wait([self._running])

    async def port(self) -> int:
        """The debugging port that it chose, if it was started with --remote-debugging-port=0."""
        chosen = self.profile / "DevToolsActivePort"
        end = asyncio.get_running_loop().time() + STARTED_S
        while asyncio.get_running_loop().time() < end:
            if chosen.exists() and (lines := chosen.read_text().split()):
                return int(lines[0])
            await asyncio.sleep(0.02)
        raise TimeoutError(f"no debugging port within {STARTED_S:g} s")

    def _command(self, binary: str) -> tuple[str, ...]:
        # The sandbox refuses to run as root.
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        return (binary, *QUIET, *PIPED, *sandbox, f"--user-data-dir={self.profile}", *self._flags)


def _pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Our two ends (reading, writing) and theirs, all above the numbers that theirs get in the child."""
    their_reading, our_writing = map(_high, os.pipe())
    our_reading, their_writing = map(_high, os.pipe())
    return (our_reading, our_writing), (their_reading, their_writing)


def _high(end: int) -> int:
    raised = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return raised


def _spawn(command: tuple[str, ...], pipes: tuple[int, int], errors: Path) -> int:
    """Start it in a group of its own, reading commands on 3 and answering on 4."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    said = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        ends = zip((nothing, said, said, *pipes), range(5), strict=True)
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in ends]
        return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
    except OSError as error:
        raise CallerError(f"{command[0]} cannot be started: {error}") from None
    finally:
        os.close(nothing)
        os.close(said)


def _end(pid: int) -> None:
    """Kill the whole group, and wait for its head."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
