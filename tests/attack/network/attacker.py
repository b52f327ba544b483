"""A stranger on the network by hand, and what others have to wait for meanwhile."""

import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.attack.loop_passes import LoopPasses
from tests.e2e.gateway import Gateway

WAIT_S: Final = 20.0
MEMORY_BYTES: Final = 20 * 1024 * 1024
PAUSE_S: Final = 0.005  # of the other client, between two requests


def address(gateway: Gateway) -> tuple[str, int]:
    """The host and the port on loopback."""
    parts = urlsplit(gateway.url)
    assert parts.hostname is not None and parts.port is not None
    return parts.hostname, parts.port


def host_line(gateway: Gateway) -> bytes:
    """The Host header that means the gateway."""
    return b"host: %s\r\n" % urlsplit(gateway.url).netloc.encode()


class Stranger:
    """One connection; what it sends can be as wrong as one likes."""

    def __init__(self, gateway: Gateway, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        own = address(gateway)
        self.socket: socket.socket = socket.create_connection((own[0], port or own[1]), WAIT_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)

    def send(self, *pieces: bytes) -> bool:
        """Send all of it; False if the gateway stopped reading."""
        try:
            for piece in pieces:
                self.socket.sendall(piece)
        except OSError:
            return False
        return True

    def flood(self, piece: bytes, total: int) -> int:
        """Repeat a piece up to so many bytes; gives how many were taken."""
        sent = 0
        while sent < total and self.send(piece):
            sent += len(piece)
        return sent

    def answer(self) -> bytes:
        """Everything that comes until the gateway ends the connection, which is left then."""
        found = b""
        with suppress(ConnectionError), self.socket:
            while data := self.socket.recv(65_536):
                found += data
        return found

    def status(self) -> int:
        """The status of the first answer, once the connection has ended; 0 if there was none."""
        words = self.answer().split(b" ", 2)
        return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0

    def close(self) -> None:
        """Leave."""
        self.socket.close()


@contextmanager
def strangers(
    gateway: Gateway, count: int, tls: ssl.SSLContext | None = None, port: int = 0
) -> Iterator[list[Stranger]]:
    """So many connections, which say nothing."""
    with ExitStack() as stack:
        made = [stack.enter_context(closing(Stranger(gateway, tls, port))) for _ in range(count)]
        yield made


@contextmanager
def at_once(gateway: Gateway) -> Iterator[None]:
    """Let everything that is sent in a block come in one pass of the gateway's loop."""
    gateway.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        gateway.process.send_signal(signal.SIGCONT)


class Bystander:
    """Another client, which asks for `/healthz` all the time; the gateway's work and memory meanwhile.

    Its own waits are not judged: they have those of the machine in them. `LoopPasses` says which work of the
    gateway a client had to wait for.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._status = Path(f"/proc/{gateway.process.pid}/status")
        self._passes = LoopPasses(gateway)
        self.answers = 0
        self.failures: list[str] = []
        self.grown = 0
        self._before = 0

    def __enter__(self) -> "Bystander":
        Path(f"/proc/{self._gateway.process.pid}/clear_refs").write_text("5")  # the peak is from now on
        self._before = self._memory("VmRSS")
        self._passes.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(WAIT_S)
        self._passes.__exit__()
        self.grown = self._memory("VmHWM") - self._before

    def check(self) -> None:
        """Fail if it was held up, or the gateway grew."""
        assert not self.failures and self.answers, self.failures
        self._passes.check()
        assert self.grown < MEMORY_BYTES, f"{self.grown / 1e6:.1f} MB more"

    def _memory(self, name: str) -> int:
        line = next(line for line in self._status.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024

    def _ask(self) -> None:
        request = b"GET /healthz HTTP/1.1\r\n" + host_line(self._gateway) + b"\r\n"
        try:
            with socket.create_connection(address(self._gateway), WAIT_S) as connection:
                while not self._is_over.is_set():
                    connection.sendall(request)
                    if not connection.recv(65_536).startswith(b"HTTP/1.1 200 "):
                        raise ConnectionError("another answer than 200")
                    self.answers += 1
                    self._is_over.wait(PAUSE_S)
        except OSError as error:
            self.failures.append(str(error))
