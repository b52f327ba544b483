"""A server that sends odd messages: they are counted, and neither the log nor memory grows with them."""

import asyncio
import logging

import pytest
from msgspec import Raw, json

from afoot.providers.upstream.connection import MAX_ANSWERING
from afoot.providers.upstream.transport.server_log import ANOMALIES_LOGGED
from afoot.wire.client.incoming import MAX_VISIT_CHARS, URL_ELICITATION_REQUIRED, ReceivedLog, required_urls
from afoot.wire.jsonrpc import Fault
from tests.providers.upstream.test_connection import connected, turns
from tests.providers.upstream.test_connection_wire_log import Log, Wire

TIMES = 10 * ANOMALIES_LOGGED


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"method": "roots/list", "id": None}, "garbage"),
        ({"method": "ping", "id": None}, "garbage"),
        ({"result": {}, "id": "9" * 5_000}, "stray_answer"),
        ({"method": "notifications/progress", "params": {"progressToken": "9" * 5_000, "progress": 1}},
         "unknown_token"),
        ({"method": "notifications/cancelled", "params": {"requestId": "9" * 5_000}}, ""),
    ],
    ids=["request", "ping", "answer", "progress", "cancel"],
)  # fmt: skip
async def test_odd_messages_fill_no_log(
    message: dict[str, object], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """H8, U1: the first ones are logged without a trace, the others only counted."""
    connection, _ = connected()
    with caplog.at_level(logging.INFO):
        for _ in range(TIMES):
            connection.receive(json.encode({"jsonrpc": "2.0", **message}))
    assert connection.server_log.counted == ({kind: TIMES} if kind else {})
    assert len(caplog.records) == (ANOMALIES_LOGGED if kind else 0)
    assert not any(record.exc_info for record in caplog.records)


async def test_a_fault_of_our_own_is_logged_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    """H8: the last resort has a trace, which a server must not be able to write without end."""

    def fail(said: ReceivedLog) -> None:
        raise ZeroDivisionError

    connection, _ = connected()
    connection.on_log = fail
    line = json.encode({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}})
    with caplog.at_level(logging.ERROR):
        for _ in range(2 * ANOMALIES_LOGGED):
            connection.server_log.logs.clear()
            connection.receive(line)
    traces = [record for record in caplog.records if record.exc_info]
    assert len(traces) == ANOMALIES_LOGGED
    assert connection.server_log.counted == {"lost_message": 2 * ANOMALIES_LOGGED}


async def test_an_odd_message_does_not_stop_a_connection_that_is_recorded() -> None:
    """V4, U1: what the wire log cannot place, or cannot write, is handled all the same."""
    wire, log = await Wire().open(), Log()
    task = await wire.ask(log)
    for odd in ("9" * 5_000, "\u00b2", "\u0663"):
        wire.come(id=odd, result={})
    wire.come(id="1", result={})
    assert bytes(await task) == b"{}"


async def test_a_wire_log_that_fails_costs_no_answer() -> None:
    """V4: a record that cannot be kept is no reason to lose the message, or those behind it."""

    class FullLog(list[tuple[str, bytes]]):
        def append(self, entry: tuple[str, bytes], /) -> None:
            if entry[0] == "in":
                raise OSError("the disk is full")

    wire = await Wire().open()
    task = await wire.ask(FullLog())
    wire.come(id=1, result={})
    assert bytes(await task) == b"{}"


async def test_requests_without_end_are_refused() -> None:
    """H8, Q3: each one that waits is a task of ours, and maybe a question to every client."""
    connection, hand = connected()
    waiting = asyncio.Event()

    async def list_roots() -> list[Raw]:
        await waiting.wait()
        return []

    connection.list_roots = list_roots
    for number in range(5 * MAX_ANSWERING):
        connection.receive(json.encode({"jsonrpc": "2.0", "method": "roots/list", "id": number}))
    assert len(hand.sent) == 4 * MAX_ANSWERING
    assert {"wait for an answer" in one["error"]["message"] for one in hand.sent} == {True}
    assert connection.server_log.counted == {"too_many_requests": 4 * MAX_ANSWERING}
    waiting.set()
    await turns()
    connection.receive(json.encode({"jsonrpc": "2.0", "method": "roots/list", "id": "next"}))
    await turns()
    assert hand.sent[-1] == {"jsonrpc": "2.0", "id": "next", "result": {"roots": []}}


async def test_ids_of_visited_pages_are_bounded_in_length() -> None:
    """H8, Q2: a server may name 1,000 pages before anybody asks; each name is short."""
    connection, _ = connected()
    for page in ("x" * MAX_VISIT_CHARS, "x" * (MAX_VISIT_CHARS + 1)):
        params = {"elicitationId": page}
        message = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}
        connection.receive(json.encode(message))
    assert list(connection.visits) == ["x" * MAX_VISIT_CHARS]
    assert connection.server_log.counted == {"bad_visit": 1}


@pytest.mark.parametrize(
    "pages",
    [[{"url": "https://a.example", "elicitationId": "x" * 100_000}],
     [{"url": "https://a.example", "elicitationId": str(number)} for number in range(10_000)]],
    ids=["long", "many"],
)  # fmt: skip
def test_pages_that_must_be_visited_are_bounded(pages: list[dict[str, str]]) -> None:
    """H8, Q2: an error that names more, or by longer ids, names none."""
    assert required_urls(Fault(URL_ELICITATION_REQUIRED, "visit", data={"elicitations": pages})) == []
    few = [{**page, "elicitationId": page["elicitationId"][:10]} for page in pages[:5]]
    assert len(required_urls(Fault(URL_ELICITATION_REQUIRED, "visit", data={"elicitations": few}))) == len(
        few
    )
