"""`afoot purge` and `export`: calls that go for good, and the history as lines of JSON (H6)."""

import sys
import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from afoot.cli.calls import At, Json, dumped
from afoot.cli.client import CHUNK, connect, part
from afoot.cli.ending import LOST, REFUSED, USAGE, Stop

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
    if min(which.older or 0, which.keep or 0) < 0:
        raise Stop(USAGE, "--older and --keep must not be negative")
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
    try:
        while piece := response.read1(CHUNK):
            sys.stdout.buffer.write(piece)
    except HTTPException:
        raise Stop(LOST, "the gateway broke off: what was printed is not all") from None
    finally:
        sys.stdout.buffer.flush()
    return 0


def _purge_file(store: Path, given: dict[str, Any]) -> int:
    from afoot.core.ports import Purge
    from afoot.engine.retention import purge

    if "older_s" in given:
        rule = Purge(before=time.time() - given["older_s"])
    else:
        rule = Purge(calls=[given["call"]]) if "call" in given else Purge(keep=given.get("keep", 0))
    return _with(store, lambda journal: purge(journal, rule))


def _export_file(store: Path, call: str) -> int:
    from afoot.store.export import lines

    async def written(journal: "Journal") -> int:
        async for piece in lines(journal, call):
            sys.stdout.buffer.write(piece)
        return 0

    code = _with(store, written)
    sys.stdout.buffer.flush()
    return code


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
