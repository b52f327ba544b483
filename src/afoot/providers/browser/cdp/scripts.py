"""The scripts that run in pages over the DevTools protocol: the extension's own, and how they are reached."""

import json
from functools import cache
from pathlib import Path

from afoot.wire.room import Body

EXTENSION = Path(__file__).parents[3] / "extension"
BINDING = "afootSend"  # a function that only our worlds have
RECEIVE = "afootReceive"  # what the script in a world hears us by
# What a world that may be there from before answers: the relay still lives, or whether the page has tools.
PROBE = f"typeof {RECEIVE} === 'function' ? 'relay' : 'modelContext' in document ? 'native' : 'none'"


class Names:
    """The names of our worlds; `mark` keeps those of two gateways at one browser apart."""

    def __init__(self, mark: str) -> None:
        self.relay = f"afoot.relay.{mark}"
        self.late = f"afoot.late.{mark}"  # where the page's script had run before we came
        self._plugin = f"afoot.plugin.{mark}."

    def plugin(self, body: Body) -> str:
        """Each plugin's code has a world of its own, new code another than the old."""
        return f"{self._plugin}{body.name}@{body.hash}"

    @property
    def relays(self) -> tuple[str, str]:
        """Both worlds in which a relay may live."""
        return self.relay, self.late


@cache
def page() -> str:
    """What runs in the page's own world, before any script of the page."""
    return _joined("page")


@cache
def relay() -> str:
    """What runs beside it, in a world of ours."""
    return _joined("relay")


def late_relay() -> str:
    """The relay in a page whose script has run: nobody there can be trusted with a channel."""
    return f"globalThis.afootLate = true;\n{relay()}"


@cache
def read_value() -> str:
    """A function that reads a value of the page, in the page's own world."""
    return (EXTENSION / "value.js").read_text().replace("export function", "function", 1)


def receive(frame: bytes) -> str:
    """The script that hands a frame to a world."""
    return f"{RECEIVE}({json.dumps(frame.decode())})"


def value_of(path: str) -> str:
    """The script that reads a value of the page."""
    return f"(() => {{ {read_value()}\nreturn readValue({json.dumps(path)}); }})()"


def _joined(part: str) -> str:
    """The extension's files for a world, in their order, as one script; each keeps its names to itself."""
    names: list[str] = json.loads((EXTENSION / "content" / "files.json").read_text())[part]
    return "\n".join((EXTENSION / name).read_text() for name in names)
