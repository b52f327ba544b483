"""`GatewayFinder` finds the gateway that runs here, or starts one, detached from this process.

`PersistentConnection` holds one connection at a time, finds the gateway again when it is lost, and starts one
when it is needed.
"""

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from afoot.bridge.connection import BridgeIdentity, GatewayConnection, RefusedByGateway
from afoot.bridge.http import BrokenConnection, HttpTarget, Unreachable, parse_target
from afoot.config import state_folder
from afoot.config.settings import home, load_settings
from afoot.errors import CallerError

START_S = 60.0  # how long a new gateway may take; one that loads many tools is slow
OTHER_GATEWAY_S = 3.0  # how long to wait for another gateway if ours has ended at once
POLL_S = 0.05

RECONNECT_S = 0.3  # interval at which a gateway is searched while none is there
MAX_LOG_BYTES = 1 << 20


class NoGateway(CallerError):
    """No gateway could be reached; the message says why and what to do."""


class GatewayFinder(Struct, frozen=True):
    """Finds the gateway at a URL, or the one of this state folder."""

    name: str
    at: str = ""
    config: Path | None = None
    version: str = ""  # of this program, and of a gateway that it starts

    def is_cold(self) -> bool:
        """Whether no gateway of this state folder runs, so that one must be started first."""
        return state_folder.running_gateway() is None

    async def find(self) -> GatewayConnection | None:
        """Connect to the gateway that runs, if one does; raises NoGateway if it refuses this bridge."""
        if self.at:
            with suppress(Unreachable, BrokenConnection):
                return await self._connect(self._target(), os.environ.get("AFOOT_TOKEN") or self._own_token())
            return None
        address = state_folder.running_gateway()
        if address is None:
            return None
        with suppress(Unreachable, BrokenConnection):
            return await self._connect(
                parse_target(address.mcp), os.environ.get("AFOOT_TOKEN") or address.token, address.pid
            )
        return None

    async def find_or_start(self) -> GatewayConnection:
        """Connect to the gateway that runs, or to a new one; raises NoGateway."""
        if (connection := await self.find()) is not None:
            return connection
        if self.at:
            raise NoGateway(f"no gateway answers at {self.at}; start it, or leave out --at and AFOOT_URL")
        async with _start_lock():
            if (connection := await self.find()) is not None:  # another bridge was faster
                return connection
            return await self._start()

    async def _connect(self, to: HttpTarget, token: str, pid: int = 0) -> GatewayConnection:
        connection = GatewayConnection(to, BridgeIdentity(self.name, token))
        who = f"the gateway at {to.netloc}" + (f" (process {pid})" if pid else "")
        try:
            await connection.open()
        except RefusedByGateway as refused:
            raise NoGateway(f"{who} refuses this bridge; {refused}; set AFOOT_TOKEN to its token") from None
        return connection

    def _target(self) -> HttpTarget:
        try:
            return parse_target(self.at)
        except ValueError as error:
            raise NoGateway(str(error)) from None

    def _own_token(self) -> str:
        """The token of the local gateway, if it is the one at the URL: a secret goes nowhere else."""
        address = state_folder.running_gateway()
        if address is not None and parse_target(address.mcp).netloc == self._target().netloc:
            return address.token
        return ""

    async def _start(self) -> GatewayConnection:
        found = load_settings(self.config, upward=False)
        address = found.settings.http
        where = "" if _is_free(address) else f"{address.rpartition(':')[0]}:0"
        log = home() / "gateway.log"
        begun = _rotate_log(log)
        process = _spawn(found.file, where, log)
        threading.Thread(target=process.wait, daemon=True, name="afoot-reaper").start()  # leaves no zombie
        left = round(START_S / POLL_S)
        while left:
            if (connection := await self.find()) is not None:
                return connection
            if process.returncode is not None:  # another process may have started a gateway at the same time
                left = min(left, round(OTHER_GATEWAY_S / POLL_S))
            await asyncio.sleep(POLL_S)
            left -= 1
        if process.returncode is None:
            process.terminate()
            raise NoGateway(f"a gateway was started, and did not come up in {START_S:g} s; see {log}")
        raise NoGateway(f"no gateway runs, and none could be started: {_last_log_line(log, begun)}")


