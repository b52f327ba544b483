"""`afoot calls`, `log`, `cancel`, `purge` and `export`: commands on the history of calls.

`purge` and `export` also work on a history file that no gateway uses.
"""

import json
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

import msgspec
from cyclopts import Parameter

from afoot.cli.client import (
    CHUNK_BYTES,
    FAILED,
    LOST,
    REFUSED,
    USAGE,
    CliError,
    GatewayClient,
    connect,
    path_segment,
    read_events,
)
from afoot.cli.options import AtOption, JsonOption
from afoot.cli.terminal import text as terminal
from afoot.cli.terminal.call_log import StoredReading, log_lines
from afoot.cli.terminal.listing import calls_table, output_width, to_json_line
from afoot.core.facts import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from afoot.core.ports import Journal

StoreOption = Annotated[Path | None, Parameter(help="a history file that no gateway uses")]
SHOWN_CHILDREN = 10  # child calls that `afoot log` lists
PURGE_S = 600.0  # a purge of a long history takes time


@dataclass(frozen=True)
class CallFilter:
    """The filters of `afoot calls`."""

    tool: Annotated[str, Parameter(help="only calls of this tool")] = ""
    server: Annotated[str, Parameter(help="only calls on this server")] = ""
    state: Annotated[str, Parameter(help="live, waiting, queued, running, cancelling or finished")] = ""
    outcome: Annotated[str, Parameter(help="ok, failed, cancelled, timed_out, …")] = ""
    before: Annotated[float | None, Parameter(help="only calls opened before this time (seconds)")] = None
    limit: Annotated[int, Parameter(help="the largest number of calls to list")] = 20


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


def calls(
    text: str = "",
    /,
    *,
    which: Annotated[CallFilter, Parameter(name="*")] = CallFilter(),  # noqa: B008
    at: AtOption = "",
    json: JsonOption = False,
) -> int:
    """List calls, newest first.

    Args:
        text: only calls with this text in their id, tool, message or arguments
    """
    page = connect(at).get(
        "/api/calls", q=text, tool=which.tool, server=which.server, state=which.state,
        outcome=which.outcome, before=which.before, limit=which.limit,
    )  # fmt: skip
    if json:
        for call in page["calls"]:
            print(to_json_line(call))
        return 0
    for line in calls_table(page["calls"], output_width()):
        print(line)
    if page["next"] is not None:
        print(f"… older ones: --before {page['next']!r}", file=sys.stderr)
    return 0


def log(call: str, /, *, at: AtOption = "", json: JsonOption = False) -> int:
    """Print the state or outcome of a call, and its events with the seconds since it was opened.

    Args:
        call: the call's id, or its last characters
    """
    client = connect(at)
    if json:
        for one, _ in _read_history(client, call):
            print(to_json_line(one))
        return 0
    items = [item for _, item in _read_history(client, call)]
    found = client.get(f"/api/calls/{path_segment(call)}")
    made = (
        client.get("/api/calls", parent=found["id"], limit=SHOWN_CHILDREN)["calls"]
        if found.get("children")
        else []
    )
    is_summary = True  # up to the empty line; an error is told there alone, so it is told whole
    for line in log_lines(items, found, made):
        is_summary = is_summary and bool(line)
        print(line if is_summary else terminal.truncate(line, output_width()))
    return 0


def cancel(call: str, /, *, reason: str = "", at: AtOption = "", json: JsonOption = False) -> int:
    """Ask a call to stop.

    Args:
        call: the call's id, or its last characters
        reason: the reason, for the tool and its caller
    """
    body = {"reason": reason} if reason else {}
    reply = connect(at).post(f"/api/calls/{path_segment(call)}/cancel", body)
    print(
        to_json_line(reply)
        if json
        else f"{terminal.clean(reply['tool'])} {terminal.short_id(reply['id'])}: {reply['state']}"
    )
    return 0


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


def _read_history(client: GatewayClient, call: str) -> Iterator[tuple[dict[str, Any], Entry | StoredReading]]:
    """The events of a call so far, each as JSON and decoded."""
    for event in read_events(client.open_stream("GET", f"/api/calls/{path_segment(call)}/events?follow=no")):
        if event.event == "fact":
            yield {"event": "fact", **json.loads(event.data)}, msgspec.json.decode(event.data, type=Entry)
        elif event.event == "reading":
            yield (
                {"event": "reading", **json.loads(event.data)},
                msgspec.json.decode(event.data, type=StoredReading),
            )


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
