"""The history as it stands in the store, read past the gateway."""

import asyncio
from pathlib import Path
from typing import TypeVar

from afoot.core.facts import Entry, Fact
from afoot.core.ports import CallQuery, CallRow
from afoot.store.sqlite import SqliteJournal

F = TypeVar("F")


def facts(store: Path, call: str) -> list[Fact]:
    """Every fact of a call."""

    async def read() -> list[Fact]:
        async with SqliteJournal(store) as journal:
            return [entry.fact for entry in await journal.facts(call)]

    return asyncio.run(read())


def entries(store: Path) -> list[Entry]:
    """Every fact of all calls, in their places."""

    async def read() -> list[Entry]:
        async with SqliteJournal(store) as journal:
            return [entry for _, entry in await journal.since(0, journal.position)]

    return asyncio.run(read())


def rows(store: Path, tool: str = "") -> list[CallRow]:
    """The calls of a tool, newest first."""

    async def read() -> list[CallRow]:
        async with SqliteJournal(store) as journal:
            return await journal.find(CallQuery(tool=tool, limit=1000))

    return asyncio.run(read())


def of_type(kind: type[F], found: list[Fact]) -> list[F]:
    """Those facts that are of a kind."""
    return [fact for fact in found if isinstance(fact, kind)]
