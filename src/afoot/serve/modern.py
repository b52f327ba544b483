"""2026-07-28 as a manner of conversation: a question ends the request, and its retry goes on (Q1)."""

from collections.abc import Mapping, Sequence

from afoot.core.facts import NOTHING, Answer, Answered, Question
from afoot.engine.live import Live
from afoot.engine.questions import keep, meant
from afoot.errors import AfootError
from afoot.serve import tasks
from afoot.serve.conversation import Conversation
from afoot.serve.desk import is_errand
from afoot.serve.join import opened
from afoot.serve.site import Site
from afoot.wire import handle, mcp, messages
from afoot.wire.messages import Wanted

ROUNDS = 8  # official clients stop at ten
AGAIN_S = 5.0  # within which a client comes back that was asked nothing; official ones need 0.25 s


class Modern:
    """How a 2026-07-28 caller is asked and told."""

    __slots__ = ("cancels", "capped", "modern", "version")

    def __init__(self, *, cancels: bool, capped: bool) -> None:
        """`cancels`: losing the stream cancels the call; `capped`: large results cannot go on a stream."""
        self.cancels = cancels
        self.capped = capped
        self.modern = True
        self.version = mcp.VERSION

    def ask(self, talk: Conversation, asked: Sequence[Question]) -> tuple[list[bytes], bytes | None]:
        """End the request with what the caller is to find out; what it cannot goes to the operator."""
        open_now = list(talk.live.call.open.values())
        may_ask = talk.round < ROUNDS and talk.live.call.cancel is None
        askable = [one for one in open_now if may_ask and talk.want.capabilities.may_answer(one)]
        forsake(talk, [one for one in open_now if one not in askable])
        return [], self._round(talk, askable) if askable else None

    def postpone(self, talk: Conversation) -> bytes:
        """A round without a question: the client asks again, and is answered as plain JSON."""
        return self._round(talk, [])

    def part(self, talk: Conversation) -> bytes:
        """A round without a question, which the client takes by itself; if it takes none, a handle."""
        if talk.as_task:
            detach(talk)
            return tasks.created(talk)
        can = talk.want.capabilities
        is_able = any(one is not None for one in (can.elicitation, can.sampling, can.roots))
        if is_able and talk.round < ROUNDS and not talk.is_brief:
            return self._round(talk, [])
        detach(talk)
        return hand_over(talk)

    def settled(self, talk: Conversation, fact: Answered) -> list[bytes]:
        """A form already returned cannot be withdrawn."""
        return []

    def over(self, talk: Conversation) -> list[bytes]:
        """Nor can one whose call is over."""
        return []

    def left(self, talk: Conversation) -> None:
        """The stream was closed: a cancel, if no other request of the newest round follows the call."""
        if not detach(talk) or (talk.joins and talk.live.call.opened.task):  # a task is its caller's still
            return
        if talk.live.tool.on_disconnect == "detach":
            talk.live.can_ask = False  # unless it comes back
        elif self.cancels:
            talk.site.engine.cancel(talk.live, "disconnect", talk.site.why_left(talk.caller))

    def _round(self, talk: Conversation, asked: Sequence[Question]) -> bytes:
        live = talk.live
        number = talk.round + 1
        if live.round < number and not talk.waits:
            live.round, live.attached = number, 0
            live.awaited = 0.0 if asked else talk.site.engine.clock.now() + AGAIN_S
        state = talk.site.seal(live, talk.want, talk.caller, number)
        return mcp.input_required(talk.want.id, talk.site.info, asked, state)


def forsake(talk: Conversation, asked: Sequence[Question]) -> None:
    """Decline what the caller is not asked and nobody else has: an operator has no model and no roots."""
    for one in asked:
        if one.kind in ("sample", "roots"):
            talk.site.engine.answer(one.id, Answer("decline", by="engine"))


def hand_over(talk: Conversation) -> bytes:
    """The handle by which the caller finds its call again."""
    live, site = talk.live, talk.site
    now = site.engine.clock.now()
    info = site.info if talk.manner.modern else NOTHING
    return handle.handed(talk.want, live.call, now, live.heard, info)


def detach(talk: Conversation) -> bool:
    """This request no longer follows; True if the call now runs for nobody."""
    live = talk.live
    if talk.round != live.round or talk.waits:
        return False
    live.attached -= 1
    return live.attached <= 0


async def again(talk: Conversation, headers: Mapping[str, str] | None = None) -> None:
    """Begin a request that may have been made before: by its state or its key; raises Fault."""
    await (resume(talk) if talk.want.state is not None else opened(talk, headers))


async def resume(talk: Conversation) -> None:
    """Find the call that a retry belongs to, and take its answers; raises Fault."""
    site, want = talk.site, talk.want
    live, mark = await site.find(want, talk.caller)
    talk.live, talk.round, talk.waits = live, mark.round, is_errand(site, want.name)
    take_answers(site, live, want, talk.caller, mark.asked)
    if talk.waits:
        return
    talk.as_task = tasks.chosen(site, want, live.tool, modern=True)
    live.awaited = 0.0
    if talk.round > live.round:  # it waited through a restart, so nobody has followed it yet
        live.round, live.attached = talk.round, 0
    if talk.round == live.round:
        live.attached += 1


def take_answers(site: Site, live: Live, want: Wanted, caller: str, had: int) -> None:
    """Answer the questions still open; what is missing or does not fit stays open and is asked again.

    Of the first `had` only: what was asked since may have the same key, and this is no answer to it.
    """
    for asked in meant(live, had):
        given = want.answers.get(asked.key)
        if given is None or not want.capabilities.may_answer(asked):
            continue
        try:
            answer = messages.answer(asked, given, caller)
            if asked.id in live.call.open:
                site.engine.answer(asked.id, answer)
            else:
                keep(live, asked, answer)
        except (AfootError, messages.Fault):  # it does not fit, or the call is being cancelled
            site.count("answers refused")
