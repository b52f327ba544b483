"""`MessageRecording` writes the messages of a call to the wire log while that is on (V4)."""

from collections.abc import Mapping

from msgspec import UNSET

from afoot.providers.upstream.transport.transport import PendingRequest, as_request_id
from afoot.wire.client import incoming
from afoot.wire.jsonrpc import Envelope, Fault, Id


class MessageRecording:
    """Records the messages of each request that has `record`, among the pending ones of a connection (V4).

    A connection has one only while such a request is pending, as each message is read once more for it.
    """

    def __init__(self, pending: Mapping[int, PendingRequest]) -> None:
        self._pending = pending
        # By the id of a request of the server: the request of ours that it belongs to.
        self._questions: dict[Id, PendingRequest] = {}

    def incoming(self, line: bytes, stream: PendingRequest | None) -> None:
        """Record a message of the server if it belongs to a request that is recorded."""
        try:
            message = incoming.read_message(line)
        except Fault:  # garbage, which belongs to no request
            return
        pending = stream or self._find_pending(message)
        if pending is None or pending.request.record is None:
            return
        pending.request.record("in", line)
        if message.method is not UNSET and isinstance(message.id, int | str):
            self._questions[message.id] = pending

    def outgoing(self, body: bytes) -> None:
        """Record a message of ours if it answers a request of the server that was recorded."""
        if not self._questions:
            return
        message = incoming.read_message(body)
        if message.method is UNSET and isinstance(message.id, int | str):
            pending = self._questions.pop(message.id, None)
            if pending is not None and pending.request.record is not None:
                pending.request.record("out", body)

    def forget(self, pending: PendingRequest) -> None:
        """Forget the server's questions about a request that is over."""
        self._questions = {id: one for id, one in self._questions.items() if one is not pending}

    def _find_pending(self, message: Envelope) -> PendingRequest | None:
        """Return the request that a message names, or the only one there is if it names none."""
        named = message.id if message.method is UNSET else _progress_token(message)
        if named is None and len(self._pending) == 1:
            return next(iter(self._pending.values()))
        number = as_request_id(named)
        return None if number is None else self._pending.get(number)


def _progress_token(message: Envelope) -> object:
    if message.method != "notifications/progress":
        return None
    told = incoming.read_progress(message.params)
    return None if told is None else told.token
