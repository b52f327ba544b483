"""A file of an older version, which has no `Interrupted`: it opens and replays, and all see the same states.

`old_history.py` wrote `old_history.sqlite` with the code of such a version and says how; tags name the calls.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from afoot.cli.terminal.live.live_state import LiveChanges
from afoot.core.call import Call, State, evolve, fold, lacking, replay
from afoot.core.facts import Admitted, Entry, Fact, Interrupted, Opened, Started
from afoot.core.ports import Run
from afoot.core.rules import decide
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine
from afoot.engine.recovery import recover
from afoot.store.sqlite import SqliteJournal
from tests.chaos.tools import __file__ as tools
from tests.e2e import history
from tests.e2e.gateway import until
from tests.e2e.gateway_with_servers import Front
from tests.engine.fake_engine import Bench
from tests.serve.api_client import Api
from tests.store.old_history import FILE

LAST: Final = 84  # the position of the last fact in the file
GAPS: Final = {  # in which the older version took the call back into the queue, and began it again
    "running, again", "running, ends again", "running, saved, again", "on a server, again",
    "on a server, ends again", "asks, answered again",
}  # fmt: skip
LOGGED: Final = ("on a server, ends again", "running, left", "asks, left", "cancelling, left")
STORED: Final = {  # as the file tells it, before anybody finds the calls that have not ended
    "finished": "ok",
    "running, again": "running",
    "running, ends again": "ok",
    "running, saved, again": "running",
    "running, unsafe": "uncertain",
    "on a server, again": "running",
    "on a server, ends again": "ok",
    "asks, again": "running",
    "asks, answered again": "ok",
    "asks, unsafe": "uncertain",
    "approval, again": "queued",
    "approval, run again": "ok",
    "cancelling": "cancelled",
    "slot": "uncertain",
    "queued, again": "running",
    "done": "ok",
    "running, left": "running",
    "on a server, left": "running",
    "asks, left": "running",
    "approval, left": "queued",
    "cancelling, left": "cancelling",
    "queued, left": "queued",
}
FOUND: Final = {  # once a gateway has found those that may be repeated, and their tools are busy
    **STORED,
    "asks, again": "queued",
    "asks, left": "queued",
    "cancelling, left": "cancelled",
    "queued, again": "uncertain",  # it had begun, and may not be repeated
    "queued, left": "running",
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The file, to be opened and written to."""
    return Path(shutil.copy(FILE, tmp_path / "calls.db"))


async def stored(journal: SqliteJournal) -> dict[str, list[Entry]]:
    """The facts of all calls, by call."""
    found: dict[str, list[Entry]] = {}
    for _, entry in await journal.since(0, 1000):
        found.setdefault(entry.call, []).append(entry)
    return found


def tag(first: Fact) -> str:
    """The name of a call in this file."""
    assert isinstance(first, Opened)
    return str(json.loads(bytes(first.arguments))["tag"])


def told(call: Call) -> str:
    """How it ended, or its state."""
    return outcome(call) or call.state.value


def replayed(call_id: str, facts: list[Fact]) -> tuple[Call, list[Fact]]:
    """The call, each fact decided again; and the facts that were put in."""
    assert isinstance(facts[0], Opened)
    call, put_in = Call(call_id, facts[0]), list[Fact]()
    for fact in facts[1:]:
        missing = lacking(call, fact)
        put_in += [] if missing is None else [missing]
        for one in (missing, fact):
            if one is not None:
                assert decide(call, one) == (one,)
                evolve(call, one)
    return call, put_in


async def test_the_file_has_calls_in_every_state_and_no_interrupted(copy: Path) -> None:
    """H1: it is what it should be, or the tests below show nothing."""
    async with SqliteJournal(copy) as journal:
        calls = await stored(journal)
        assert journal.position == LAST
    assert {tag(entries[0].fact) for entries in calls.values()} == set(STORED)
    assert not [one for entries in calls.values() for one in entries if isinstance(one.fact, Interrupted)]


async def test_every_history_of_an_older_version_replays_through_the_rules(copy: Path) -> None:
    """C1, H1: one `Interrupted` is put in where a gateway had found the call, and none anywhere else."""
    async with SqliteJournal(copy) as journal:
        for call_id, entries in (await stored(journal)).items():
            facts = [entry.fact for entry in entries]
            call, put_in = replayed(call_id, facts)
            assert (told(call), len(put_in)) == (STORED[tag(facts[0])], tag(facts[0]) in GAPS), tag(facts[0])
            assert told(fold(call_id, facts)) == told(call)


async def test_what_is_put_in_has_no_number_and_moves_none(copy: Path) -> None:
    """H2: whoever has read up to a number or a position goes on behind it, as before."""
    async with SqliteJournal(copy) as journal:
        found = await journal.since(0, 1000)
        assert [pos for pos, _ in found] == list(range(1, LAST + 1))
        for call_id, entries in (await stored(journal)).items():
            assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
            assert entries == await journal.facts(call_id)
            assert fold(call_id, [entry.fact for entry in entries]).seq == len(entries)


async def test_a_call_that_was_admitted_anew_is_queued_until_it_starts(copy: Path) -> None:
    """C1: though nothing in the file says that its gateway had died; its time does not count from before."""
    async with SqliteJournal(copy) as journal:
        calls = list((await stored(journal)).values())
    [facts] = [
        [one.fact for one in entries] for entries in calls if tag(entries[0].fact) == "on a server, again"
    ]
    assert [type(fact) for fact in facts] == [Opened, Started, Admitted, Started]
    call = fold("c", facts[:3])
    assert (call.state, call.since, call.attempt) == (State.QUEUED, None, 1)
    replay(call, facts[3])
    assert (call.state, call.attempt) == (State.RUNNING, 2)


