"""`StdioTransport` runs a server as a child process: messages are lines on its stdin and stdout."""

import asyncio
import os
import shutil
import signal
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from secrets import token_hex
from typing import Final, cast

from afoot.config.settings import Server
from afoot.errors import RunnerDied, ToolError
from afoot.providers.exit_status import describe_exit
from afoot.providers.isolation import processes
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import SLICE_S, OnLost, PendingRequest, Receive
from afoot.wire.framing import LineSplitter

MAX_BYTES: Final = 64 * 1024 * 1024  # of one message
STDERR_LINE_BYTES: Final = 16 * 1024
EXIT_STEP_S: Final = 2.0  # to wait after each step: closed stdin, SIGTERM, SIGKILL
LAST_WORDS_S: Final = 0.3  # after the death of a child: by then what it left in its pipes was read
READ_PAUSE_S: Final = 0.002  # between two reads during a flood of progress
PROGRESS: Final = b"notifications/progress"

# The variable that marks a server and everything that it starts. A gateway behind this one adds its own mark.
MARK: Final = "_MCP_GATEWAY_RUN"

# The variables that a child inherits: enough to find its way, and none of our secrets.
INHERITED: Final = (
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES TZ TMPDIR TEMP TMP"
    " XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME DISPLAY WAYLAND_DISPLAY"
    " SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS"
    " HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy"
    " SYSTEMROOT APPDATA LOCALAPPDATA PATHEXT COMSPEC USERPROFILE"
).split()


