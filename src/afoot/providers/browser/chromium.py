"""`Chromium` starts a browser process with a fresh profile, and ends it with all its children."""

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
from afoot.providers.browser.cdp.connection import CdpConnection, OnEvent, PipeTransport

BINARIES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)  # fmt: skip
# No traffic of the browser's own, and no question to the person who uses it.
QUIET_FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-breakpad",
    "--disable-crash-reporter", "--password-store=basic", "--use-mock-keychain",
)  # fmt: skip
PIPE_FLAGS = ("--remote-debugging-pipe", "--enable-unsafe-extension-debugging")
START_S = 20.0


def find_chromium() -> str:
    """The path of an installed Chromium or Chrome; raises CallerError."""
    for name in BINARIES:
        if path := shutil.which(name):
            return path
    raise CallerError("no Chromium or Chrome found: install one, or put it on the PATH")


class Chromium:
    """One browser process, controlled over a pipe. It ends with this process, even if that is killed."""

    def __init__(
        self,
        *flags: str,
        binary: str = "",
        profile: Path | None = None,
        on_event: OnEvent | None = lambda _: None,
    ) -> None:
        """A `profile` folder that is given is kept; without one, a temporary one is made and removed.

        `on_event` gets the browser's events; with None, the caller reads `transport` itself.
        """
        self._flags = flags
        self._binary = binary
        self._on_event = on_event
        self._owns_profile = profile is None
        self.profile = profile or Path(tempfile.gettempdir())
        self.pid = 0
        self.errors = self.profile / "stderr"  # file with its output
        self.transport: PipeTransport | None = None
        self._connection: CdpConnection | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        binary = self._binary or find_chromium()
        if self._owns_profile:
            self.profile = Path(tempfile.mkdtemp(prefix="afoot-chromium-"))
        try:
            await self._start(binary)
        except BaseException:  # also a cancellation
            await self.close()
            raise
        return self

    async def _start(self, binary: str) -> None:
        self.profile.mkdir(parents=True, exist_ok=True)
        self.errors = self.profile / "stderr"
        ours, theirs = _make_pipes()
        try:
            self.pid = _spawn(self._command(binary), theirs, self.errors)
        except CallerError:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        self.transport = await PipeTransport.open(*ours)
        if self._on_event is not None:
            self._connection = CdpConnection(self.transport, self._on_event)
            self._running = asyncio.create_task(self._connection.run())

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Kill the browser and its children; nothing in its profile needs to be saved."""
        if self.pid:
            pid = self.pid
            self.pid = 0
            await asyncio.to_thread(_kill_group, pid)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        elif self.transport is not None:
            await self.transport.close()
        if self._owns_profile:
            # Errors are ignored: a child may still write its last file meanwhile.
            await asyncio.to_thread(shutil.rmtree, self.profile, ignore_errors=True)

    @property
    def connection(self) -> CdpConnection:
        """The CDP connection over its pipe."""
        assert self._connection is not None
        return self._connection

    async def command(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send one command to the browser; raises CommandError, ConnectionError, TimeoutError."""
        return await self.connection.call(method, params, limit_s=START_S)

    async def wait_closed(self) -> None:
        """Wait until the browser ends, for example because a person closes its last window."""
        assert self._running is not None
        await asyncio.wait([self._running])

    async def port(self) -> int:
        """Wait for the debugging port of a browser that was started with --remote-debugging-port=0."""
        chosen = self.profile / "DevToolsActivePort"
        end = asyncio.get_running_loop().time() + START_S
        while asyncio.get_running_loop().time() < end:
            if chosen.exists() and (lines := chosen.read_text().split()):
                return int(lines[0])
            await asyncio.sleep(0.02)
        raise TimeoutError(f"no debugging port within {START_S:g} s")

    def _command(self, binary: str) -> tuple[str, ...]:
        # The sandbox refuses to run as root.
        sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
        return (binary, *QUIET_FLAGS, *PIPE_FLAGS, *sandbox, f"--user-data-dir={self.profile}", *self._flags)


def _make_pipes() -> tuple[tuple[int, int], tuple[int, int]]:
    """Make two pipes: our ends (read, write) and the child's ends.

    All descriptors are moved above those that the child's ends get in the child (3 and 4), so that no dup2
    overwrites another one.
    """
    their_reading, our_writing = map(_move_up, os.pipe())
    our_reading, their_writing = map(_move_up, os.pipe())
    return (our_reading, our_writing), (their_reading, their_writing)


def _move_up(end: int) -> int:
    raised = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return raised


def _spawn(command: tuple[str, ...], pipes: tuple[int, int], errors: Path) -> int:
    """Start the browser in a process group of its own; it reads commands on 3 and answers on 4."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    output = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        descriptors = zip((null, output, output, *pipes), range(5), strict=True)
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for ours, theirs in descriptors]
        return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setpgroup=0)
    except OSError as error:
        raise CallerError(f"{command[0]} cannot be started: {error}") from None
    finally:
        os.close(null)
        os.close(output)


def _kill_group(pid: int) -> None:
    """Kill the whole process group, and wait for its leader."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
