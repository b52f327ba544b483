"""`ForkClient` is the gateway's side of the fork server, with the socket to which all children connect.

A `FrameConnection` is one such connection. Its first message says who it is.
"""

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
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, cast

import msgspec

from afoot.config.tables import IsolationSettings
from afoot.providers.isolation.frames import (
    END_SIGNAL,
    MAX_FRAME_BYTES,
    ChildExit,
    ChildReady,
    CpuUsage,
    ForkChild,
    ForkServerConfig,
    ForkServerReady,
    FrameDecoder,
    FromChild,
    FromForkServer,
    InvalidFrame,
    IpcMessage,
    OutputComplete,
    OutputLines,
    ProgressReading,
    encode_frame,
)

BATCH_S: Final = 0.005  # a flood of readings gathers so long before it is read
CLOSE_POLLS: Final = 800  # looks whether the reaper has ended, a hundred a second
_START_POLL_S: Final = 0.05  # between two looks whether the fork server is ready
_MAX_FOLDER_BYTES: Final = (
    70  # leaves room for our folder, the socket and a child's number in about 100 bytes
)
# The fork server gets the path of this process, however this was started: the tools are found on it.
_COMMAND: Final = (
    "import sys; sys.path[:], sys.argv[1:] = sys.argv[1:], []; "
    "from afoot.providers.isolation.reaper import main; main()"
)
_log = logging.getLogger("afoot.providers")


class FrameReceiver(Protocol):
    """The object that receives the messages of one connection."""

    def receive(self, message: IpcMessage) -> None: ...

    def on_disconnect(self, why: str, *, is_invalid: bool) -> None: ...


class ChildRegistry(Protocol):
    """The object that knows the children: the pool."""

    def accept_child(self, connection: "FrameConnection", ready: ChildReady) -> FrameReceiver | None: ...

    def receive(self, number: int, message: IpcMessage) -> None: ...

    def fork_server_gone(self, why: str) -> None: ...


class ForkClient:
    """The gateway's end of one fork server.

    Made on a running loop, it opens the socket and starts the fork server in the background; messages sent
    before the fork server is ready wait for it.
    """

    def __init__(self, registry: ChildRegistry, settings: IsolationSettings) -> None:
        self._registry = registry
        self._secret = secrets.token_hex(16)
        self._folder = ""
        self._address = ""
        self._connection: FrameConnection | None = None
        self._unsent: list[IpcMessage] = []
        self._server: asyncio.AbstractServer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = settings
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._opening = self._loop.create_task(self._open())

    def send(self, message: IpcMessage) -> None:
        """Send a message to the fork server, now or once it is ready."""
        if self._connection is None:
            self._unsent.append(message)
            return
        if isinstance(message, ForkChild) and not os.path.exists(self._address):
            self._recreate_socket()
        self._connection.send(message)

    def close(self) -> bool:
        """Disconnect: the fork server then ends every child, and itself. False if the loop is closed, too."""
        self._is_closed = True
        process = self._process
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        if process is not None:  # reaped by a thread, also if nobody calls `wait_closed`
            threading.Thread(target=process.wait, name="afoot-fork-server", daemon=True).start()
        if not self._loop.is_closed():
            self._opening.cancel()
            if self._server is not None:
                self._server.close()
            if self._connection is not None:
                self._connection.close()
                return True
        if process is not None:  # it has not connected yet, or the connection cannot be closed without a loop
            process.send_signal(END_SIGNAL)
        return not self._loop.is_closed()

    async def wait_closed(self) -> None:
        """Wait until the reaper has ended, and with it everything that ran below it."""
        for _ in range(CLOSE_POLLS):
            if self._process is None or self._process.poll() is not None:
                return
            await asyncio.sleep(0.01)

    def receive(self, message: IpcMessage) -> None:
        """Pass a message of the fork server to the child that it is about."""
        if isinstance(message, OutputLines | CpuUsage | OutputComplete | ChildExit):
            self._registry.receive(message.child, message)

    def on_disconnect(self, why: str, *, is_invalid: bool) -> None:
        """The fork server is gone."""
        if self._process is not None:
            self._process.poll()
        self._fail("their fork server is gone")

    def _fail(self, why: str) -> None:
        if not self._is_closed:
            self.close()
            self._registry.fork_server_gone(why)

    async def _open(self) -> None:
        try:
            self._folder = _make_folder()
            self._address = os.path.join(self._folder, "s")
            self._server = await self._loop.create_unix_server(
                lambda: FrameConnection(self._identify), self._address
            )
            config = ForkServerConfig(
                self._address, self._secret, os.getpid(), self._settings.nice, self._settings.spare
            )
            # Not by the loop, which would wait for its end in a way of its own: `vfork` takes a millisecond.
            self._process = _start_reaper(msgspec.json.encode(config))
        except OSError as error:
            self._fail(f"their fork server cannot be started: {error}")
            return
        while self._connection is None:
            code = self._process.poll()
            if code is not None:
                self._fail(f"their fork server ended with exit code {code} before it was up")
                return
            await asyncio.sleep(_START_POLL_S)

    def _recreate_socket(self) -> None:
        """Make the socket again after a cleaner of temporary files removed it: only new children need it."""
        try:
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            if not _is_private(self._folder):
                raise PermissionError(f"{self._folder} is somebody else's, or open to others")
            made = socket.socket(socket.AF_UNIX)
            made.bind(self._address)
        except OSError as error:  # new children will say that they cannot connect
            _log.warning("the socket of child processes is gone, and cannot be made again: %s", error)
            return
        made.listen()
        self._opening = self._loop.create_task(self._replace_server(made))

    async def _replace_server(self, made: socket.socket) -> None:
        if self._server is not None:
            self._server.close()
        self._server = await self._loop.create_unix_server(lambda: FrameConnection(self._identify), sock=made)

    def _identify(
        self, connection: "FrameConnection", first: ChildReady | ForkServerReady
    ) -> FrameReceiver | None:
        """The receiver for a new connection, or None for one that is refused."""
        if self._is_closed or not secrets.compare_digest(first.secret, self._secret):
            return None
        if isinstance(first, ChildReady):
            return self._registry.accept_child(connection, first)
        if self._connection is not None:
            return None
        self._connection = connection
        for message in self._unsent:
            connection.send(message)
        return self


