"""Streams of the handshake era that break, and go on where they were: no fact is lost or comes twice."""

import asyncio

import pytest

from afoot.core.ports import Report, Run
from afoot.serve.caller_presence import requests_of
from afoot.serve.gateway_state import GatewayState
from afoot.wire.framing import ServerSentEvent
from tests.engine.fake_engine import content, form
from tests.serve.fake_gateway import YES, Message, faked, nap, only, said, site_of
from tests.serve.raw_transports import Exchange, Web, cancelled, client, hello, older, request
from tests.serve.task_client import walk


async def logs(run: Run) -> str:
    """A tool that logs a line a second, five times, and reports beside."""
    for n in range(1, 6):
        await asyncio.sleep(1)
        run.report(n, 5, None)
        run.log(f"line {n}", "info", "")
    return "logged"


async def elder(gateway: GatewayState) -> Web:
    """A client of an older version with a session."""
    web, opening = Web(gateway), hello()
    opening["params"]["protocolVersion"] = "2025-06-18"
    web.session = (await web.ask(opening)).headers["mcp-session-id"]
    return web


async def cut(web: Web, message: Message, after_s: float) -> Exchange:
    """A request whose connection broke."""
    exchange = web.post(message)
    await asyncio.sleep(after_s)
    exchange.leave()
    return await exchange.done()


def again(web: Web, last: str) -> Exchange:
    """The same stream, from there on."""
    return web.open("GET", last_event_id=last)


def places(events: list[ServerSentEvent]) -> list[str]:
    """The ids of the events that have one."""
    return [event.id for event in events if event.id]


def lines(messages: list[Message]) -> list[str]:
    """What was logged."""
    return [one["params"]["data"] for one in messages if one.get("method") == "notifications/message"]


@faked
async def test_a_stream_begins_with_where_it_is_and_every_fact_has_its_place() -> None:
    """H2: an event of nothing first, with how soon to come back; readings have no place."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        exchange = await web.ask(older(1, progressToken="t"))
    [first, *rest] = exchange.events
    assert first.data == "" and first.id and b"retry: 1000" in exchange.body
    numbers = [int(place.split(".")[2]) for place in places(rest)]
    assert numbers == sorted(set(numbers)) and len(numbers) == 6
    assert all(not event.id for event in rest if "notifications/progress" in event.data)


@faked
async def test_a_client_of_an_older_version_is_sent_no_empty_event() -> None:
    """H2: it would take it for a broken message; its ids come with the facts."""
    async with site_of(logs) as gateway:
        events = (await (await elder(gateway)).ask(older(1))).events
    assert all(event.data for event in events) and len(places(events)) == 6


@faked
async def test_a_client_of_an_older_version_goes_on_though_there_were_no_facts_yet() -> None:
    """H2: its first event says where the stream begins; the result comes, and progress rises on."""
    async with site_of(walk) as gateway:
        web = await elder(gateway)
        broken = await cut(web, older(1, progressToken="t"), 3.5)
        assert [bool(event.id) for event in broken.events] == [True, False, False]
        resumed = await again(web, places(broken.events)[0]).done()
    assert resumed.messages[-1]["result"]["content"][0]["text"] == "there"
    whole = [one["params"]["progress"] for one in broken.messages + resumed.messages[:-1]]
    assert whole == sorted(set(whole)) and whole[-1] == 10


@pytest.mark.parametrize("after_s", [0.5, 1.5, 2.5, 4.5])
@faked
async def test_a_broken_stream_goes_on_without_a_gap_or_a_repeat(after_s: float) -> None:
    """H2, D2: all lines once, in order, then the result under the id of the request; progress rises on."""
    async with site_of(logs, settings={"sse_after_s": 0.2}) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(7, progressToken="t"), after_s)
        await asyncio.sleep(1)
        resumed = await again(web, places(broken.events)[-1]).done()
    whole = broken.messages + resumed.messages
    assert lines(whole) == [f"line {n}" for n in range(1, 6)]
    assert whole[-1]["id"] == 7 and whole[-1]["result"]["content"][0]["text"] == "logged"
    numbers = [one["params"]["progress"] for one in whole if one.get("method") == "notifications/progress"]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 5


async def pieces(run: Run) -> str:
    """A tool that has a piece of its result every second, five times."""
    for n in range(1, 6):
        await asyncio.sleep(1)
        run.content(Report(partial=content(f"piece {n}")))
    return "whole"


@faked
async def test_whoever_wanted_partial_results_still_does() -> None:
    """H2, P11: it gets those that it has not had, each once."""
    async with site_of(pieces) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(1, progressToken="t", **{"dev.afoot/partial": True}), 2.5)
        resumed = await again(web, places(broken.events)[-1]).done()
    told = str(broken.messages + resumed.messages)
    assert [told.count(f"piece {n}") for n in range(1, 6)] == [1] * 5


@faked
async def test_a_stream_is_resumed_from_every_place_it_had() -> None:
    """H2: what is behind it comes again, and nothing before."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        first = await web.ask(older(1))
        found = []
        for place in places(first.events):
            resumed = await again(web, place).done()
            found.append((lines(resumed.messages), bool(resumed.messages)))
    everything = [f"line {n}" for n in range(1, 6)]
    assert found == [(everything, True), *((everything[n:], True) for n in range(1, 6)), ([], False)]


