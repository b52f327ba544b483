"""A server that is a child process: messages are lines on its stdin and stdout, its words are on stderr."""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast

from afoot.config import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.exits import ended
from afoot.providers.upstream.carrier import Exchange, Lost, Receive
from afoot.providers.upstream.record import Record
from afoot.wire.client_lines import Lines

MAX_BYTES: Final = 64 * 1024 * 1024
STDERR_LINE: Final = 16 * 1024
PATIENCE_S: Final = 2.0  # for each step of asking it to end
LAST_WORDS_S: Final = 0.3  # what a dead child left in its pipes must have come by then
GULP_S: Final = 0.002  # how long a flood is left to gather
PROGRESS: Final = b"notifications/progress"

# What a child gets of our environment: enough to find its way, and none of our secrets.
INHERITED: Final = (
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES TZ TMPDIR TEMP TMP"
    " XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME DISPLAY WAYLAND_DISPLAY"
    " SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS"
    " HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy"
    " SYSTEMROOT APPDATA LOCALAPPDATA PATHEXT COMSPEC USERPROFILE"
).split()


def environment(server: Server) -> dict[str, str]:
    """The environment of a child: a small safe base, and what its configuration adds."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(server.env)


def _folder(server: Server) -> str | None:
    return os.path.expanduser(server.cwd) or None


def _command(server: Server, given: Mapping[str, str]) -> str | None:
    """Where the command is; one with a path is meant from the folder that it runs in."""
    named, folder = server.command, _folder(server)
    if folder and os.path.dirname(named):
        named = os.path.abspath(os.path.join(folder, named))
    return shutil.which(named, path=given.get("PATH"))


class Stdio(asyncio.SubprocessProtocol):
    """The child and its pipes. It leads a process group of its own, so that nothing of it stays behind."""

    has_streams: Final = False

    def __init__(self, server: Server, record: Record, max_bytes: int = MAX_BYTES) -> None:
        self.version = ""
        self.pid: int | None = None
        self._server = server
        self._record = record
        self._max_bytes = max_bytes
        self._lines = Lines(max_bytes)
        self._words = Lines(STDERR_LINE)
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_dead = False
        self._closed = "stdout"  # what it closed, if it lives on
        self._how = ""  # it died
        self._heard_at = 0.0
        self._receive: Receive | None = None
        self._lost: Lost | None = None

    async def open(self, receive: Receive, lost: Lost) -> None:
        """Start the child; raises ToolError naming what is wrong."""
        self._receive, self._lost = receive, lost
        given = environment(self._server)
        name = self._record.server
        command = _command(self._server, given)
        if command is None:
            raise ToolError.not_found(f"server {name}: command {self._server.command!r} was not found")
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                command,
                *self._server.args,
                env=given,
                cwd=_folder(self._server),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError.not_found(f"server {name}: {command} cannot be started: {error}") from None

    async def carry(self, exchange: Exchange, body: bytes, headers: Mapping[str, str]) -> None:
        """Write a line, and wait for the one that answers it."""
        try:
            self.send(body)
        except RunnerDied:
            # Its last words are still waited for; whoever asks again must find it dead, not dying.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), 2 * LAST_WORDS_S)
            self._die()
            raise RunnerDied(self._how or f"server {self._record.server} is gone", began=False) from None
        await exchange.answer

    async def tell(self, body: bytes) -> None:
        """Write a line."""
        self.send(body)

    def send(self, body: bytes) -> None:
        """Write a line; raises RunnerDied if nobody can read it, ToolError if nobody does."""
        # uvloop's is one in all but its class.
        pipe = cast(asyncio.WriteTransport | None, self._transport and self._transport.get_pipe_transport(0))
        if self._is_dead or pipe is None or pipe.is_closing():
            raise RunnerDied(f"server {self._record.server} is gone", began=False)
        if pipe.get_write_buffer_size() > self._max_bytes:
            raise ToolError.unavailable(f"server {self._record.server} does not read what it is sent")
        if b"\n" in body:  # arguments as somebody wrote them; in JSON a line break is only white space
            body = body.replace(b"\n", b" ")
        pipe.write(body + b"\n")

    def listen(self) -> None:
        """Nothing to do: one pipe carries everything."""

    async def close(self) -> None:
        """Ask it to end by closing its stdin, then firmly, then kill its whole group."""
        if self._transport is None:
            return
        if self._is_dead:
            await self._ends()  # it may have been killed just now
            return
        self._is_dead = True
        self._gone.set()
        pipe = self._transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()
        try:
            if not await self._ends():
                self._kill(signal.SIGTERM)
                await self._ends()
        finally:
            self._kill(signal.SIGKILL)
            self._transport.close()
        await self._ends()

    async def _ends(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), PATIENCE_S)
        return self._exited.is_set()

    def _kill(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    # What the loop tells us.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        process = cast(asyncio.SubprocessTransport, transport)  # uvloop's is one in all but its class
        self._transport, self.pid = process, process.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            for words in self._words.feed(data):
                self._record.heard(words.decode("utf-8", "replace"))
            return
        dropped, receive = self._lines.dropped, self._receive
        assert receive is not None
        lines = self._lines.feed(data)
        for found in lines:
            receive(found, None)
        if lines and PROGRESS in lines[-1]:
            self._gulp()
        if self._lines.dropped > dropped:
            self._record.odd("message_too_long", f"over {self._max_bytes} bytes in one line")

    def _gulp(self) -> None:
        """A flood of progress is read in gulps: waking for each line slows the server down, and us."""
        loop = asyncio.get_running_loop()
        before, self._heard_at = self._heard_at, loop.time()
        pipe = cast(asyncio.ReadTransport | None, self._transport and self._transport.get_pipe_transport(1))
        if self._heard_at - before < GULP_S and pipe is not None and not pipe.is_closing():
            pipe.pause_reading()
            loop.call_later(GULP_S, self._resume, pipe)

    def _resume(self, pipe: asyncio.ReadTransport) -> None:
        if not pipe.is_closing():
            pipe.resume_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in (0, 1):  # it can hear or answer nothing any more
            self._closed = "stdout" if fd else "stdin"
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self._die)

    def process_exited(self) -> None:
        self._exited.set()
        # A grandchild may hold the pipes open for ever.
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._die)

    def connection_lost(self, exc: Exception | None) -> None:
        self._die()

    def _die(self) -> None:
        if self._is_dead:
            return
        self._is_dead = True
        self._gone.set()
        self._kill(signal.SIGKILL)
        self._how = self._ending()
        if self._transport is not None:
            self._transport.close()
        assert self._lost is not None
        self._lost(self._how)

    def _ending(self) -> str:
        code = self._transport.get_returncode() if self._transport else None
        how = f"closed its {self._closed}" if code is None else ended(code)
        words = f"; its last words: {self._record.last_words}" if self._record.last_words else ""
        return f"server {self._record.server} {how}{words}"
