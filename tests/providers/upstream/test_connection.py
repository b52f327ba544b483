"""One connection on a carrier that a test has in hand: who is asked, what is answered, what is dropped."""

import asyncio
import gc
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from afoot.core.facts import Answer, Question
from afoot.errors import RunnerDied
from afoot.providers.upstream.connection import MAX_VISITS, McpConnection
from afoot.providers.upstream.provider import QuestionListener
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import OnLost, PendingRequest, Receive, Request
from afoot.wire.client import outgoing
from afoot.wire.client.outgoing import Dialect


class Hand:
    """A carrier that keeps what is sent."""

    has_streams = False
    has_session = True
    pid: int | None = None

    def __init__(self) -> None:
        self.version = ""
        self.sent: list[Any] = []
        self.is_gone = False

    async def open(self, receive: Receive, lost: OnLost) -> None: ...

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        self.send(body)
        await pending.answer

    async def tell(self, body: bytes) -> None:
        self.send(body)

    def send(self, body: bytes) -> None:
        if self.is_gone:
            raise RunnerDied("server hand is gone", began=False)
        self.sent.append(msgspec.json.decode(body))

    def listen(self) -> None: ...

    async def close(self) -> None: ...


class Caller(QuestionListener):
    """Somebody who can be asked, and keeps what it was asked."""

    def __init__(self, caller: str, answer: Answer | None = None) -> None:
        super().__init__(caller, self._asked)
        self.questions: list[Question] = []
        self._given = answer

    async def _asked(self, question: Question) -> Answer:
        self.questions.append(question)
        if self._given is None:
            await asyncio.Event().wait()
        assert self._given is not None
        return self._given


def connected() -> tuple[McpConnection, Hand]:
    """A connection of the handshake era."""
    hand = Hand()
    tongue = Dialect(outgoing.VERSION_2025, Raw(b"{}"))
    return McpConnection(hand, tongue, ServerLog("hand"), lambda method, params: None), hand


async def asking(connection: McpConnection, method: str, caller: Caller | None = None) -> "asyncio.Task[Raw]":
    """A request on its way."""
    task = asyncio.create_task(connection.request(Request(method, {}, caller)))
    await asyncio.sleep(0)
    return task


def ask(connection: McpConnection, id: object = "q", method: str = "elicitation/create") -> None:
    """The server asks."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {"message": "sure?"}}
    connection.receive(msgspec.json.encode(message))


async def turns() -> None:
    """Let everybody go on."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_question_of_a_plain_request_is_not_put_to_the_call_beside_it() -> None:
    """Q3: the newest can have asked, and nobody stands behind it who could answer."""
    connection, hand = connected()
    mine = Caller("a")
    tasks = [await asking(connection, "tools/call", mine), await asking(connection, "prompts/get")]
    ask(connection)
    await turns()
    assert mine.questions == []
    assert hand.sent[-1]["error"]["message"] == "there is nobody to ask"
    for task in tasks:
        task.cancel()


async def test_a_question_that_may_be_a_plain_requests_is_for_the_operator() -> None:
    """Q3: the caller of the call beside it is not sure to be meant."""
    connection, _ = connected()
    mine = Caller("a")
    tasks = [await asking(connection, "resources/read"), await asking(connection, "tools/call", mine)]
    ask(connection)
    await turns()
    assert [question.to for question in mine.questions] == ["operator"]
    for task in tasks:
        task.cancel()


async def test_lists_that_are_read_beside_a_call_ask_nothing() -> None:
    """Q3: so the question is the call's."""
    connection, _ = connected()
    mine = Caller("a")
    tasks = [await asking(connection, "tools/call", mine), await asking(connection, "tools/list")]
    ask(connection)
    await turns()
    assert [question.to for question in mine.questions] == [""]
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("method", ["ping", "roots/list", "elicitation/create", "something/else"])
async def test_what_a_server_asks_while_it_goes_is_dropped_without_a_word(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """U1: nobody can be answered any more, and that is no failure of ours."""
    connection, hand = connected()
    hand.is_gone = True
    with caplog.at_level(logging.ERROR):
        ask(connection, method=method)
    assert caplog.records == []


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_an_answer_that_nobody_can_take_any_more_is_dropped(is_cancelled: bool) -> None:
    """Q4: the server died while somebody thought about it; no task fails unseen."""
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    connection, hand = connected()
    task = await asking(connection, "tools/call", Caller("a", None if is_cancelled else Answer("decline")))
    ask(connection)
    hand.is_gone = True
    await turns()
    task.cancel()
    await turns()
    del task, connection
    gc.collect()
    assert failures == []


async def test_a_cancel_tells_the_server_why() -> None:
    """X1: always with a reason, and with the real one."""
    connection, hand = connected()
    task = await asking(connection, "tools/call", Caller("a"))
    task.cancel("idle: no report for 30 s")
    await asyncio.wait([task])
    assert hand.sent[-1]["params"] == {"requestId": 1, "reason": "idle: no report for 30 s"}


async def test_a_message_whose_id_is_none_is_garbage(caplog: pytest.LogCaptureFixture) -> None:
    """U1: counted, and no trace in the log."""
    connection, _ = connected()
    with caplog.at_level(logging.ERROR):
        connection.receive(b'{"jsonrpc":"2.0","id":{},"result":{}}')
        connection.receive(b'{"jsonrpc":"2.0","id":1.5,"result":NaN}')
    assert (connection.server_log.counted, caplog.records) == ({"garbage": 2}, [])


async def test_word_of_a_visit_is_heard_however_many_came_before() -> None:
    """Q2: pages that nobody waits for do not fill the list for ever."""
    connection, _ = connected()
    for number in range(MAX_VISITS + 5):
        params = {"elicitationId": f"e{number}"}
        message = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}
        connection.receive(msgspec.json.encode(message))
    assert len(connection.visits) <= MAX_VISITS
    assert connection.visits[f"e{MAX_VISITS + 4}"].is_set()


