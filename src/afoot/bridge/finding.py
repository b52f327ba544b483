"""Finding the gateway that runs here, and starting one, detached, where none does."""

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from afoot import state
from afoot.bridge.http import Broken, Target, Unreachable, target
from afoot.bridge.link import Identity, Link, Turned
from afoot.config import home, load
from afoot.errors import CallerError

START_S = 60.0  # a gateway that loads many tools takes its time
AFTER_S = 3.0  # how long another one is waited for when ours has ended at once
LOOK_S = 0.05
LOG_BYTES = 1 << 20


class NoGateway(CallerError):
    """None could be reached; the message says why and what to do."""


class Finder(Struct, frozen=True):
    """How this bridge comes to its gateway: the one at a URL, or the one of this state folder."""

    name: str
    at: str = ""
    config: Path | None = None

    async def look(self) -> Link | None:
        """The gateway that runs, if one does; raises NoGateway if it will not have us."""
        if self.at:
            with suppress(Unreachable, Broken):
                return await self._join(self._named(), os.environ.get("AFOOT_TOKEN") or self._own_token())
            return None
        address = state.running()
        if address is None:
            return None
        with suppress(Unreachable, Broken):
            return await self._join(
                target(address.mcp), os.environ.get("AFOOT_TOKEN") or address.token, address.pid
            )
        return None

    async def reach(self) -> Link:
        """The gateway that runs, or a new one; raises NoGateway."""
        if (link := await self.look()) is not None:
            return link
        if self.at:
            raise NoGateway(f"no gateway answers at {self.at}; start it, or leave out --at and AFOOT_URL")
        async with _alone():
            if (link := await self.look()) is not None:  # another bridge was quicker
                return link
            return await self._start()

    async def _join(self, to: Target, token: str, pid: int = 0) -> Link:
        link = Link(to, Identity(self.name, token))
        who = f"the gateway at {to.netloc}" + (f" (process {pid})" if pid else "")
        try:
            await link.open()
        except Turned as turned:
            raise NoGateway(f"{who} refuses this bridge; {turned}; set AFOOT_TOKEN to its token") from None
        return link

    def _named(self) -> Target:
        try:
            return target(self.at)
        except ValueError as error:
            raise NoGateway(str(error)) from None

    def _own_token(self) -> str:
        """The token of the gateway that runs here, if that is the one meant: a secret goes nowhere else."""
        address = state.running()
        if address is not None and target(address.mcp).netloc == self._named().netloc:
            return address.token
        return ""

    async def _start(self) -> Link:
        found = load(self.config, upward=False)
        address = found.settings.http
        where = "" if _is_free(address) else f"{address.rpartition(':')[0]}:0"
        log = home() / "gateway.log"
        begun = _trimmed(log)
        process = _spawn(found.file, where, log)
        threading.Thread(target=process.wait, daemon=True, name="afoot-reaper").start()  # no zombie, ever
        left = round(START_S / LOOK_S)
        while left:
            if (link := await self.look()) is not None:
                return link
            if process.returncode is not None:  # somebody else may have begun at the same time
                left = min(left, round(AFTER_S / LOOK_S))
            await asyncio.sleep(LOOK_S)
            left -= 1
        if process.returncode is None:
            process.terminate()
            raise NoGateway(f"a gateway was started, and did not come up in {START_S:g} s; see {log}")
        raise NoGateway(f"no gateway runs, and none could be started: {_last_words(log, begun)}")


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """One bridge at a time starts a gateway; the others wait, and then find it."""
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
                await asyncio.sleep(LOOK_S)
        yield
    finally:
        os.close(file)


def _spawn(config: Path | None, where: str, log: Path) -> subprocess.Popen[bytes]:
    """A gateway that outlives us, and ends itself when nobody needs it any more."""
    # -P: nothing in the folder of whatever project the host is in can stand in for a package.
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
    """Whether a gateway could listen there; what is wrong with an address it says itself."""
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


def _trimmed(log: Path) -> int:
    """Where the log's next line will stand; an old long log is put aside."""
    try:
        size = log.stat().st_size
        if size <= LOG_BYTES:
            return size
        log.replace(log.with_name("gateway.log.1"))
    except OSError:
        pass
    return 0


def _last_words(log: Path, begun: int) -> str:
    try:
        said = log.read_bytes()[begun:].decode("utf-8", "replace").split("\n")
    except OSError:
        said = list[str]()
    last = next((line for line in reversed(said) if line.strip()), "")
    return last.removeprefix("afoot: ") or f"it said nothing (see {log})"
