"""The story of a call: the facts and readings of the call and of all calls below it, in order of time."""

import asyncio
from collections import deque
from collections.abc import Iterator

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from afoot.core.facts import NOTHING, Entry, Fact, Sample
from afoot.core.ports import CallQuery
from afoot.engine.live_call import LiveCall
from afoot.engine.recovery import call_from_entries
from afoot.serve.api.calls import call_in_path
from afoot.serve.api.request import ApiRequest
from afoot.serve.api.views import CallView, call_view, call_view_with_forecast
from afoot.serve.gateway_state import GatewayState

MAX_CALLS = 500  # of one story
MAX_ENTRIES = 20_000  # facts and readings of one story
MIN_READINGS = 20  # that each call keeps, however many calls there are
MAX_FACTS = 4_000  # of one call
MIN_FACTS = 40  # that each call keeps, however many calls there are
FACTS_AT_ONCE = 500  # that are shortened before all others have their turn: about 3 ms
MAX_VALUE_BYTES = 2_000  # of a value or a text inside a fact; the call itself has the whole of it


class Story(Struct, frozen=True):
    """The calls of a tree, the first one above all others, with their facts and readings."""

    calls: list[CallView]
    facts: list[Entry]  # in order of time
    readings: list[Sample]  # in order of time; `left_out` counts those before it that are not here
    left_out: int  # calls that are not here
    facts_left_out: int
    wire: int | None  # messages on the wires of the first call; null if none are recorded


async def story(request: ApiRequest) -> None:
    """Return all facts and readings of a call and of the calls below it, in order of time."""
    request.query()
    top = await call_in_path(request)
    await request.gateway.wait_until_recorded()
    await request.answer(200, await read_story(request.gateway, top, request.only_caller))


async def read_story(gateway: GatewayState, top: LiveCall, caller: str = "") -> Story:
    """The story of a call; with `caller`, only calls of this one."""
    engine = gateway.engine
    now = engine.clock.now()
    ids, left_out = await _tree(gateway, top.call.id, caller)
    most = max(MIN_READINGS, MAX_ENTRIES // len(ids))
    most_facts = min(MAX_FACTS, max(MIN_FACTS, MAX_ENTRIES // len(ids)))
    calls: list[CallView] = []
    facts: list[Entry] = []
    readings: list[Sample] = []
    facts_left_out = 0
    for call_id in ids:
        entries = await _entries(gateway, call_id)
        samples = await engine.journal.samples(call_id)
        if call_id in engine:
            live = engine[call_id]
            calls.append(call_view_with_forecast(engine, live, now))
            samples = _with_newest(live, samples)
        elif entries:
            call = call_from_entries(entries).call
            calls.append(call_view(call, now))
        else:
            left_out += 1  # it was purged meanwhile
            continue
        facts_left_out += max(0, len(entries) - most_facts)
        for at in range(max(0, len(entries) - most_facts), len(entries), FACTS_AT_ONCE):
            facts += [_shortened(entry) for entry in entries[at : at + FACTS_AT_ONCE]]
            await asyncio.sleep(0)
        readings += thinned(samples, most)
    facts.sort(key=lambda entry: (entry.fact.at, entry.call, entry.seq))
    readings.sort(key=lambda sample: (sample.reading.at, sample.call, sample.number))
    return Story(calls, facts, readings, left_out, facts_left_out, _wire_messages(gateway, top.call.id))


def thinned(samples: list[Sample], most: int) -> list[Sample]:
    """Thin readings out evenly to this number; each counts the readings before it that are left out."""
    if len(samples) <= most:
        return samples
    step = len(samples) / most
    places = sorted({0, len(samples) - 1, *(int(step * number) for number in range(1, most - 1))})
    found = []
    before = -1
    for place in places:
        skipped = samples[before + 1 : place + 1]
        left_out = sum(one.left_out for one in skipped) + len(skipped) - 1
        found.append(replace(samples[place], left_out=left_out))
        before = place
    return found


def _wire_messages(gateway: GatewayState, call_id: str) -> int | None:
    """The number of messages that were recorded for a call, with those that are no longer kept."""
    if (wire_log := gateway.engine.wire_log) is None:
        return None
    messages = wire_log[call_id]
    return len(messages.said) + messages.left_out


async def _tree(gateway: GatewayState, top: str, caller: str) -> tuple[list[str], int]:
    """The ids of a call and of those below it, level by level, and the number of those that are too many."""
    engine = gateway.engine
    found = [top]
    known = {top}
    waiting = deque(found)
    left_out = 0
    while waiting:
        parent = waiting.popleft()
        query = CallQuery(parent=parent, caller=caller, limit=MAX_CALLS)
        rows = [(row.opened, row.id) for row in await engine.journal.find(query)]
        if parent in engine and (below := engine[parent].below) is not None:
            rows += [(child.call.opened.at, name) for name, child in below.children.items()]
        for _, name in sorted(rows):
            if name in known:
                continue
            known.add(name)
            if len(found) >= MAX_CALLS:
                left_out += 1
                continue
            found.append(name)
            waiting.append(name)
    return found, left_out


async def _entries(gateway: GatewayState, call_id: str) -> list[Entry]:
    """All facts of a call, also those that only memory has."""
    kept = gateway.engine.recorder.kept(call_id, 0)
    entries = await gateway.engine.journal.facts(call_id)
    return entries + [entry for entry in kept if entry.seq > len(entries)]


def _with_newest(live: LiveCall, samples: list[Sample]) -> list[Sample]:
    """The readings of the history, and the newest one of a live call, which it may not have yet."""
    call = live.call
    number = samples[-1].number if samples else 0
    if call.latest is None or call.readings <= number:
        return samples
    return [*samples, Sample(call.id, call.readings, call.latest, call.readings - number - 1)]


def _shortened(entry: Entry) -> Entry:
    """The entry without long values: each is replaced by its size, and a long text is cut."""
    return replace(entry, fact=_short_struct(entry.fact))


def _short_struct(thing: Fact) -> Fact:
    changes = dict(_short_fields(thing))
    return replace(thing, **changes) if changes else thing


def _short_fields(thing: Struct) -> Iterator[tuple[str, object]]:
    for name in thing.__struct_fields__:
        value = getattr(thing, name)
        if isinstance(value, Raw):
            if value is not NOTHING:
                yield name, _short_value(value)
        elif isinstance(value, str):
            if len(value) > MAX_VALUE_BYTES:
                yield name, f"{value[:MAX_VALUE_BYTES]}…"
        elif isinstance(value, Struct) and (changes := dict(_short_fields(value))):
            yield name, replace(value, **changes)


def _short_value(value: Raw) -> Raw:
    """The value, or its size; a copy, as it would keep the whole segment of the history in memory."""
    size = memoryview(value).nbytes
    return value.copy() if size <= MAX_VALUE_BYTES else Raw(json.encode({"omitted_bytes": size}))
