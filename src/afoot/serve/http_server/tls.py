"""`TlsContext` makes server ends of TLS that bound how many short records a peer sends (S5).

A record costs up to 15 µs of computing, however short it is. A record that asks for new keys has no content,
so no bound of HTTP counts it, and its answer is written whether the peer reads or not.
"""

import ssl
import time
from typing import Any, Final

HEAD_BYTES: Final = 5
FREE_RECORDS: Final = 1024  # of any size, in a second or until something is written
MEAN_RECORD_BYTES: Final = 1024  # more of them must have so many bytes each


class TlsContext(ssl.SSLContext):
    """A context for servers whose connections are `BoundedTls`."""

    def __new__(cls) -> "TlsContext":
        """As a server's; a certificate is loaded later."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made.sslobject_class = BoundedTls
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: Any = None,
    ) -> ssl.SSLObject:
        """An end of TLS that counts the records in `incoming` before it reads them."""
        counted = ssl.MemoryBIO()
        made = super().wrap_bio(counted, outgoing, server_side, server_hostname, session)
        assert isinstance(made, BoundedTls)
        made.bound(incoming, counted)
        return made


class BoundedTls(ssl.SSLObject):
    """One end of TLS; it raises SSLError for too many short records."""

    # `ssl` makes this object without a call of its constructor.
    _incoming: ssl.MemoryBIO
    _counted: ssl.MemoryBIO
    _head = b""  # of a record, while that is not whole
    _left = 0  # bytes of the newest record that have not come
    _records = 0
    _bytes = 0
    _until = 0.0  # when counting begins anew

    def bound(self, incoming: ssl.MemoryBIO, counted: ssl.MemoryBIO) -> None:
        """Take what comes from `incoming` to `counted`, which is read."""
        self._incoming = incoming
        self._counted = counted

    def do_handshake(self) -> None:
        """Go on with the handshake."""
        self._take_in()
        super().do_handshake()

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        """Read content: bytes, or how many were written into the buffer."""
        self._take_in()
        return super().read(len, buffer) if buffer is not None else super().read(len)

    def write(self, data: Any) -> int:
        """Write content; a peer that gets answers may ask again."""
        self._records = self._bytes = 0
        return super().write(data)

    def pending(self) -> int:
        """The bytes that came and were not read."""
        return super().pending() + self._counted.pending

    def unwrap(self) -> Any:
        """Go on with the end of the connection."""
        self._take_in()
        return super().unwrap()

    def _take_in(self) -> None:
        data = self._incoming.read()
        if data:
            self._count(data)
            self._counted.write(data)

    def _count(self, data: bytes) -> None:
        """Count the records that begin here; raises SSLError if they are too many."""
        now = time.monotonic()
        if now >= self._until:
            self._records = self._bytes = 0
            self._until = now + 1.0
        self._bytes += len(data)
        data, at, records = self._head + data, self._left, 0
        size = len(data)
        while at + HEAD_BYTES <= size:
            records += 1
            at += HEAD_BYTES + (data[at + 3] << 8 | data[at + 4])
        self._head = data[at:]
        self._left = max(at - size, 0)
        self._records += records
        if self._records > FREE_RECORDS + self._bytes // MEAN_RECORD_BYTES:
            raise ssl.SSLError("too many TLS records with too little in them")
