"""Another user's program at the port of a gateway that has ended: it answers, and keeps what it gets."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

WAIT_S: Final = 10.0
Reply = Callable[[bytes], bytes]


def http_answer(body: bytes, status: str = "200 OK") -> bytes:
    """A whole response with a JSON body."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Impostor:
    """A program that listens, and answers each request with what `reply` makes of it."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.got = bytearray()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        """Serve connections until the listener is closed."""
        with suppress(OSError):
            while True:
                connection = self._listener.accept()[0]
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(WAIT_S)
        with connection, suppress(OSError):
            while data := connection.recv(65_536):
                self.got += data
                connection.sendall(self._reply(data))


@contextmanager
def impostor(reply: Reply) -> Iterator[Impostor]:
    """An impostor, while the block lasts."""
    made = Impostor(reply)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.close()
        thread.join(WAIT_S)


def passing_on_to(host: str, port: int, rewrite: Callable[[bytes], bytes] = bytes) -> Reply:
    """A reply that asks the real gateway, and gives its answer."""

    def ask(data: bytes) -> bytes:
        with socket.create_connection((host, port), WAIT_S) as gateway:
            gateway.sendall(rewrite(data))
            return gateway.recv(65_536)

    return ask
