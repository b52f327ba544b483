"""The link between extension and gateway through something that a test can cut and listen to."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from tests.browser.chromium import until

if TYPE_CHECKING:
    from tests.browser.chain import Chain

CHUNK = 65536
STEP_S = 5.0
LINK_S = 40.0


class Cable:
    """Takes connections on a port of its own and passes them on, while it is whole."""

    def __init__(self, port: int) -> None:
        self._there = port
        self.passed = bytearray()  # everything, in either direction
        self._ends: list[socket.socket] = []
        self._whole = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._take)

    @classmethod
    @contextmanager
    def between(cls, chain: "Chain") -> Iterator[Self]:
        """A cable that the chain's extension connects through, while the block lasts."""
        file = chain.gateway.folder / "extension" / "pairing.json"
        before = file.read_text()
        port = int(chain.gateway.url.rpartition(":")[2].partition("/")[0])
        cable = cls(port)
        pairing = json.loads(before)
        file.write_text(json.dumps({**pairing, "url": pairing["url"].replace(str(port), str(cable.port))}))
        try:
            chain.browser.kill_worker(chain.extension)
            until(lambda: cable.passed, "the extension to connect through the cable", LINK_S)
            chain.until_linked()
            yield cable
        finally:
            file.write_text(before)
            cable.close()
            chain.until_linked()

    def cut(self) -> None:
        """End what passes, and take nothing more."""
        self._whole = False
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        """Take connections again."""
        self._whole = True

    def close(self) -> None:
        """Cut it for good."""
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for connections
        self._listener.close()
        for thread in self._threads:
            thread.join(STEP_S)
        for end in self._ends:
            end.close()

    def _start(self, work: Callable[..., None], *given: object) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                if not self._whole:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._there))
                self._ends += [near, far]
                self._start(self._pass, near, far, True)
                self._start(self._pass, far, near, False)

    def _pass(self, source: socket.socket, sink: socket.socket, is_first: bool) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                self.passed += data
                if is_first:  # the gateway answers only to its own address
                    data = data.replace(f":{self.port}".encode(), f":{self._there}".encode())
                    is_first = False
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