class FrameConnection(asyncio.Protocol):
    """One connection of a child or of the fork server. Bytes that are no frame end it, and nothing else."""

    def __init__(
        self, identify: Callable[["FrameConnection", ChildReady | ForkServerReady], FrameReceiver | None]
    ) -> None:
        self._identify = identify
        self._receiver: FrameReceiver | None = None
        self._frames: FrameDecoder[FromChild | FromForkServer] = FrameDecoder(
            ChildReady | ForkServerReady, MAX_FRAME_BYTES
        )
        self._transport: asyncio.Transport | None = None
        self._received_at = 0.0

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent, though the receiver may not know it yet."""
        return self._transport is not None and self._transport.is_closing()

    def send(self, message: IpcMessage) -> None:
        """Send a message, now or when the other side reads; it never waits."""
        if self._transport is not None and not self.is_closing:
            self._transport.write(encode_frame(message))

    def close(self) -> None:
        """Disconnect."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class

    def data_received(self, data: bytes) -> None:
        message: IpcMessage | None = None
        try:
            for message in self._frames.feed(data):
                self._dispatch(message)
        except InvalidFrame as error:
            self._report_loss(f"garbage on its pipe: {error}", is_invalid=True)
            self.close()
        if type(message) is ProgressReading:
            self._pause_during_flood()

    def connection_lost(self, exc: Exception | None) -> None:
        self._report_loss("it closed its pipe", is_invalid=False)

    def _dispatch(self, message: IpcMessage) -> None:
        if self._receiver is not None:
            try:
                self._receiver.receive(message)
            except Exception:  # one message that fails must not take the others with it
                _log.exception("a message of a child process could not be processed")
            return
        receiver = (
            self._identify(self, message) if isinstance(message, ChildReady | ForkServerReady) else None
        )
        if receiver is None:
            self.close()
            return
        self._receiver = receiver
        self._frames.expect(FromChild if isinstance(message, ChildReady) else FromForkServer)

    def _report_loss(self, why: str, *, is_invalid: bool) -> None:
        receiver = self._receiver
        self._receiver = None
        if receiver is not None:
            receiver.on_disconnect(why, is_invalid=is_invalid)

    def _pause_during_flood(self) -> None:
        """Stop reading for a moment where readings come faster than one in `BATCH_S`.

        Waking the loop for each reading of a flood would delay every other call. Meanwhile the child's pipe
        fills, and a full pipe keeps only the newest reading (`GatewayPipe`).
        """
        loop = asyncio.get_running_loop()
        before = self._received_at
        self._received_at = loop.time()
        if self._received_at - before < BATCH_S and self._transport and not self._transport.is_closing():
            self._transport.pause_reading()
            loop.call_later(BATCH_S, self._resume)

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


def _make_folder() -> str:
    """Make a folder that only this user can read, at a path so short that a socket's path still fits."""
    error = OSError("no folder for temporary files has a short name and can be written to (set TMPDIR)")
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if len(os.fsencode(parent)) <= _MAX_FOLDER_BYTES:
            try:
                return tempfile.mkdtemp(prefix="afoot-", dir=parent)
            except OSError as failed:
                error = failed
    raise error


def _is_private(folder: str) -> bool:
    """Whether this is a folder that only this user can read: in /tmp another user may have made it since."""
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _start_reaper(config: bytes) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _COMMAND, *sys.path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # it may have ended already, which `_open` sees
        stdin.write(config)
    return process
