"""What a client is told for a request that no gateway will answer."""

from afoot.wire.jsonrpc import Fault, Id
from afoot.wire.messages import Response, encode, error
from afoot.wire.telling import ErrorMeta

LOST = -32000  # as official clients call a connection that was closed


def lost(request: Id, tool: str, call: str, *, modern: bool) -> bytes:
    """The gateway died under this request."""
    text = "lost: the gateway died before it had answered"
    if not tool:
        return error(Fault(LOST, f"{text}; ask again", data={"code": "lost"}), request)
    known = f"; its history tells how far it came: afoot log {call}" if call else ""
    text += f"; {tool} may have had side effects{known}"
    return _failed(
        request, ErrorMeta("unavailable", "lost", False, side_effects="possible"), text, call, modern
    )


def unreached(request: Id, tool: str, why: str, *, modern: bool) -> bytes:
    """No gateway was there to ask, so nothing was done."""
    text = f"unavailable: {why}"
    if not tool:
        return error(Fault(LOST, text, data={"code": "unavailable"}), request)
    return _failed(
        request, ErrorMeta("unavailable", "unavailable", True, side_effects="none"), text, "", modern
    )


def _failed(request: Id, meta: ErrorMeta, text: str, call: str, modern: bool) -> bytes:
    told: dict[str, object] = {"resultType": "complete"} if modern else {}
    told |= {"content": [{"type": "text", "text": text}], "isError": True}
    told["_meta"] = {"dev.afoot/error": meta, **({"dev.afoot/call": call} if call else {})}
    return encode(Response(request, told))
