"""What a server says, taken down for the call that it belongs to, where that is wanted (V4)."""

from collections.abc import Mapping

from msgspec import UNSET

from afoot.providers.upstream.carrier import Exchange
from afoot.wire import client_reading
from afoot.wire.jsonrpc import Envelope


def came(line: bytes, message: Envelope, stream: Exchange | None, exchanges: Mapping[int, Exchange]) -> None:
    """A message came: it is its stream's, or that of the request it names, or of the only one there is."""
    named = message.id if message.method is UNSET else _token(message)
    if isinstance(named, str) and named.isdecimal():
        named = int(named)
    whose = stream or (exchanges.get(named) if isinstance(named, int) else None)
    if whose is None and named is None and len(exchanges) == 1:
        whose = next(iter(exchanges.values()))
    if whose is not None and whose.tape is not None:
        whose.tape("in", line)


def _token(message: Envelope) -> object:
    if message.method != "notifications/progress":
        return None
    told = client_reading.progress(message.params)
    return None if told is None else told.token