class StdioTransport(asyncio.SubprocessProtocol):
    """A child and its pipes. It leads a process group of its own, so that all of it can be killed."""

    has_streams: Final = False
    has_session: Final = True

    def __init__(self, server: Server, server_log: ServerLog, max_bytes: int = MAX_BYTES) -> None:
        self.version = ""
        self.pid: int | None = None
        self._server = server
        self._server_log = server_log
        self._max_bytes = max_bytes
        self._stdout_lines = LineSplitter(max_bytes)
        self._stderr_lines = LineSplitter(STDERR_LINE_BYTES)
        self._process: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_dead = False
        self._closed = "stdout"  # the pipe that it closed, if it lives on
        self._how = ""  # it ended
        self._mark = token_hex(8)  # in the environment of the child and of all that it starts
        self._members: set[processes.ProcessId] = set()  # that the child had started when it was closed
        self._heard_at = 0.0
        self._lines: deque[bytes] = deque()  # that were read and not handled yet
        self._is_reading = True
        self._receive: Receive | None = None
        self._lost: OnLost | None = None

    async def open(self, receive: Receive, lost: OnLost) -> None:
        """Start the child; raises ToolError."""
        self._receive = receive
        self._lost = lost
        given = child_environment(self._server)
        given[MARK] = f"{os.environ[MARK]}:{self._mark}" if MARK in os.environ else self._mark
        name = self._server_log.server
        command = _find_command(self._server, given)
        if command is None:
            raise ToolError.not_found(f"server {name}: command {self._server.command!r} was not found")
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                command,
                *self._server.args,
                env=given,
                cwd=_working_folder(self._server),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError.not_found(f"server {name}: {command} cannot be started: {error}") from None

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        """Write a line, and wait for the line that answers it."""
        try:
            self.send(body)
        except RunnerDied:
            # Wait for its last words: a request that is made again must find it dead, not dying.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), 2 * LAST_WORDS_S)
            self._on_end()
            raise RunnerDied(self._how or f"server {self._server_log.server} is gone", began=False) from None
        await pending.answer

    async def tell(self, body: bytes) -> None:
        """Write a line."""
        self.send(body)

    def send(self, body: bytes) -> None:
        """Write a line; raises RunnerDied if the server has ended, ToolError if it does not read."""
        # uvloop's is one in all but its class.
        pipe = cast(asyncio.WriteTransport | None, self._process and self._process.get_pipe_transport(0))
        if self._is_dead or pipe is None or pipe.is_closing():
            raise RunnerDied(f"server {self._server_log.server} is gone", began=False)
        if pipe.get_write_buffer_size() > self._max_bytes:
            raise ToolError.unavailable(f"server {self._server_log.server} does not read what it is sent")
        if b"\n" in body:  # in arguments as they were written; in JSON a line break is only white space
            body = body.replace(b"\n", b" ")
        pipe.write(body + b"\n")

    def listen(self) -> None:
        """Do nothing: one pipe carries everything."""

    async def close(self) -> None:
        """End the server: close its stdin, then send SIGTERM, then kill its whole process group."""
        if self._process is None:
            return
        if self._is_dead:
            await self._wait_for_exit()  # it may have been killed just now
            await self._kill_stragglers()
            return
        self._is_dead = True
        self._gone.set()
        if self.pid is not None and not self._exited.is_set():
            self._members = processes.tree_members(self.pid)
        pipe = self._process.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()
        try:
            if not await self._wait_for_exit():
                self._kill(signal.SIGTERM)
                await self._wait_for_exit()
        finally:
            self._kill(signal.SIGKILL)
            self._process.close()
        await self._wait_for_exit()
        await self._kill_stragglers()

    async def _wait_for_exit(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), EXIT_STEP_S)
        return self._exited.is_set()

    def _kill(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _kill_stragglers(self) -> "asyncio.Future[None]":
        """Kill the processes that it started in sessions of their own, which no signal to its group reaches.

        It is done in a thread: every process of the machine is looked at.
        """
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(None, processes.kill_stragglers, self._members, (MARK, self._mark))

    # Callbacks of asyncio.SubprocessProtocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        process = cast(asyncio.SubprocessTransport, transport)  # uvloop's is one in all but its class
        self._process = process
        self.pid = process.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._server_log.add_lines(self._stderr_lines.feed(data))
            return
        dropped = self._stdout_lines.dropped
        lines = self._stdout_lines.feed(data)
        is_waiting = bool(self._lines)
        self._lines.extend(lines)
        if not is_waiting:
            self._take_lines(SLICE_S)
        if lines and PROGRESS in lines[-1]:
            self._pause_reading()
        if self._stdout_lines.dropped > dropped:
            self._server_log.count_anomaly("message_too_long", f"over {self._max_bytes} bytes in one line")

    def _take_lines(self, slice_s: float) -> None:
        """Handle lines that were read, for so long; the rest when all others had their turn."""
        loop, receive, lines = asyncio.get_running_loop(), self._receive, self._lines
        assert receive is not None
        until = loop.time() + slice_s
        while lines:
            receive(lines.popleft(), None)
            if lines and loop.time() > until:
                self._set_reading(False)
                loop.call_soon(self._take_lines, slice_s)
                return
        self._set_reading(True)

    def _set_reading(self, is_on: bool) -> None:
        """Read on, or read nothing more until the lines that were read are handled."""
        pipe = cast(asyncio.ReadTransport | None, self._process and self._process.get_pipe_transport(1))
        if pipe is None or pipe.is_closing() or is_on == self._is_reading:
            return
        self._is_reading = is_on
        if is_on:
            pipe.resume_reading()
        else:
            pipe.pause_reading()

    def _pause_reading(self) -> None:
        """Pause reading for a moment if the server sends progress faster than that.

        A flood of progress is then read in batches of many lines. Without the pause the loop wakes up for
        each line, which slows down the server and us.
        """
        loop = asyncio.get_running_loop()
        before = self._heard_at
        self._heard_at = loop.time()
        if self._heard_at - before < READ_PAUSE_S and not self._lines:
            self._set_reading(False)
            loop.call_later(READ_PAUSE_S, self._resume_reading)

    def _resume_reading(self) -> None:
        if not self._lines:
            self._set_reading(True)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in (0, 1):  # it can read or answer nothing any more
            self._closed = "stdout" if fd else "stdin"
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self._on_end)

    def process_exited(self) -> None:
        self._exited.set()
        # A grandchild may hold the pipes open for ever.
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._on_end)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()

    def _on_end(self) -> None:
        if self._is_dead:
            return
        self._is_dead = True
        self._take_lines(inf)  # its last words
        self._gone.set()
        self._kill(signal.SIGKILL)
        self._kill_stragglers()
        self._how = self._describe_end()
        if self._process is not None:
            self._process.close()
        assert self._lost is not None
        self._lost(self._how)

    def _describe_end(self) -> str:
        code = self._process.get_returncode() if self._process else None
        how = f"closed its {self._closed}" if code is None else describe_exit(code)
        words = f"; its last words: {self._server_log.last_words}" if self._server_log.last_words else ""
        return f"server {self._server_log.server} {how}{words}"


def child_environment(server: Server) -> dict[str, str]:
    """Return the environment of a child: a small safe base, and the variables of its settings."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(server.env)


def _working_folder(server: Server) -> str | None:
    return os.path.expanduser(server.cwd) or None


def _find_command(server: Server, given: Mapping[str, str]) -> str | None:
    """Return the path of the command. A relative path counts from the folder that the server runs in."""
    named, folder = server.command, _working_folder(server)
    if folder and os.path.dirname(named):
        named = os.path.abspath(os.path.join(folder, named))
    return shutil.which(named, path=given.get("PATH"))
