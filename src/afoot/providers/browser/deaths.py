"""How runs die: their document goes away, or their browser; what a caller is told, and what to do (B6)."""

from afoot.errors import RunnerDied
from afoot.providers.browser.rooms import OpenRoom
from afoot.providers.hygiene import line

LINK_LOST = "link_lost"
URL_LIMIT = 500

# Why a document is gone: the code for programs, what happened, what to do.
_HOW = {
    "closed": ("tab_closed", "its tab was closed", "open {url} and call it again"),
    "reloaded": ("tab_reloaded", "its page was loaded anew", "call it again"),
    "navigated": ("tab_navigated", "its tab went to another page", "open {url} and call it again"),
    "cached": ("tab_navigated", "its tab went to another page", "open {url} and call it again"),
    "crashed": ("tab_crashed", "its tab crashed", "load {url} anew and call it again"),
    "discarded": ("tab_discarded", "its tab was discarded for memory", "open tab {tab} and call it again"),
    "removed": ("frame_removed", "its frame was taken out of its page", "call it again"),
    "replaced": ("plugin_replaced", "its plugin's code was replaced", "call it again"),
    "lost": (LINK_LOST, "its page cannot be reached any more", "see that {url} is open, and call it again"),
}  # fmt: skip


def gone(room: OpenRoom, why: str) -> RunnerDied:
    """A document is gone, and a run with it."""
    code, what, then = _HOW.get(why, _HOW["lost"])
    then = then.format(url=seen_at(room), tab=room.key)
    return RunnerDied(f"{what} while it ran there; {then}", code=code)


def ended_there(room: OpenRoom) -> RunnerDied:
    """A browser is back, and has the document but not the run."""
    return RunnerDied(
        f"the link to the browser was lost, and {seen_at(room)} knows nothing of it any more; call it again",
        code=LINK_LOST,
    )


def link_lost(room: OpenRoom, grace_s: float) -> RunnerDied:
    """A browser did not come back."""
    lost = f"the link to {room.profile.name} was lost for over {grace_s:g} s (link_grace_s)"
    what = lost if grace_s else f"{room.profile.name} is gone"
    then = f"see that the browser runs and has {seen_at(room)} open, and call it again"
    return RunnerDied(f"{what}; {then}", code=LINK_LOST)


def unsent(room: OpenRoom) -> RunnerDied:
    """The link was lost before the page had the request."""
    return RunnerDied(f"{room.profile.name} could not be reached", began=False, code=LINK_LOST)


def seen_at(room: OpenRoom) -> str:
    """Where a room's page was last, without what may be secret in its address."""
    url = (room.room.url or room.tab.url).partition("#")[0].partition("?")[0]
    return line(url, URL_LIMIT) or room.room.origin or "its page"
