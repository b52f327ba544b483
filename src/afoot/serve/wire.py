"""What was said on the wires of a call, over the operator's API (V4)."""

from msgspec import Struct

from afoot.engine.tapes import Said, Tape
from afoot.serve.calls import asked
from afoot.serve.request import Request


class WireView(Struct, frozen=True):
    """The newest messages of a call, oldest first; `left_out` counts those before them.

    `recording`: whether messages are taken down now.
    """

    recording: bool
    messages: list[Said]
    left_out: int


async def show(request: Request) -> None:
    """What was said on both sides of the gateway for a call, if that is taken down (`record_wire`)."""
    request.query()
    call = (await asked(request)).call.id
    tapes = request.site.engine.tapes
    tape = Tape() if tapes is None else tapes[call]
    await request.answer(200, WireView(tapes is not None, list(tape.said), tape.left_out))
