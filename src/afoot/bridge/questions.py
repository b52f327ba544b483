"""Questions of gateways to the client: each has an id of its own, so no answer meets another question."""

from msgspec import Raw, Struct, UnsetType

from afoot.wire import mcp_2025
from afoot.wire.jsonrpc import ENVELOPE, Envelope, Fault, Id
from afoot.wire.messages import encode


class _Asked(Struct, frozen=True):
    id: Id  # as the gateway calls it
    session: str
    request: Id  # of the client, which it belongs to


class Questions:
    """What the client was asked and has not answered. Every session numbers its questions from one."""

    def __init__(self) -> None:
        self._open: dict[str, _Asked] = {}
        self._number = 0

    def show(self, frames: list[bytes], session: str, request: Id) -> list[bytes]:
        """Frames of a request, with questions and their withdrawals under the client's ids."""
        return [self._shown(frame, session, request) for frame in frames]

    def answered(self, message: Envelope, session: str) -> bytes | None:
        """The client's answer under the gateway's id; None if the session that asked is gone."""
        asked = self._open.pop(message.id, None) if isinstance(message.id, str) else None
        if asked is None or asked.session != session:
            return None
        key, value = ("result", message.result) if message.result else ("error", message.error)
        return encode({"jsonrpc": "2.0", "id": asked.id, key: Raw(value)})

    def lost(self, request: Id) -> list[bytes]:
        """Withdraw what was asked for a request whose gateway has died."""
        names = [name for name, asked in self._open.items() if asked.request == request]
        for name in names:
            del self._open[name]
        return [mcp_2025.withdrawn(name, "its gateway died") for name in names]

    def _shown(self, frame: bytes, session: str, request: Id) -> bytes:
        message = ENVELOPE.decode(frame)
        if message.method == "notifications/cancelled":
            return self._withdrawn(frame, message, session)
        if isinstance(message.method, UnsetType) or not isinstance(message.id, int | str):
            return frame
        self._number += 1
        name = f"afoot-connect-{self._number}"
        self._open[name] = _Asked(message.id, session, request)
        return encode({"jsonrpc": "2.0", "id": name, "method": message.method, "params": message.params})

    def _withdrawn(self, frame: bytes, message: Envelope, session: str) -> bytes:
        try:
            cancelled = mcp_2025.read_cancelled(message)
        except Fault:
            return frame
        for name, asked in self._open.items():
            if (asked.id, asked.session) == (cancelled.requestId, session):
                del self._open[name]
                return mcp_2025.withdrawn(name, cancelled.reason)
        return frame
