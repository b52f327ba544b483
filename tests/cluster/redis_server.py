"""A Redis or Valkey in a process of its own, which tests stop, kill and start again."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

START_S = 10.0
AOF, COPY = "appendonlydir", "copy"


class RedisServer:
    """One server on a port of its own, with a folder for its file."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", **more: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._more = {key.replace("_", "-"): value for key, value in more.items()}  # settings
        self.port = _free_port()
        self._host = host
        self.url = f"redis://{f'[{host}]' if ':' in host else host}:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None, "redis-server is missing; scripts/test installs it"
        settings = {
            "port": self.port,
            "bind": self._host,
            "protected-mode": "no",
            "dir": self.folder,
            "save": "",
            "appendonly": "yes",
            **self._more,
        }
        if "cluster-enabled" in settings:
            settings["cluster-port"] = _free_port()  # the usual one is 10,000 higher, which may be no port
        words = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen([program, *words], stdout=log, stderr=log)
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + START_S
        while True:
            try:
                self.client().execute_command("PING")
                return
            except (RedisError, OSError):
                if time.monotonic() > until:
                    pytest.fail(
                        f"redis-server did not start: {(self.folder / 'redis.log').read_text()[-2000:]}"
                    )
            time.sleep(0.02)

    def client(self) -> Redis:
        """A client for a test that looks into it."""
        password = self._more.get("requirepass")
        return Redis.from_url(self.url, protocol=2, socket_timeout=5, password=password)

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def keep_copy(self) -> None:
        """Keep a copy of its file, with all that it has been told until now."""
        shutil.rmtree(self.folder / COPY, ignore_errors=True)
        shutil.copytree(self.folder / AOF, self.folder / COPY)

    def restart_from_copy(self) -> None:
        """Kill it and start it with that copy: a server that has lost what was written since."""
        self.kill()
        shutil.rmtree(self.folder / AOF)
        (self.folder / COPY).rename(self.folder / AOF)
        self.start()

    def pause(self) -> None:
        """Stop it without an end: connections stay open, and nobody answers."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it for good."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self.go_on()
            self.kill()


@contextmanager
def redis_server(folder: Path, host: str = "127.0.0.1", **more: str) -> Iterator[RedisServer]:
    """A server that is ended with the block; `more`: settings of it, with _ for each hyphen."""
    server = RedisServer(folder, host, **more)
    server.start()
    try:
        yield server
    finally:
        server.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
