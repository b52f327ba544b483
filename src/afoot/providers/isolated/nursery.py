"""The keeper as the gateway sees it: a process, the socket on which all call in, and a line."""

import asyncio
import logging
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from afoot.core.isolation import Isolation
from afoot.providers.isolated.frames import Died, Fork, Frame, Hello, Said, Settled, Up, Used
from afoot.providers.isolated.guard import END, Errand
from afoot.providers.isolated.line import Ear, Line

ENDING: Final = 800  # looks, a hundred a second
_LOOK_S: Final = 0.05  # whether it is up
_PLACE: Final = 70  # bytes: below it come the folder, the socket and the number of a child
# With the path of this process, whatever it was started with; it is what the tools are found on.
_COMMAND: Final = (
    "import sys; sys.path[:], sys.argv[1:] = sys.argv[1:], []; "
    "from afoot.providers.isolated.guard import main; main()"
)
_log = logging.getLogger("afoot.providers")


class Family(Protocol):
    """Who is told of children."""

    def find(self, line: Line, hello: Hello) -> Ear | None: ...

    def hear(self, number: int, said: Frame) -> None: ...

    def orphaned(self, why: str) -> None: ...


class Nursery:
    """Opened by being made, on a running loop; what is told before the keeper is up waits for it."""

    def __init__(self, family: Family, settings: Isolation) -> None:
        self._family = family
        self._secret = secrets.token_hex(16)
        self._folder = self._address = ""
        self._line: Line | None = None
        self._early: list[Frame] = []
        self._server: asyncio.AbstractServer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = settings
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._opening = self._loop.create_task(self._open())

    def tell(self, said: Frame) -> None:
        """Tell the keeper."""
        if self._line is None:
            self._early.append(said)
            return
        if isinstance(said, Fork) and not os.path.exists(self._address):
            self._listen_again()
        self._line.send(said)

    def close(self) -> bool:
        """Hang up: the keeper ends every child, and itself. False if the loop is gone, too."""
        self._is_closed = True
        process = self._process
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        if process is not None:  # somebody must see it end, also if nobody waits
            threading.Thread(target=process.wait, name="afoot-keeper", daemon=True).start()
        if not self._loop.is_closed():
            self._opening.cancel()
            if self._server is not None:
                self._server.close()
            if self._line is not None:
                self._line.close()
                return True
        if process is not None:  # it has not called in yet, or nobody can hang up any more
            process.send_signal(END)
        return not self._loop.is_closed()

    async def ended(self) -> None:
        """Wait until nothing is left."""
        for _ in range(ENDING):
            if self._process is None or self._process.poll() is not None:
                return
            await asyncio.sleep(0.01)

    def hear(self, said: Frame) -> None:
        """From the keeper."""
        if isinstance(said, Said | Used | Settled | Died):
            self._family.hear(said.child, said)

    def lost(self, why: str, *, is_garbage: bool) -> None:
        """The keeper is gone."""
        if self._process is not None:
            self._process.poll()
        self._fail("their keeper is gone")

    def _fail(self, why: str) -> None:
        if not self._is_closed:
            self.close()
            self._family.orphaned(why)

    async def _open(self) -> None:
        try:
            self._folder = _folder()
            self._address = os.path.join(self._folder, "s")
            self._server = await self._loop.create_unix_server(lambda: Line(self._greet), self._address)
            nice, spare = self._settings.nice, self._settings.spare
            errand = Errand(self._address, self._secret, os.getpid(), nice, spare)
            # Not by the loop, which would wait for its end in a way of its own: `vfork` takes a millisecond.
            self._process = _started(msgspec.json.encode(errand))
        except OSError as error:
            self._fail(f"their keeper cannot be started: {error}")
            return
        while self._line is None:
            if (code := self._process.poll()) is not None:
                self._fail(f"their keeper ended with exit code {code} before it was up")
                return
            await asyncio.sleep(_LOOK_S)

    def _listen_again(self) -> None:
        """Whoever clears up temporary files may have taken the socket away, which only new children miss."""
        try:
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            if not _is_ours(self._folder):
                raise PermissionError(f"{self._folder} is somebody else's, or open to others")
            made = socket.socket(socket.AF_UNIX)
            made.bind(self._address)
        except OSError as error:  # they will say that they cannot call in
            _log.warning("the socket of child processes is gone, and cannot be made again: %s", error)
            return
        made.listen()
        self._opening = self._loop.create_task(self._serve(made))

    async def _serve(self, made: socket.socket) -> None:
        if self._server is not None:
            self._server.close()
        self._server = await self._loop.create_unix_server(lambda: Line(self._greet), sock=made)

    def _greet(self, line: Line, said: Hello | Up) -> Ear | None:
        if self._is_closed or not secrets.compare_digest(said.secret, self._secret):
            return None
        if isinstance(said, Hello):
            return self._family.find(line, said)
        if self._line is not None:
            return None
        self._line = line
        for early in self._early:
            line.send(early)
        return self


def _folder() -> str:
    """A new folder for our eyes only, where the path of a socket still fits: it has a hundred bytes."""
    error = OSError("no folder for temporary files has a short name and can be written to (set TMPDIR)")
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if len(os.fsencode(place)) <= _PLACE:
            try:
                return tempfile.mkdtemp(prefix="afoot-", dir=place)
            except OSError as failed:
                error = failed
    raise error


def _is_ours(folder: str) -> bool:
    """Whether it is a folder for our eyes only: where all may write, another may have made it since."""
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _started(errand: bytes) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _COMMAND, *sys.path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # it may be over: whoever looks will see
        stdin.write(errand)
    return process
