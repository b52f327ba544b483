"""What is offered of all rooms: one tool a source and definition, each under a name that is its own (B2)."""

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from afoot.core.facts import Limits
from afoot.core.ports import Tool
from afoot.providers.browser.deaths import seen_at
from afoot.providers.browser.names import Names, marked, offered
from afoot.providers.browser.offers import Draft
from afoot.providers.browser.rooms import OpenRoom

GONE_S = 900.0  # so long a tool is remembered whose last tab is closed
GONE = 256


class Gone(Struct, frozen=True):
    """A tool that no open tab has any more."""

    tool: Tool
    url: str
    until: float


class Offering:
    """The tools on offer. `most` are listed of one origin; how many more there are is in `left_out`."""

    def __init__(self, names: Names, limits: Limits, most: int) -> None:
        self.names, self.limits, self.most = names, limits, most
        self.drafts: dict[str, Draft] = {}  # by the names under which they are offered
        self.gone: dict[str, Gone] = {}
        self.left_out: Counter[str] = Counter()  # by source
        self.tools: list[Tool] = []
        self._named: dict[str, str] = {}  # key to name
        self._seen_at: dict[str, str] = {}  # name to address

    def renew(self, standing: Iterable[Draft], rooms: list[OpenRoom], now: float) -> bool:
        """Take in what there is now; gives whether another list is offered.

        `standing` are offered whether a tab has them or not.
        """
        self.left_out = Counter()
        wanted = {draft.key: draft for draft in self._listed(standing, rooms)}
        before, tools = self.drafts, self.tools
        self._named = self._names(wanted)
        self.drafts = {name: wanted[key] for key, name in self._named.items()}
        self._remember(before, rooms, now)
        live = [draft.tool(name, self.limits) for name, draft in self.drafts.items()]
        self.tools = [*live, *(replace(one.tool, gone=True) for one in self.gone.values())]
        self.names.shrink(self.drafts)
        return self.tools != tools

    def _listed(self, standing: Iterable[Draft], rooms: list[OpenRoom]) -> Iterator[Draft]:
        """Every draft once, those first that were there first, as many of an origin as are listed."""
        times, seen = Counter[str](), set[str]()
        told = [*standing, *(draft for room in rooms for draft in room.drafts.values())]
        for draft in told:
            if draft.key in seen:
                continue
            seen.add(draft.key)
            times[draft.source.id] += 1
            if times[draft.source.id] <= self.most:
                yield draft
            else:
                self.left_out[draft.source.id] += 1

    def _names(self, wanted: dict[str, Draft]) -> dict[str, str]:
        """A name for each; who has one keeps it."""
        named = {key: name for key, name in self._named.items() if key in wanted}
        used = set(named.values())
        for key, draft in wanted.items():
            if key not in named:
                name, whose = offered(draft.source.stem, draft.page), f"{draft.source.owner} {draft.page}"
                if draft.source.usual == "off":  # what is framed somewhere never stands for the page itself
                    name = marked(name, whose)
                named[key] = self.names.give(name, whose, key, used)
                used.add(named[key])
        return {key: named[key] for key in wanted}

    def _remember(self, before: dict[str, Draft], rooms: list[OpenRoom], now: float) -> None:
        """Keep for a while what was offered of a page, so that a call can be told where it was."""
        for name, draft in before.items():
            if name not in self.drafts and not draft.source.id.startswith("plugin:"):
                tool = draft.tool(name, self.limits)
                self.gone[name] = Gone(tool, self._seen_at.get(name, draft.source.address), now + GONE_S)
        kept = {name: one for name, one in self.gone.items() if name not in self.drafts and one.until > now}
        self.gone = dict(list(kept.items())[-GONE:])
        seen = {key: seen_at(room) for room in rooms for key in room.drafts}
        self._seen_at = {name: seen[key] for key, name in self._named.items() if key in seen}
