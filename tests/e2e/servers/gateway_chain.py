"""Gateways behind gateways: the outermost is on HTTP before one on HTTP, and that before one on a pipe."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from afoot.core.facts import Limits, Opened
from tests.e2e import history
from tests.e2e.gateway import TOOLS
from tests.e2e.gateway_with_servers import EVERY, Front, Table, fronting

OWN: Final = (TOOLS, Path(__file__).parent / "chain_tools.py")


class Chain:
    """Three gateways, the outermost first."""

    def __init__(self, outer: Front, middle: Front, inner: Front) -> None:
        self.outer, self.middle, self.inner = outer, middle, inner
        self.all = (outer, middle, inner)

    def limits(self, tool: str) -> list[Limits]:
        """The limits of the newest call of a tool, from the outermost to the innermost."""
        return [_opened(front, tool).limits for front in self.all]

    def outcomes(self, tool: str) -> list[str | None]:
        """How the call of a tool that ended last ended at each."""
        return [history.rows(front.store, tool)[0].outcome for front in self.all]

    def ended(self, tool: str) -> list[int]:
        """How many calls of a tool have ended at each."""
        return [len(history.rows(front.store, tool)) for front in self.all]


@contextmanager
def chained(folder: Path, hop: Table, settings: Mapping[str, Table] | None = None) -> Iterator[Chain]:
    """A chain; `hop` is set for each server, `settings` by the gateway: outer, middle or inner."""
    own = {name: {**EVERY, **(settings or {}).get(name, {})} for name in ("outer", "middle", "inner")}
    inner = Front(folder / "inner", {}, own["inner"], OWN)
    command, *arguments = inner.command("--stdio")
    ours = {key: text for key, text in inner.environment.items() if key.startswith(("AFOOT_", "E2E_"))}
    behind = {"inner": {"command": command, "args": arguments, "env": ours, **hop}}
    with fronting(folder / "middle", behind, own["middle"], ()) as middle:
        before = {"middle": {"url": middle.url, **hop}}
        with fronting(folder / "outer", before, own["outer"], ()) as outer:
            yield Chain(outer, middle, inner)


def _opened(front: Front, tool: str) -> Opened:
    (opened,) = history.of_type(Opened, front.facts(front.newest(tool)))
    return opened
