"""`afoot purge` and `export`: calls that go for good, and the history as lines of JSON (H6)."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from afoot.cli.calls import At, Json, dumped
from afoot.cli.client import CHUNK, connect, part
from afoot.cli.ending import FAILED, LOST, REFUSED, USAGE, Stop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from afoot.core.ports import Journal

LONG_S = 600.0  # a long history takes its time
Store = Annotated[Path | None, Parameter(help="the file of a history that no gateway has open")]


@dataclass(frozen=True)
class Which:
    """Which calls: by exactly one of these."""

    older: Annotated[float | None, Parameter(help="opened and ended more than so many seconds ago")] = None
    keep: Annotated[int | None, Parameter(help="all but so many of the newest")] = None
    call: Annotated[str, Parameter(help="this one")] = ""
    everything: Annotated[bool, Parameter(name="--all", help="every one")] = False


def purge(
    *,
    which: Annotated[Which, Parameter(name="*")] = Which(),  # noqa: B008
    store: Store = None,
    at: At = "",
    json: Json = False,
) -> int:
    """Have calls go from the history for good; one that lives stays."""
    wish = {"older_s": which.older, "keep": which.keep, "call": which.call, "everything": which.everything}
    given = {way: value for way, value in wish.items() if value or (value == 0 and value is not False)}
    if len(given) != 1:
        raise Stop(USAGE, "say which calls: exactly one of --older, --keep, --call, --all")
    if not 0 <= (which.older or 0) < inf or (which.keep or 0) < 0:
        raise Stop(USAGE, "--older and --keep must be numbers, and not negative")
    if store is None:
        told: dict[str, Any] = connect(at).post("/api/purge", given, LONG_S)
    else:
        told = {"purged": _purge_file(store, given)}
    count = told["purged"]
    print(dumped(told) if json else f"{count} call{'s' * (count != 1)} went for good")
    return 0


def export(call: str = "", /, *, store: Store = None, at: At = "", json: Json = False) -> int:
    """Print the history as lines of JSON: the facts and readings of one call after another.

    Args:
        call: only this call
    """
    del json  # it is nothing else
    if store is not None:
        return _export_file(store, call)
    response = connect(at).open("GET", f"/api/export?call={part(call)}" if call else "/api/export")
    for piece in _pieces(response):
        _put(piece)
    _put(b"")
    return 0


def _pieces(response: HTTPResponse) -> Iterator[bytes]:
    """What comes from a gateway; raises Stop."""
    try:
        while piece := response.read1(CHUNK):
            yield piece
    except (HTTPException, OSError):
        raise Stop(
            LOST, "the gateway broke off, and its log may say why: what was printed is not all"
        ) from None


def _purge_file(store: Path, given: dict[str, Any]) -> int:
    from afoot.core.ports import Purge
    from afoot.engine.retention import purge

    async def purged(journal: "Journal") -> int:
        if "older_s" in given:
            return await purge(journal, Purge(before=time.time() - given["older_s"]))
        if "call" not in given:
            return await purge(journal, Purge(keep=given.get("keep", 0)))
        call = await _meant(journal, given["call"])
        if call in await journal.unfinished():
            settles = "the next `afoot serve` over HTTP on this history settles it"
            raise Stop(REFUSED, f"call {call} has not ended; {settles}")
        return await purge(journal, Purge(calls=[call]))

    return _with(store, purged)


def _export_file(store: Path, call: str) -> int:
    from afoot.store.export import lines

    async def written(journal: "Journal") -> int:
        async for piece in lines(journal, await _meant(journal, call) if call else ""):
            _put(piece)
        return 0

    code = _with(store, written)
    _put(b"")
    return code


async def _meant(journal: "Journal", name: str) -> str:
    """The call of this id, or the only one whose id begins or ends so; raises Stop."""
    from afoot.errors import StoreError
    from afoot.store.alike import alike, choose

    with suppress(StoreError):  # it cannot be read, and the list has it
        if await journal.facts(name):
            return name
    fitting = await alike(journal, name, await journal.unfinished())
    if len(fitting) != 1:
        raise Stop(USAGE, choose(name, fitting) if fitting else f"unknown call {name!r}")
    return fitting[0]


def _put(piece: bytes) -> None:
    """Print a piece, an empty one to the end; raises Stop where there is no room for it."""
    try:
        sys.stdout.buffer.write(piece)
        if not piece:
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # whoever read has enough
    except OSError as error:
        # Else it is tried once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Stop(FAILED, f"what was printed is not all: {error.strerror}") from None


def _with(store: Path, work: "Callable[[Journal], Coroutine[Any, Any, int]]") -> int:
    """Do something with a history that is nobody else's meanwhile; raises Stop."""
    import asyncio

    from afoot.errors import StoreError
    from afoot.store.lock import StoreLock
    from afoot.store.sqlite import SqliteJournal

    async def opened() -> int:
        async with SqliteJournal(store) as journal:
            return await work(journal)

    if not store.is_file():
        raise Stop(USAGE, f"{store}: there is no such history")
    try:
        with StoreLock(store):
            return asyncio.run(opened())
    except StoreError as error:
        raise Stop(REFUSED, str(error)) from None