class PersistentConnection:
    """Holds the connection; `on_connect` does what a new one needs before anything else is sent over it."""

    def __init__(
        self, finder: GatewayFinder, on_connect: Callable[[GatewayConnection], Awaitable[None]]
    ) -> None:
        self._finder = finder
        self._on_connect = on_connect
        self._connected = asyncio.Event()
        self._attempt: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self.connection: GatewayConnection | None = None

    async def get(self) -> GatewayConnection:
        """The connection, to a gateway that is started if none runs; raises CallerError."""
        while self.connection is None:
            await self._share_attempt(starts=True)
        return self.connection

    async def wait(self) -> GatewayConnection:
        """The connection, as soon as there is a gateway again; none is started for this."""
        while self.connection is None:
            await self._connected.wait()
        return self.connection

    async def wait_for(self, seconds: float) -> None:
        """Wait until there is a connection, but no longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait()

    def drop(self, connection: GatewayConnection) -> None:
        """Drop a connection on which nobody answers any more."""
        connection.close()
        if self.connection is connection:
            self.connection = None
            self._connected.clear()

    def close(self) -> None:
        """Close everything."""
        for task in (self._attempt, self._watching):
            if task is not None:
                task.cancel()
        if self.connection is not None:
            self.connection.close()

    async def _share_attempt(self, *, starts: bool) -> None:
        """Join the one attempt that is made at a time; raises CallerError."""
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._reach(starts))
            self._attempt.add_done_callback(self._attempt_done)
        await asyncio.shield(self._attempt)

    def _attempt_done(self, attempt: asyncio.Task[None]) -> None:
        self._attempt = None
        if not attempt.cancelled():
            attempt.exception()  # marks it as retrieved: perhaps nobody waited for it

    async def _reach(self, starts: bool) -> None:
        connection = await (self._finder.find_or_start() if starts else self._finder.find())
        if connection is None:
            return
        try:
            await self._on_connect(connection)
        except (BrokenConnection, Unreachable) as error:
            connection.close()
            raise NoGateway(f"the gateway went away at once ({error}); try again") from None
        self.connection = connection
        self._connected.set()
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """Wait for the end of each connection, and search for the next gateway, even without a request."""
        while True:
            connection = self.connection
            if connection is not None:
                await connection.wait_closed()
                self.drop(connection)
                continue
            await asyncio.sleep(RECONNECT_S)
            if self.connection is None:
                try:
                    await self._share_attempt(starts=False)
                except NoGateway:
                    pass  # the next request reports it


@asynccontextmanager
async def _start_lock() -> AsyncIterator[None]:
    """Let one bridge at a time start a gateway; the others wait, and then find it."""
    folder = home()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(folder / "connect.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NoGateway(
            f"state folder {folder}: cannot be written ({error.strerror}); set AFOOT_HOME"
        ) from None
    try:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(POLL_S)
        yield
    finally:
        os.close(file)


def _spawn(config: Path | None, where: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a gateway that outlives this process, and ends itself when nobody needs it any more."""
    # -P: no module in the host's working folder can shadow a package.
    command = [sys.executable, "-P", "-m", "afoot", "serve", "--linger"]
    command += ["--config", str(config.absolute())] if config is not None else []
    command += ["--http", where] if where else []
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            cwd=config.absolute().parent if config is not None else log.parent,
        )  # fmt: skip
    finally:
        os.close(out)


def _is_free(address: str) -> bool:
    """Whether a gateway could listen at this address.

    For a wrong address True, as the gateway reports it itself.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, int(port)))
        except OSError:
            return False
        except (ValueError, OverflowError):
            return True
    return True


def _rotate_log(log: Path) -> int:
    """The position of the log's next line; a log that is too long is put aside first."""
    try:
        size = log.stat().st_size
        if size <= MAX_LOG_BYTES:
            return size
        log.replace(log.with_name("gateway.log.1"))
    except OSError:
        pass
    return 0


def _last_log_line(log: Path, begun: int) -> str:
    try:
        said = log.read_bytes()[begun:].decode("utf-8", "replace").split("\n")
    except OSError:
        said = list[str]()
    last = next((line for line in reversed(said) if line.strip()), "")
    return last.removeprefix("afoot: ") or f"it said nothing (see {log})"
