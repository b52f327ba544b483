"""A handshake-era stream that broke: whoever read it goes on where it was (H2, D2).

What is a fact comes once, in order; of readings only the newest, as ever.
"""

from afoot.core.call import Series
from afoot.core.facts import Asked
from afoot.engine.live import Live
from afoot.engine.recovery import recall
from afoot.errors import StoreError, UnknownName
from afoot.serve.conversation import Conversation
from afoot.serve.frames import show
from afoot.serve.handshake import Session
from afoot.serve.http import Reply
from afoot.serve.numbered import Numbered
from afoot.serve.site import Site
from afoot.wire.jsonrpc import INVALID_REQUEST, Fault
from afoot.wire.messages import Wanted
from afoot.wire.place import Place, read_place


async def resume(site: Site, session: Session, text: str, reply: Reply) -> None:
    """Go on with a stream where its reader says that it was; raises Fault."""
    place = read_place(text)
    if place is None or place.epoch != site.engine.journal.epoch:
        raise _strange()
    live = await _find(site, place, session.caller)
    want = Wanted(
        place.request, live.call.opened.tool, live.arguments, place.token, session.level,
        session.capabilities, partial=place.partial, client=session.client,
    )  # fmt: skip
    outlet = Numbered(site, reply, session.version)
    talk = Conversation(site, want, session.caller, outlet, session)
    talk.live, talk.joins, talk.after = live, True, place.seq
    await session.take_over(talk, _asked(live, place.seq))
    live.attached = max(0, live.attached) + 1  # whoever left the stream before has taken its own back
    live.can_ask = live.can_ask or session.capabilities.can("form")
    talk.series = Series(live.series.last, live.series.total)
    with session.named(talk):
        outlet.begin(talk)
        await _go_on(session, talk, outlet)


async def _find(site: Site, place: Place, caller: str) -> Live:
    try:
        live = await recall(site.engine, place.call)
    except UnknownName:
        raise _strange() from None
    if live.call.opened.caller != caller or place.seq > live.call.seq:
        raise _strange()
    return live


def _asked(live: Live, seq: int) -> set[str]:
    """The questions that its reader was asked before it lost the stream."""
    later = [entry.fact for entry in live.backlog if entry.seq > seq]
    return set(live.call.open) - {fact.question.id for fact in later if isinstance(fact, Asked)}


async def _go_on(session: Session, talk: Conversation, outlet: Numbered) -> None:
    """Send what its reader has not had, then what comes."""
    try:
        await outlet.keep_alive()
        await _long_ago(talk, outlet)
    except BaseException as error:  # nobody follows it then; its reader may come again, or cancel it
        outlet.leave()  # what it was asked stays asked
        session.left(talk)
        if not isinstance(error, StoreError):
            raise
        await outlet.finish((), None)  # the stream has begun, and can tell no error but its end
    else:
        await session.hold(talk)


async def _long_ago(talk: Conversation, outlet: Numbered) -> None:
    """Send what has fallen out of memory since; the rest comes as ever."""
    live, after = talk.live, talk.after or 0
    first = live.backlog[0].seq if live.backlog else live.recorded + 1
    if after + 1 >= first:
        return
    entries = await talk.site.engine.journal.facts(live.call.id, after)
    frames: list[bytes] = []
    for entry in entries:
        if entry.seq < first:
            show(talk, entry.fact, frames, [])
            outlet.mark(len(frames), entry.seq)
    talk.after = first - 1
    live.series.last, live.series.total = talk.series.last, talk.series.total
    if frames:
        await outlet.send(frames)


def _strange() -> Fault:
    """The same for what there never was, and for what is somebody else's."""
    return Fault(INVALID_REQUEST, "header last-event-id: no place in a stream of this session")
