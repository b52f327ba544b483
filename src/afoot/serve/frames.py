"""What one request is sent for what its call said: progress, content, log lines, stages."""

from typing import TYPE_CHECKING

from msgspec import UNSET

from afoot.core.facts import Answered, Asked, Fact, Logged, Question, Reading, Reported
from afoot.core.notices import stages
from afoot.engine.live import SAMPLE_S, Follower, Live
from afoot.serve.forecast import forecast
from afoot.wire import messages
from afoot.wire.messages import FrameMeta, ProgressMeta, Wanted

if TYPE_CHECKING:
    from afoot.serve.conversation import Conversation


def show(talk: "Conversation", item: Fact | Reading, frames: list[bytes], asked: list[Question]) -> None:
    """Add the frames that this item means to this caller, or the question that it is."""
    if isinstance(item, Asked) and item.question.id in talk.live.call.open:
        asked.append(item.question)
    elif isinstance(item, Answered):
        frames += talk.manner.settled(talk, item)
    elif isinstance(item, Logged):
        if messages.wants_log(talk.want.level, item.level):
            frames.append(messages.log(item))
    elif isinstance(item, Reported):
        _content(talk, item, frames)
    elif talk.stages and not isinstance(item, Reading):
        for stage in stages(item):
            advance(talk, stage, FrameMeta(progress=ProgressMeta(source="engine")), frames)
    if talk.mark is not None and not asked:  # what is asked comes behind all the others
        talk.mark(len(frames), next((one.seq for one in talk.live.backlog if one.fact is item), 0))


def advance(talk: "Conversation", reading: Reading, meta: FrameMeta | None, frames: list[bytes]) -> None:
    """Add a progress notification, for a caller that sent a token."""
    token = talk.want.token
    if not isinstance(token, int | str):
        return
    if not talk.told:  # the first frame says which call this is, for whoever loses the stream
        talk.told = True
        meta = meta or FrameMeta()
        meta.call = talk.live.call.id
    if reading.source == "tool":
        talk.stages = False
    if talk.live.below is not None:
        meta = beside(talk, meta)
    if reading.at >= talk.foretells:
        meta = ahead(talk, reading.at, meta)
    frames.append(messages.progress(token, talk.series, reading, meta))


def beside(talk: "Conversation", meta: FrameMeta | None) -> FrameMeta | None:
    """The same, with the calls below that have changed since the last frame (P8)."""
    talk.below = {} if talk.below is None else talk.below
    changed = talk.site.engine.trees.changed(talk.live, talk.below)
    if changed:
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        meta.progress.children = changed
    return meta


def ahead(talk: "Conversation", now: float, meta: FrameMeta | None) -> FrameMeta | None:
    """The same, with how long the call still takes, if that is known (P9)."""
    talk.foretells = now + SAMPLE_S
    eta = forecast(talk.site.engine, talk.live, now)
    if eta is not None:
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        meta.progress.eta_s = eta.low_s, eta.high_s
    return meta


def flush(talk: "Conversation", follower: Follower, frames: list[bytes]) -> None:
    """What was held back by the rate: the newest value always goes out. The next request goes on there."""
    call = talk.live.call
    if call.latest is not None and follower.number < call.readings:
        follower.number = call.readings
        advance(talk, call.latest, None, frames)
    talk.live.told = follower.seq, follower.number


def catch_up(talk: "Conversation", follower: Follower) -> None:
    """What the call said while no request followed it is new to this one."""
    live = talk.live
    seq, number = live.told
    if seq and not talk.waits:
        follower.seq = min(follower.seq, seq)
    follower.number = min(follower.number, number)
    if follower.seq < live.recorded or follower.number < live.call.readings:
        talk.bell.set()


def is_staged(live: Live, want: Wanted) -> bool:
    """Whether to show stages: the caller sent a token, and the tool has not reported itself (T5)."""
    spoken = live.call.latest is not None or any(type(entry.fact) is Reported for entry in live.backlog)
    return want.token is not UNSET and not spoken


def _content(talk: "Conversation", item: Reported, frames: list[bytes]) -> None:
    meta = messages.told(item, talk.live.call, talk.want.partial)
    if item.late or (meta is None and item.progress is None and item.message is None):
        return
    if talk.missed:
        meta = meta or FrameMeta()
        meta.progress = meta.progress or ProgressMeta()
        meta.progress.missed, talk.missed = talk.missed, 0
    advance(talk, Reading(item.at, item.progress, item.total, item.message), meta, frames)
