"""A gateway in front of other servers, as a config file names them."""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from afoot.core.facts import Fact, Opened, Started
from afoot.store.sqlite import SqliteJournal
from tests.e2e import history
from tests.e2e.gateway import TOOLS, Gateway, until

ROOT: Final = Path(__file__).parent.parent.parent
EVERY: Final = {"progress_hz": 0}  # every reading is passed on, however fast they come
Table = Mapping[str, object]


class Front(Gateway):
    """A gateway whose servers, tables and own tools stand in a config file."""

    def __init__(
        self,
        folder: Path,
        servers: Mapping[str, Table],
        settings: Table | None = None,
        own: Sequence[Path] = (TOOLS,),
    ) -> None:
        """`own`: the files of its own tools. Settings may hold tables too."""
        plain = {key: value for key, value in (settings or {}).items() if not isinstance(value, Mapping)}
        tables = {key: value for key, value in (settings or {}).items() if isinstance(value, Mapping)}
        self.config = folder / "afoot.toml"
        super().__init__(folder, {"config": self.config, "drain_s": 0.2, **plain})
        self._own = own
        folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(toml({**tables, "servers": servers}))

    def command(self, *surface: str) -> list[str]:
        """The command that serves everything on a surface."""
        own = [str(file) for file in self._own]
        return [sys.executable, "-m", "afoot", "serve", *own, "--store", str(self.store), *surface]

    def facts(self, call: str) -> list[Fact]:
        """The history of a call."""
        return history.facts(self.store, call)

    def newest(self, tool: str) -> str:
        """The call of a tool that ended last."""
        return history.rows(self.store, tool)[0].id

    def running(self, tool: str) -> str:
        """The call of a tool that is under way, as soon as there is one."""

        async def find() -> str:
            async with SqliteJournal(self.store) as journal:
                for call in await journal.unfinished():
                    opened = (await journal.facts(call))[0].fact
                    if isinstance(opened, Opened) and opened.tool == tool:
                        return call
            return ""

        return until(lambda: asyncio.run(find()), f"a call of {tool}")

    def attempts(self, call: str) -> list[int]:
        """How often it was begun."""
        return [fact.attempt for fact in history.of_type(Started, self.facts(call))]


@contextmanager
def fronting(
    folder: Path, servers: Mapping[str, Table], settings: Table | None = None, own: Sequence[Path] = (TOOLS,)
) -> Iterator[Front]:
    """A gateway on HTTP in front of these servers, ended with the block."""
    front = Front(folder, servers, settings, own)
    front.start()
    try:
        yield front
    finally:
        front.stop()


def python(module: str, *arguments: str, **env: str) -> dict[str, Any]:
    """A server that is a module of the tests."""
    return {"command": sys.executable, "args": ["-m", module, *arguments], "cwd": str(ROOT), "env": env}


def toml(table: Table, above: str = "") -> str:
    """A config file's text."""
    lines = [f"{json.dumps(key)} = {value(one)}" for key, one in table.items() if not _is_table(one)]
    for key, one in table.items():
        if isinstance(one, Mapping) and _is_table(one):
            path = f"{above}{json.dumps(key)}"
            lines += [f"[{path}]", toml(one, f"{path}.")]
    return "\n".join(lines)


def value(given: object) -> str:
    """A value; JSON is the same for all but tables."""
    if isinstance(given, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {value(one)}" for key, one in given.items()) + "}"
    return json.dumps(given)


def _is_table(given: object) -> bool:
    return isinstance(given, Mapping)
