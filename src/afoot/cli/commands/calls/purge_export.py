"""`afoot purge` deletes calls of the history, and `afoot export` prints it as lines of JSON.

Both also work on a history file that no gateway uses.
"""

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

from afoot.cli.client import (
    CHUNK_BYTES,
    FAILED,
    LOST,
    REFUSED,
    USAGE,
    CliError,
    connect,
    path_segment,
)
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal.listing import to_json_line

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from afoot.core.ports import Journal


StoreOption = Annotated[Path | None, Parameter(help="a history file that no gateway uses")]
PURGE_S = 600.0  # a purge of a long history takes time


@dataclass(frozen=True)
class PurgeSelection:
    """The calls to delete: exactly one of these options is given."""

    older: Annotated[
        float | None,
        Parameter(help="delete calls that were opened and ended more than this many seconds ago"),
    ] = None
    keep: Annotated[int | None, Parameter(help="delete all calls except this many of the newest")] = None
    call: Annotated[str, Parameter(help="delete this call")] = ""
    everything: Annotated[bool, Parameter(name="--all", help="delete all calls")] = False


def purge(
    *,
    which: Annotated[PurgeSelection, Parameter(name="*")] = PurgeSelection(),  # noqa: B008
    store: StoreOption = None,
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """Delete calls from the history for good. A live call stays."""
    selected = {
        "older_s": which.older,
        "keep": which.keep,
        "call": which.call,
        "everything": which.everything,
    }
    given = {way: value for way, value in selected.items() if value or (value == 0 and value is not False)}
    if len(given) != 1:
        raise CliError(USAGE, "say which calls: exactly one of --older, --keep, --call, --all")
    if not 0 <= (which.older or 0) < inf or (which.keep or 0) < 0:
        raise CliError(USAGE, "--older and --keep must be numbers, and not negative")
    if store is None:
        reply: dict[str, Any] = connect(at).post("/api/purge", given, PURGE_S)
    else:
        reply = {"purged": _purge_file(store, given)}
    count = reply["purged"]
    print(to_json_line(reply) if json else f"{count} call{'s' * (count != 1)} went for good")
    return 0


def export(
    call: str = "", /, *, store: StoreOption = None, at: AtOption = "", json: JsonOption = False
) -> int:
    """Print the history as lines of JSON: the facts and readings of one call after another.

    Args:
        call: only this call
    """
    del json  # the output is JSON in any case
    if store is not None:
        return _export_file(store, call)
    response = connect(at).open_stream(
        "GET", f"/api/export?call={path_segment(call)}" if call else "/api/export"
    )
    for piece in _read_pieces(response):
        _write_out(piece)
    _write_out(b"")
    return 0


def _read_pieces(response: HTTPResponse) -> Iterator[bytes]:
    """The pieces of a response body; raises CliError if it breaks off."""
    try:
        while piece := response.read1(CHUNK_BYTES):
            yield piece
    except (HTTPException, OSError):
        raise CliError(
            LOST, "the gateway broke off, and its log may say why: what was printed is not all"
        ) from None


def _purge_file(store: Path, given: dict[str, Any]) -> int:
    from afoot.core.ports import PurgeRule
    from afoot.engine.retention import purge

    async def purged(journal: "Journal") -> int:
        if "older_s" in given:
            return await purge(journal, PurgeRule(before=time.time() - given["older_s"]))
        if "call" not in given:
            return await purge(journal, PurgeRule(keep=given.get("keep", 0)))
        call = await _resolve_call(journal, given["call"])
        if call in await journal.unfinished():
            settles = "the next `afoot serve` over HTTP on this history settles it"
            raise CliError(REFUSED, f"call {call} has not ended; {settles}")
        return await purge(journal, PurgeRule(calls=[call]))

    return _with_store(store, purged)


def _export_file(store: Path, call: str) -> int:
    from afoot.store.export import export_lines

    async def written(journal: "Journal") -> int:
        async for piece in export_lines(journal, await _resolve_call(journal, call) if call else ""):
            _write_out(piece)
        return 0

    code = _with_store(store, written)
    _write_out(b"")
    return code


async def _resolve_call(journal: "Journal", name: str) -> str:
    """The id of the call that is named by its id or by the beginning or end of it; raises CliError."""
    from afoot.errors import StoreError
    from afoot.store.search import ambiguous_id_message, find_by_id_part

    with suppress(StoreError):  # an unreadable call is still in the list below
        if await journal.facts(name):
            return name
    fitting = await find_by_id_part(journal, name, await journal.unfinished())
    if len(fitting) != 1:
        raise CliError(USAGE, ambiguous_id_message(name, fitting) if fitting else f"unknown call {name!r}")
    return fitting[0]


def _write_out(piece: bytes) -> None:
    """Write a piece to stdout; an empty piece flushes. Raises CliError if the disk is full."""
    try:
        sys.stdout.buffer.write(piece)
        if not piece:
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader of the pipe has gone
    except OSError as error:
        # Without this, Python would try to write once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise CliError(FAILED, f"what was printed is not all: {error.strerror}") from None


def _with_store(store: Path, work: "Callable[[Journal], Coroutine[Any, Any, int]]") -> int:
    """Open a history file, locked for this process, and run `work` on it; raises CliError."""
    import asyncio

    from afoot.errors import StoreError
    from afoot.store.lock import StoreLock
    from afoot.store.sqlite import SqliteJournal

    async def opened() -> int:
        async with SqliteJournal(store) as journal:
            return await work(journal)

    if not store.is_file():
        raise CliError(USAGE, f"{store}: there is no such history")
    try:
        with StoreLock(store):
            return asyncio.run(opened())
    except StoreError as error:
        raise CliError(REFUSED, str(error)) from None