@faked
async def test_a_second_stream_takes_over_from_the_first() -> None:
    """H2: a client may come back before it is known that it had gone."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        first = web.post(older(1))
        await asyncio.sleep(2.5)
        second = again(web, places(first.events)[-1])
        await asyncio.sleep(0.1)
        before = lines(first.messages)
        await second.done()
        await first.done()
        assert lines(first.messages) == before
    assert lines(second.messages) == ["line 3", "line 4", "line 5"]
    assert second.messages[-1]["result"]["content"][0]["text"] == "logged"


async def asks_late(run: Run) -> str:
    """A tool that logs, asks, and says what it was told."""
    await asyncio.sleep(1)
    run.log("before", "info", "")
    return said(await run.ask(form("sure")))


def nested(exchange: Exchange) -> list[Message]:
    """What was asked on this stream."""
    return [one for one in exchange.messages if one.get("method") == "elicitation/create"]


@faked
async def test_a_question_that_was_received_is_not_asked_again() -> None:
    """H2, Q1: its answer counts, before the stream goes on and after."""
    async with site_of(asks_late) as gateway:
        web = await client(gateway, elicitation={})
        broken = await cut(web, older(1), 2)
        [asked] = nested(broken)
        resumed = again(web, places(broken.events)[-1])
        await asyncio.sleep(1)
        await web.ask({"jsonrpc": "2.0", "id": asked["id"], "result": YES})
        await resumed.done()
    assert nested(resumed) == []
    assert resumed.messages[-1]["result"]["content"][0]["text"].startswith("accept {} by session:")


@faked
async def test_a_question_that_was_not_received_is_asked_again() -> None:
    """H2, Q1: under a number of its own."""
    async with site_of(asks_late) as gateway:
        web = await client(gateway, elicitation={})
        broken = await cut(web, older(1), 2)
        [asked] = nested(broken)
        resumed = again(web, places(broken.events)[-2])
        await asyncio.sleep(1)
        [anew] = nested(resumed)
        assert anew["id"] != asked["id"] and anew["params"] == asked["params"]
        await web.ask({"jsonrpc": "2.0", "id": anew["id"], "result": YES})
        await resumed.done()
    assert resumed.messages[-1]["result"]["content"][0]["text"].startswith("accept")


@faked
async def test_a_resumed_request_can_still_be_cancelled() -> None:
    """X1: by its id."""
    async with site_of(nap, settings={"sse_after_s": 0.2}) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(1), 1)
        resumed = again(web, places(broken.events)[-1])
        await asyncio.sleep(1)
        await web.ask(cancelled(1))
        await resumed.done()
        await asyncio.sleep(0)
        assert gateway.engine.calls() == [] and resumed.messages == []


@faked
async def test_what_fell_out_of_memory_comes_from_the_history() -> None:
    """H2: however much was said meanwhile."""

    async def chatters(run: Run) -> str:
        for n in range(3000):
            run.content(Report(data=content(str(n))))
            if n % 100 == 0:
                await asyncio.sleep(0.01)
        await asyncio.sleep(100)
        return "done"

    async with site_of(chatters, settings={"sse_after_s": 0.001}) as gateway:
        web = await client(gateway)
        broken = await cut(web, older(1, progressToken="t"), 0.02)
        await asyncio.sleep(10)
        resumed = again(web, places(broken.events)[0])
        await asyncio.sleep(1)
        resumed.leave()
        await resumed.done()
    found = [one["params"]["_meta"]["dev.afoot/progress"]["data"][0]["text"] for one in resumed.messages]
    assert found == [str(n) for n in range(3000)]


def strange(place: str) -> list[str]:
    """Ids that are none of this client's streams."""
    epoch, call, seq, reader = place.split(".")
    parts = [("other", call, seq), (epoch, "other", seq), (epoch, call, "999")]
    return ["-", "x", *(".".join([*one, reader]) for one in parts)]


@faked
async def test_an_id_that_is_none_is_refused_and_so_is_one_of_another_session() -> None:
    """H2, S3: clearly, and all in the same words."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        [place, *_] = places((await web.ask(older(1))).events)
        other = Web(gateway)
        other.application = web.application
        await other.shake_hands()
        refused = [await again(web, one).done() for one in strange(place)]
        refused.append(await again(other, place).done())
    assert {one.status for one in refused} == {400}
    [text] = {one.messages[0]["error"]["message"] for one in refused}
    assert text == "header last-event-id: no place in a stream of this session"


@faked
async def test_a_place_holds_nothing_that_lets_anybody_in() -> None:
    """S4: it names the call and the request, and not the session."""
    async with site_of(logs) as gateway:
        web = await client(gateway)
        [place, *_] = places((await web.ask(older(1))).events)
    assert web.session not in place and place.count(".") == 3


@faked
async def test_the_caller_of_a_broken_stream_is_not_asked_until_it_is_back() -> None:
    """A5, X3: what comes up meanwhile waits for it, or goes to the operator."""
    async with site_of(asks_late) as gateway:
        web = await client(gateway, elicitation={})
        broken = await cut(web, older(1), 0.5)
        assert not requests_of(only(gateway)).can_ask and places(broken.events) == []


@faked
async def test_a_wait_for_a_call_has_no_places() -> None:
    """H5, H2: whoever loses it waits again."""
    async with site_of(nap, settings={"sse_after_s": 0.2, "caller_limits": {"test": 4}}) as gateway:
        web = await client(gateway)
        handle = (await web.ask(older(1))).messages[-1]["result"]["structuredContent"]["afoot_call"]
        wait = {"name": "afoot_wait", "arguments": {"call": handle}}
        waited = await web.ask(request("tools/call", wait, 2))
    assert waited.messages[-1]["id"] == 2 and places(waited.events) == []
