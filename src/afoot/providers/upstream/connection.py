"""A connection to one server: requests and their answers, and what the server says and asks meanwhile."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Any

from msgspec import UNSET, Raw

from afoot.errors import RunnerDied, ToolError
from afoot.providers.upstream.carrier import Carrier, Exchange, Listener, Order
from afoot.providers.upstream.record import Record
from afoot.providers.upstream.taping import came
from afoot.wire import client, client_questions, client_reading
from afoot.wire.client import Tongue
from afoot.wire.client_reading import Wish
from afoot.wire.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Envelope, Fault, Id

# Requests that open a connection; they are never called off.
OPENING = ("initialize", "server/discover")
# Requests in which a server may ask something, or log what it does for somebody.
WORKING = ("tools/call", "prompts/get", "resources/read", "completion/complete")
YOUNG_S = 2.0  # so long after the greeting a server asks for roots on its own account
VISITS = 1000  # pages that a server may speak of at a time

Notice = Callable[[str, Raw], None]

_log = logging.getLogger("afoot.upstream")


class Connection:
    """One server, spoken to in one version of the protocol. All of it is used on one loop."""

    def __init__(self, carrier: Carrier, tongue: Tongue, record: Record, notice: Notice) -> None:
        self.carrier, self.tongue, self.record = carrier, tongue, record
        self.capabilities: dict[str, Any] = {}
        self.info: dict[str, Any] = {}
        self.instructions = ""
        self.is_shared = True  # whether callers have it together
        self.greeted = -inf  # when it was
        self.lost: str | None = None  # how it died
        self.on_lost: Callable[[], None] = lambda: None
        self.answers = 0  # that came: a server that never answered has proved nothing
        self.visits: dict[str, asyncio.Event] = {}  # pages that somebody is to visit, by their id
        self._burial: asyncio.Task[None] | None = None
        self._notice = notice
        self._ids, self._last, self._is_taped = count(1), 0, False
        self._exchanges: dict[int, Exchange] = {}
        self._asked: dict[Id, asyncio.Task[None]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a request is on its way."""
        return bool(self._exchanges)

    @property
    def is_buried(self) -> bool:
        """Whether nothing of it is left."""
        return self._burial is not None and self._burial.done()

    async def request(self, order: Order) -> Raw:
        """The result; raises Fault for the server's error, RunnerDied, ToolError."""
        if self.lost is not None:
            raise RunnerDied(self.lost, began=False)
        self._last = next(self._ids)
        exchange = Exchange(self._last, order)
        if order.method == "initialize":
            body = client.hello(exchange.id, self.tongue)
        else:
            meta = {**order.meta, "progressToken": exchange.id} if order.listener else order.meta
            body = client.request(self.tongue, exchange.id, order.method, order.params, meta)
        self._exchanges[exchange.id] = exchange
        if exchange.tape is not None:
            self._is_taped = exchange.tape("out", body)
        try:
            headers = client.headers(self.tongue, order.method, order.params) | dict(order.headers)
            await self.carrier.carry(exchange, body, headers)
            answer = exchange.answer.result()
        except asyncio.CancelledError as cancelled:
            self._abandon(exchange, str(cancelled) or "the caller stopped waiting")
            raise
        finally:
            del self._exchanges[exchange.id]
            exchange.close()
            if self.lost is not None:
                self._bury()
        self.answers += order.method not in OPENING
        if answer.error and memoryview(answer.error) != b"null":
            raise client_reading.fault(answer.error)
        return answer.result

    def speak(self, tongue: Tongue) -> None:
        """From now on in this version."""
        self.tongue = tongue
        self.carrier.version = tongue.version

    def receive(self, line: bytes, stream: Exchange | None = None) -> None:
        """A message that came, on a request's own stream if it has one. Never raises."""
        if not line or line.isspace():
            return
        try:
            message = client_reading.read(line)
            if self._is_taped:
                came(line, message, stream, self._exchanges)
            self._take(message, stream)
        except Fault:
            self.record.odd("garbage", line[:400].decode("utf-8", "replace"))
        except Exception:
            _log.exception("server %s: a message was lost", self.record.server)

    def die(self, how: str, level: int = logging.WARNING) -> None:
        """The server is gone: everybody who waits for it is told."""
        if self.lost is not None:
            return
        self.lost = how
        self.record.say(how, level)
        for exchange in self._exchanges.values():
            # What has a stream of its own lives as long as that.
            if not exchange.answer.done() and not self.carrier.has_streams:
                exchange.answer.set_exception(RunnerDied(how))
        for task in tuple(self._asked.values()):
            task.cancel()
        self.on_lost()
        self._bury()

    async def close(self) -> None:
        """End it; whoever still waits is told."""
        self.on_lost = lambda: None
        self.die(f"the connection to server {self.record.server} was closed", logging.INFO)
        await self.carrier.close()
        if self._burial is not None:
            await self._burial

    def _bury(self) -> None:
        """Let go of what carried a dead connection, once the last stream on it has ended."""
        if not self._exchanges and self._burial is None:
            self._burial = asyncio.get_running_loop().create_task(self.carrier.close())

    def _abandon(self, exchange: Exchange, why: str) -> None:
        """Nobody waits for the answer. On 2026-07-28 a closed stream says so; else it must be told."""
        is_closed = self.carrier.has_streams and self.tongue.is_modern
        is_answered = exchange.answer.done() and not exchange.answer.cancelled()
        if is_closed or is_answered or exchange.method in OPENING or self.lost is not None:
            return
        self._send(client.cancelled(exchange.id, why))

    def _send(self, body: bytes) -> None:
        """Send what nobody waits for; a server that is gone needs it no more."""
        try:
            self.carrier.send(body)
        except (RunnerDied, ToolError) as error:
            self.record.say(f"a message was not sent: {error}")

    def _take(self, message: Envelope, stream: Exchange | None) -> None:
        if message.method is UNSET:
            self._answered(message, stream)
        elif message.id is not UNSET:
            self._asks(message, stream)
        elif message.method == "notifications/progress":
            self._progress(message.params, stream)
        elif message.method == "notifications/message":
            self._says(message.params, stream)
        elif message.method == "notifications/cancelled":
            self._withdrawn(message.params)
        elif message.method == "notifications/elicitation/complete":
            self._visited(client_reading.named(message.params)[1])
        else:
            self._notice(message.method, message.params)

    def _visited(self, page: str | None) -> None:
        """Somebody was at a page; that may come before we know of it, or of one that nobody waits for."""
        if page is None:
            return
        if page not in self.visits and len(self.visits) >= VISITS:
            old = next((one for one, event in self.visits.items() if event.is_set()), None)
            if old is None:
                return
            del self.visits[old]
        self.visits.setdefault(page, asyncio.Event()).set()

    def _answered(self, message: Envelope, stream: Exchange | None) -> None:
        exchange = self._exchange(message.id)
        if message.id is None and stream is not None:
            exchange = stream  # an error that could not name its request, on that request's own stream
        if exchange is None or (stream is not None and exchange is not stream) or exchange.answer.done():
            self.record.odd("stray_answer", f"to request {message.id}")
        elif not (message.result or message.error):
            self.record.odd("garbage", f"an answer to request {message.id} without a result")
        else:
            exchange.answer.set_result(message)

    def _progress(self, params: Raw, stream: Exchange | None) -> None:
        told = client_reading.progress(params)
        if told is None:
            self.record.odd("bad_progress", bytes(params)[:200].decode("utf-8", "replace"))
            return
        exchange = self._exchanges.get(told.token) if type(told.token) is int else self._exchange(told.token)
        if exchange is None or exchange.answer.done():
            is_old = isinstance(told.token, int) and told.token <= self._last
            self.record.odd("late_progress" if is_old else "unknown_token", f"token {told.token}")
        elif stream is not None and exchange is not stream:
            self.record.odd("foreign_progress", f"token {told.token}")
        elif exchange.listener is not None:
            exchange.listener.progress(told)

    def _says(self, params: Raw, stream: Exchange | None) -> None:
        said = client_reading.said(params)
        if said is None:
            self.record.odd("garbage", "a log message that is none")
            return
        listener = stream.listener if stream else self._only()
        if listener is not None:
            listener.log(said)
        else:
            self.record.heard(f"[{said.level}] {said.text}")

    def _withdrawn(self, params: Raw) -> None:
        """The server takes back a question; on 2026-07-28, a stream of notices that we asked for."""
        named = client_reading.withdrawn(params)
        task = self._asked.pop(named, None) if named is not None else None
        exchange = self._exchange(named)
        if task is not None:
            task.cancel()
        elif (
            exchange is not None and exchange.method == "subscriptions/listen" and not exchange.answer.done()
        ):
            exchange.answer.set_exception(Fault(0, "the server ended the stream"))

    def _asks(self, message: Envelope, stream: Exchange | None) -> None:
        assert isinstance(message.id, int | str)
        if message.method == "ping":
            self._send(client.reply(message.id, {}))
            return
        if message.id in self._asked:
            self._send(client.refusal(message.id, Fault(INVALID_REQUEST, "this id is still in use")))
            return
        exchange, to = (stream, "") if stream is not None else self._asker()
        if message.method == "roots/list" and stream is None and self._is_young():
            exchange = None  # it would take one caller's folders for everybody's
        if exchange is None or exchange.listener is None or self.tongue.is_modern:
            self._refuse(message)
            return
        work = self._answer(message, exchange, exchange.listener, to)
        task = self._asked[message.id] = asyncio.get_running_loop().create_task(work)
        exchange.asking.add(task)
        task.add_done_callback(exchange.asking.discard)

    async def _answer(self, message: Envelope, exchange: Exchange, listener: Listener, to: str) -> None:
        assert isinstance(message.id, int | str)
        try:
            wish = Wish(str(message.method), message.params)
            asked = client_questions.question(wish, listener.key(), to)
            body = client.reply(message.id, client_questions.answered(asked, await listener.ask(asked)))
        except ToolError as error:
            body = client.refusal(message.id, client_questions.refused(error))
        except Fault as fault:
            body = client.refusal(message.id, fault)
        except asyncio.CancelledError:
            if self._asked.pop(message.id, None) is None or self.lost is not None:
                raise  # the server itself took it back
            self._send(client.refusal(message.id, Fault(-32800, "the call is over")))
            raise
        self._asked.pop(message.id, None)
        if exchange.tape is not None:
            exchange.tape("out", body)
        self._send(body)

    def _is_young(self) -> bool:
        return self.is_shared and asyncio.get_running_loop().time() - self.greeted < YOUNG_S

    def _refuse(self, message: Envelope) -> None:
        assert isinstance(message.id, int | str)
        if message.method == "roots/list" and not self.tongue.is_modern:
            self._send(client.reply(message.id, {"roots": []}))  # asked by servers as they start
            return
        self.record.odd("unexpected_request", str(message.method))
        if not (self.carrier.has_streams and self.tongue.is_modern):
            self._send(client.refusal(message.id, Fault(METHOD_NOT_FOUND, "there is nobody to ask")))

    def _exchange(self, named: object) -> Exchange | None:
        """A request of ours by its id, which some servers give back as a text."""
        if isinstance(named, str) and named.isascii() and named.isdigit():
            named = int(named)
        return self._exchanges.get(named) if isinstance(named, int) else None

    def _only(self) -> Listener | None:
        """The one call on its way, if there is only one."""
        found = self._working()
        return found[0].listener if len(found) == 1 else None

    def _asker(self) -> tuple[Exchange | None, str]:
        """Whose question it must be that came without a stream: the newest's; sure if one caller's."""
        found = self._working()
        callers = {one.listener.caller if one.listener else None for one in found}
        return (found[-1] if found else None), "" if len(callers) == 1 else "operator"

    def _working(self) -> list[Exchange]:
        return [one for one in self._exchanges.values() if one.listener or one.method in WORKING]