async def test_an_accepted_sample_without_content_is_a_no(caplog: pytest.LogCaptureFixture) -> None:
    """Q2: an answer that says nothing would be no message at all."""
    connection, hand = connected()
    task = await asking(connection, "tools/call", Caller("a", Answer("accept")))
    ask(connection, method="sampling/createMessage")
    await turns()
    assert "error" in hand.sent[-1]
    task.cancel()


async def test_two_questions_with_one_id_do_not_take_each_others_place() -> None:
    """Q4: the second is refused, the first is answered."""
    connection, hand = connected()
    first = Caller("a")
    task = await asking(connection, "tools/call", first)
    ask(connection)
    ask(connection)
    await turns()
    assert len(first.questions) == 1
    assert [sent["error"]["code"] for sent in hand.sent if "error" in sent] == [-32600]
    task.cancel()


def test_what_a_server_says_cannot_steer_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    """S1: its words are cleaned on their way into the log, too."""
    with caplog.at_level(logging.INFO):
        ServerLog("hand").note("its lists could not be read: \x1b[2Jhello\x07")
    assert "\x1b" not in caplog.text and "\x07" not in caplog.text and "hello" in caplog.text


@pytest.mark.parametrize(
    ("is_shared", "caller", "asked"), [(True, "token:a", 0), (True, "local", 1), (False, "token:a", 1)]
)
async def test_folders_that_a_server_asks_for_as_it_starts_are_those_of_no_other_person(
    is_shared: bool, caller: str, asked: int
) -> None:
    """Q3: a file server would open the folders of whoever calls first to everybody."""
    connection, hand = connected()
    connection.is_shared, connection.greeted_at = is_shared, asyncio.get_running_loop().time()
    mine = Caller(caller, Answer("accept", Raw(b'[{"uri":"file:///"}]')))
    task = await asking(connection, "tools/call", mine)
    ask(connection, method="roots/list")
    await turns()
    assert len(mine.questions) == asked
    assert len(hand.sent[-1]["result"]["roots"]) == asked
    task.cancel()


@pytest.mark.parametrize("answer", [Answer("decline"), Answer("accept")])
async def test_a_call_without_folders_gives_a_starting_server_none(answer: Answer) -> None:
    """Q3: its client may have none, or not know the question; the server starts all the same."""
    connection, hand = connected()
    connection.is_shared, connection.greeted_at = True, asyncio.get_running_loop().time()
    connection.list_roots = no_roots
    task = await asking(connection, "tools/call", Caller("local", answer))
    ask(connection, method="roots/list")
    await turns()
    assert hand.sent[-1]["result"] == {"roots": []}
    task.cancel()


async def test_clients_outside_the_call_are_asked_for_their_folders_first() -> None:
    """Q3: what they hold is for every call, and the call is not bothered."""
    connection, hand = connected()
    connection.is_shared, connection.greeted_at = True, asyncio.get_running_loop().time()
    connection.list_roots = one_root
    mine = Caller("local", Answer("accept", Raw(b'[{"uri":"file:///mine"}]')))
    task = await asking(connection, "tools/call", mine)
    ask(connection, method="roots/list")
    await turns()
    assert hand.sent[-1]["result"]["roots"] == [{"uri": "file:///theirs"}] and not mine.questions
    task.cancel()


async def no_roots() -> list[Raw]:
    """Clients without folders."""
    return []


async def one_root() -> list[Raw]:
    """Clients that have one folder."""
    return [Raw(b'{"uri":"file:///theirs"}')]
