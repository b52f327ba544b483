"""Lines out of chunks, for messages that end with a line break; a line that is too long is never held."""


class Lines:
    """Bytes in, whole lines out; keeps what is not whole yet, and hardly more than `limit` bytes of it."""

    def __init__(self, limit: int) -> None:
        self.dropped = 0  # lines over the limit
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._is_skipping = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        found = chunk.split(b"\n")
        rest = found.pop()
        if found and (self._parts or self._is_skipping):
            found[0] = b"".join([*self._parts, found[0]])
            self._clear()
            if self._is_skipping:
                self._is_skipping = False
                self.dropped += 1
                del found[0]
        if rest:
            self._keep(rest)
        return found

    def _keep(self, rest: bytes) -> None:
        self._parts.append(rest)
        self._size += len(rest)
        if self._is_skipping or self._size > self._limit:
            self._is_skipping = True
            self._clear()

    def _clear(self) -> None:
        self._parts = []
        self._size = 0
