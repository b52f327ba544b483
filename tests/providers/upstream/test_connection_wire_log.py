"""The messages of a connection that are taken down: each for the request that it belongs to, and no other."""

import asyncio
from collections.abc import Mapping

from msgspec import Raw, json

from afoot.providers.upstream.connection import McpConnection
from afoot.providers.upstream.transport.server_log import ServerLog
from afoot.providers.upstream.transport.transport import OnLost, PendingRequest, Receive, Request
from afoot.wire.client import outgoing
from afoot.wire.client.outgoing import Dialect

Log = list[tuple[str, bytes]]


class Hand:
    """A carrier whose server is the test: a request lasts until it is answered."""

    version = ""
    has_streams = False
    has_session = True
    pid: int | None = None

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.pending: list[PendingRequest] = []
        self.receive: Receive

    async def open(self, receive: Receive, lost: OnLost) -> None:
        self.receive = receive

    async def send_request(self, pending: PendingRequest, body: bytes, headers: Mapping[str, str]) -> None:
        self.sent.append(body)
        self.pending.append(pending)
        await pending.answer

    async def tell(self, body: bytes) -> None:
        self.sent.append(body)

    def send(self, body: bytes) -> None:
        self.sent.append(body)

    def listen(self) -> None: ...

    async def close(self) -> None: ...


class Wire:
    """Requests on one connection, and all that was sent on it."""

    def __init__(self) -> None:
        self.hand = Hand()
        dialect = Dialect(outgoing.VERSION_2025, Raw(b"{}"))
        self.log = ServerLog("hand")
        self.connection = McpConnection(self.hand, dialect, self.log, lambda *_: None)
        self._tasks: list[asyncio.Task[Raw]] = []

    async def open(self) -> "Wire":
        await self.hand.open(self.connection.receive, lambda _: None)
        return self

    async def ask(self, log: Log | None) -> asyncio.Task[Raw]:
        """Send a request, which is taken down if there is a log."""

        def tape(way: str, message: bytes) -> None:
            assert log is not None
            log.append((way, message))

        request = Request("tools/call", record=None if log is None else tape)
        task = asyncio.create_task(self.connection.request(request))
        self._tasks.append(task)
        await asyncio.sleep(0)
        return task

    def come(self, stream: PendingRequest | None = None, **message: object) -> bytes:
        """A message of the server's comes."""
        line = json.encode({"jsonrpc": "2.0", **message})
        self.hand.receive(line, stream)
        return line

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


def test_a_message_is_taken_down_for_the_request_that_it_names() -> None:
    """V4: by its id, by its progress token, and as a text; all of it is passed on."""

    async def main() -> None:
        wire, one, two = await Wire().open(), Log(), Log()
        tasks = [await wire.ask(one), await wire.ask(two)]
        told = wire.come(method="notifications/progress", params={"progressToken": 2, "progress": 1})
        answers = [wire.come(id=id, result={}) for id in (1, "2")]
        wire.come(method="notifications/message", params={"level": "info", "data": "whose?"})
        assert [bytes(await task) for task in tasks] == [b"{}", b"{}"]
        assert one == [("out", wire.hand.sent[0]), ("in", answers[0])]
        assert two == [("out", wire.hand.sent[1]), ("in", told), ("in", answers[1])]
        assert len(wire.hand.sent) == 2

    asyncio.run(main())


def test_a_message_that_names_none_is_that_of_its_stream_or_of_the_only_request() -> None:
    """V4: a request that is not taken down counts, too: it may be its own."""

    async def main() -> None:
        wire, log = await Wire().open(), Log()
        await wire.ask(log)
        first = wire.hand.pending[0]
        said = {"method": "notifications/message", "params": {"level": "info", "data": "x"}}
        alone = wire.come(**said)
        await wire.ask(None)
        wire.come(**said)
        streamed = wire.come(first, **said)
        await wire.end()
        assert log[1:3] == [("in", alone), ("in", streamed)]

    asyncio.run(main())


def test_our_answer_to_a_question_of_the_server_is_taken_down() -> None:
    """V4: and nothing else that is sent meanwhile."""

    async def main() -> None:
        wire, log, other = await Wire().open(), Log(), Log()
        await wire.ask(log)
        await wire.ask(None)
        asked = wire.come(wire.hand.pending[0], id="q", method="elicitation/create", params={})
        refused = wire.hand.sent[-1]  # nobody is there to be asked
        wire.come(wire.hand.pending[1], id="r", method="elicitation/create", params={})
        assert json.decode(refused)["id"] == "q" and len(wire.hand.sent) == 4
        await wire.ask(other)
        assert log[1:] == [("in", asked), ("out", refused)] and len(other) == 1
        await wire.end()

    asyncio.run(main())


def test_what_is_no_message_is_passed_on_and_nobodys() -> None:
    """V4: whoever receives it tells of it; once the request is over, nothing is taken down."""

    async def main() -> None:
        wire, log = await Wire().open(), Log()
        await wire.ask(log)
        wire.hand.receive(b"garbage", None)
        assert wire.log.counted == {"garbage": 1} and len(log) == 1
        await wire.end()
        taken = len(log)
        await wire.ask(None)
        wire.come(id=1, result={})
        wire.come(id=2, result={})
        assert len(log) == taken

    asyncio.run(main())
