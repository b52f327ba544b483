"""What is said on the caller's wire, taken down where that is wanted (V4)."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Raw, json

from afoot.core.ports import Tapes
from afoot.serve.manner import Outlet
from afoot.wire.jsonrpc import Envelope

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation


class Taped:
    """An outlet whose frames are taken down."""

    def __init__(self, outlet: Outlet, tapes: Tapes, call: str) -> None:
        self._outlet, self._tapes, self._call = outlet, tapes, call

    @property
    def gone(self) -> bool:
        return self._outlet.gone

    @property
    def streaming(self) -> bool:
        return self._outlet.streaming

    async def send(self, frames: Sequence[bytes]) -> None:
        self._add(frames)
        await self._outlet.send(frames)

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        self._add(frames if last is None else [*frames, last])
        await self._outlet.finish(frames, last)

    async def keep_alive(self) -> None:
        await self._outlet.keep_alive()

    def watch(self, ring: Callable[[], object]) -> None:
        self._outlet.watch(ring)

    def _add(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._tapes.add(self._call, "caller", "out", frame)


def tape(talk: "Conversation", tapes: Tapes) -> None:
    """Take down a request for a call, and from here on what it is answered with."""
    want, call = talk.want, talk.live.call.id
    said = {"jsonrpc": "2.0", "id": want.id, "method": "tools/call", "params": want.params or Raw(b"{}")}
    tapes.add(call, "caller", "in", json.encode(said))
    talk.outlet = Taped(talk.outlet, tapes, call)


def envelope(message: Envelope) -> bytes:
    """A message as it came, near enough."""
    parts = {"jsonrpc": "2.0", "id": message.id, "method": message.method}
    more = {"params": message.params, "result": message.result, "error": message.error}
    said = {key: value for key, value in parts.items() if value is not UNSET}
    return json.encode(said | {key: value for key, value in more.items() if value})