async def busy(run: Run) -> str:
    """A tool that does not end by itself."""
    await asyncio.sleep(1000)
    return ""


def offered(calls: dict[str, list[Entry]]) -> Catalog:
    """The tools of the file, as they were then."""
    catalog = Catalog()
    openings = [entries[0].fact for entries in calls.values() if isinstance(entries[0].fact, Opened)]
    for server in {opened.server for opened in openings}:
        bench = Bench()
        bench.name = server
        for opened in openings:
            if opened.server == server:
                approval = "ask" if opened.approval == "ask" else "auto"
                options = {"digest": opened.digest, "idempotent": opened.idempotent, "approval": approval}
                bench.add(busy, opened.tool, **options)
        catalog.put(bench)
    return catalog


async def test_the_gap_at_the_end_of_a_history_is_written_by_whoever_finds_it(copy: Path) -> None:
    """C1, U4: with the next number and position; then the living calls are the fold of what is stored."""
    async with SqliteJournal(copy) as journal:
        before = await stored(journal)
        left = {call for call, entries in before.items() if STORED[tag(entries[0].fact)] in set(State)}
        async with Engine(journal, offered(before)) as engine:
            await recover(engine)
            await asyncio.sleep(0.1)
            await engine.recorder.recorded()
            after = await stored(journal)
            living = {live.call.id: told(live.call) for live in engine.calls()}
            assert [pos for pos, _ in await journal.since(LAST, 1000)][0] == LAST + 1
    for call, entries in after.items():
        name, new = tag(entries[0].fact), entries[len(before[call]) :]
        folded, _ = replayed(call, [entry.fact for entry in entries])
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        assert [type(entry.fact) for entry in new[:1]] == [Interrupted] * (call in left), name
        assert told(folded) == living.get(call, told(folded)) == FOUND[name], name


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A gateway of this version on the file; its servers are gone, its own tools are there."""
    front = Front(tmp_path_factory.mktemp("old"), {}, {"retain": {"bytes": 0}}, own=(Path(tools),))
    shutil.copy(FILE, front.store)
    front.start()
    try:
        yield front
    finally:
        front.kill()


def program(front: Front, *words: str) -> list[dict[str, Any]]:
    """What the program prints, a JSON object a line."""
    done = subprocess.run(
        [sys.executable, "-m", "afoot", *words, "--json"],
        env=front.environment, capture_output=True, text=True, timeout=45, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def settled(api: Api) -> list[dict[str, Any]]:
    """The list of calls, once none of them is on its way from one state to the next."""

    def look() -> list[dict[str, Any]]:
        found = api.get("/api/calls?limit=100").body["calls"]
        is_over = all(one["state"] != "queued" or one["waiting"] for one in found)
        return list(found) if is_over and len(found) == len(STORED) else []

    return until(look, "the calls of the file to be found", 30)


def state(view: dict[str, Any]) -> tuple[str, str | None]:
    """State and outcome, as every list has them."""
    return view["state"], view["outcome"]


def test_list_log_api_and_events_show_the_same_states(gateway: Front) -> None:
    """H1, H2, U6: of calls that ended long ago, and of those that this gateway found."""
    api = Api(gateway)
    seen = {one["id"]: state(one) for one in settled(api)}
    with api.stream("/api/events") as events:
        first = next(events)
    assert first.event == "snapshot"
    living = {one["id"]: state(one) for one in json.loads(first.data)["calls"]}
    assert living == {call: one for call, one in seen.items() if one[0] != "finished"} and living
    assert {one["id"]: state(one) for one in program(gateway, "calls", "--limit", "100")} == seen
    entries = history.entries(gateway.store)
    for call, shown in seen.items():
        view, facts = api.call(call), [entry.fact for entry in entries if entry.call == call]
        assert state(view) == shown
        folded = fold(call, facts)
        assert (folded.state.value, outcome(folded)) == shown
        if view["arguments"]["tag"] in LOGGED:
            lines = [one for one in program(gateway, "log", call) if one["event"] == "fact"]
            assert [one["seq"] for one in lines] == list(range(1, len(facts) + 1))
            kinds = [type(fact).__struct_config__.tag for fact in facts]
            assert [one["fact"]["type"] for one in lines] == kinds


def test_a_console_that_reconnects_is_told_that_calls_were_interrupted(gateway: Front) -> None:
    """H2: also one that last heard of the older gateways; no number is left out, and it sees what all see."""
    api = Api(gateway)
    views = {one["id"]: state(one) for one in settled(api)}
    place = api.get("/api/snapshot").body
    calls: dict[str, Call] = {}
    with api.stream(f"/api/events?after={place['epoch']}:0") as events:
        for event in events:
            assert event.event == "changes", "it goes on where it was, and does not begin anew"
            for entry in msgspec.json.decode(event.data, type=LiveChanges).facts:
                take(calls, entry)
            if event.id == f"{place['epoch']}:{place['pos']}":
                break
    assert {call.id: (call.state.value, outcome(call)) for call in calls.values()} == views


def outcome(call: Call) -> str | None:
    """How it ended, if it has."""
    return call.end.outcome if call.end else None


def take(calls: dict[str, Call], entry: Entry) -> None:
    """Fold one fact of the stream, as a watcher does."""
    if isinstance(entry.fact, Opened):
        calls[entry.call] = Call(entry.call, entry.fact)
        return
    assert entry.seq == calls[entry.call].seq + 1
    replay(calls[entry.call], entry.fact)
