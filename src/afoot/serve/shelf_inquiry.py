"""Questions to a client of the handshake era that belong to no call, and its answers."""

import asyncio

import msgspec
from msgspec import Struct

from afoot.serve.manner import Outlet
from afoot.wire import mcp_2025 as era
from afoot.wire.jsonrpc import INTERNAL_ERROR, Envelope, Fault, Id
from afoot.wire.shelf import Item


class _Error(Struct):
    message: str = ""


_error = msgspec.json.Decoder(_Error)
_result = msgspec.json.Decoder(dict[str, object])


class Inquiries:
    """What one client was asked and has not answered yet."""

    def __init__(self) -> None:
        self._open: dict[Id, asyncio.Future[Envelope]] = {}
        self._number = 0

    async def ask(self, outlet: Outlet, method: str, body: object) -> Item:
        """Ask, and wait for the answer; raises Fault if there is none. Giving up withdraws the question."""
        self._number += 1
        number = f"afoot-shelf-{self._number}"
        reply = self._open[number] = asyncio.get_running_loop().create_future()
        try:
            await outlet.send([era.nested(number, method, body)])
            return _read(await reply, method)
        except asyncio.CancelledError:
            if not outlet.gone:
                await outlet.send([era.withdrawn(number, "its request is over")])
            raise
        finally:
            del self._open[number]

    def answered(self, message: Envelope) -> bool:
        """Take an answer; False if it is to none of these questions."""
        reply = self._open.get(message.id) if isinstance(message.id, int | str) else None
        if reply is not None and not reply.done():
            reply.set_result(message)
        return reply is not None


def _read(message: Envelope, method: str) -> Item:
    """The answer; a person who was not asked has answered nothing, and a model or a list must be there."""
    try:
        if not message.error:
            return _result.decode(message.result)
        why = _error.decode(message.error).message
    except msgspec.ValidationError:
        why = "its answer cannot be read"
    if method == "elicitation/create":
        return {"action": "cancel"}
    raise Fault(INTERNAL_ERROR, f"the client did not answer {method}: {why}", status=200)
