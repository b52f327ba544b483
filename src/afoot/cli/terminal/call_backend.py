"""`CallBackend` makes calls for the terminal: at a running gateway, or in this process.

`GatewayBackend` uses the HTTP API. `InProcessBackend` runs a gateway in a thread, with its history in
memory (`afoot call --target`).
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import msgspec

from afoot.cli.client import LOST, USAGE, CliError, GatewayClient, path_segment, read_events
from afoot.cli.terminal.live.event_thread import StreamItem
from afoot.cli.terminal.live.live_state import LiveSnapshot
from afoot.core.facts import Entry, Fact, Finished, Reading
from afoot.errors import AfootError, AlreadyAnswered, CallerError, IllegalFact, ToolError, UnknownName
from afoot.serve.api.views import ReadingEvent

T = TypeVar("T")
FactOrReading = Fact | Reading
RETRY_S = 5.0  # how long a broken stream is opened again
SNAPSHOT_PERIOD_S = 1.0

_entry_decoder = msgspec.json.Decoder(Entry)
_reading_decoder = msgspec.json.Decoder(ReadingEvent)
_snapshot_decoder = msgspec.json.Decoder(LiveSnapshot)


class NewCall(msgspec.Struct, frozen=True):
    """A call to be made."""

    tool: str
    arguments: dict[str, Any]
    idle_s: float | None = None
    ceiling_s: float | None = None


class CallBackend(Protocol):
    """Makes and follows calls. Every method raises CliError."""

    def tool(self, name: str) -> dict[str, Any]: ...

    def start(self, new_call: NewCall) -> Iterator[StreamItem]:
        """Start the call now; its events come from the iterator, which another thread may read."""
        ...

    def answer(self, question: str, action: str, content: object) -> None: ...

    def cancel(self, call: str, reason: str) -> None: ...

    def snapshots(self) -> Iterator[StreamItem]:
        """All live calls, again and again; another thread reads them."""
        ...


class GatewayBackend:
    """Makes calls at a running gateway."""

    def __init__(self, client: GatewayClient) -> None:
        self._client = client

    def tool(self, name: str) -> dict[str, Any]:
        return self._client.get(f"/api/tools/{path_segment(name)}")

    def start(self, new_call: NewCall) -> Iterator[StreamItem]:
        body = {key: value for key, value in msgspec.to_builtins(new_call).items() if value is not None}
        response = self._client.open_stream("POST", "/api/calls", body)
        call = (response.getheader("location") or "").rpartition("/")[2]
        return self._items(call, response)

    def follow(self, call: str) -> Iterator[StreamItem]:
        """The events of a call from its beginning."""
        return self._items(call, self._client.open_stream("GET", f"/api/calls/{path_segment(call)}/events"))

    def answer(self, question: str, action: str, content: object) -> None:
        body = {"action": action} if content is None else {"action": action, "content": content}
        self._client.post(f"/api/questions/{path_segment(question)}/answer", body)

    def cancel(self, call: str, reason: str) -> None:
        self._client.post(f"/api/calls/{path_segment(call)}/cancel", {"reason": reason})

    def snapshots(self) -> Iterator[StreamItem]:
        return _poll_snapshots(lambda: self._client.fetch("/api/snapshot"))

    def _items(self, call: str, response: Any) -> Iterator[StreamItem]:
        """The events of a call; a broken stream is opened again where it broke off."""
        last, last_event_at = "", time.monotonic()
        while True:
            for event in read_events(response):
                last_event_at = time.monotonic()
                if event.event == "reading":
                    yield _reading_decoder.decode(event.data)
                elif event.event == "fact":
                    last = event.id
                    entry = _entry_decoder.decode(event.data)
                    yield entry
                    if type(entry.fact) is Finished:
                        return
            if time.monotonic() - last_event_at > RETRY_S:
                raise CliError(LOST, f"the gateway at {self._client.url} no longer tells of it")
            time.sleep(0.2)
            response = self._client.open_stream("GET", f"/api/calls/{path_segment(call)}/events", last=last)


class InProcessBackend:
    """Makes calls at a gateway in this process, with its history in memory; `with` opens and closes it."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event = asyncio.Event()
        self._ready: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run_thread, daemon=True, name="afoot-local")
        self._gateway: Any = None  # a Gateway; importing its type would import pydantic

    def __enter__(self) -> "InProcessBackend":
        self._thread.start()
        try:
            self._gateway = self._ready.result()
        except AfootError as error:
            raise CliError(USAGE, str(error)) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2.0)

    def tool(self, name: str) -> dict[str, Any]:
        from afoot.serve.api.tools import tool_view

        return msgspec.to_builtins(tool_view(self._run_in_loop(self._find_tool(name))))

    def start(self, new_call: NewCall) -> Iterator[StreamItem]:
        options = {
            "idle_s": new_call.idle_s, "ceiling_s": new_call.ceiling_s, "caller": "operator", "can_ask": True,
        }  # fmt: skip
        call, first, following = self._run_in_loop(self._submit(new_call, options))
        return self._items(call, first, following)

    def answer(self, question: str, action: str, content: object) -> None:
        async def answer() -> None:
            self._gateway.answer(question, content, action=action)

        self._run_in_loop(answer())

    def cancel(self, call: str, reason: str) -> None:
        async def cancel() -> None:
            self._gateway.cancel(call, reason)

        self._run_in_loop(cancel())

    def snapshots(self) -> Iterator[StreamItem]:
        return _poll_snapshots(lambda: self._run_in_loop(self._snapshot_body()))

    async def _snapshot_body(self) -> bytes:
        from afoot.serve.api.views import call_view_with_forecast, encode_json

        engine = self._gateway.engine
        now = engine.clock.now()
        return encode_json(
            {"now": now, "calls": [call_view_with_forecast(engine, live, now) for live in engine.calls()]}
        )

    async def _find_tool(self, name: str) -> Any:
        try:
            return self._gateway.engine.catalog.get(name)[1]
        except UnknownName as error:
            failed = [one.error for one in self._gateway.servers.list() if one.error]
            raise CallerError("; ".join([str(error), *failed])) from None

    async def _submit(
        self, new_call: NewCall, options: dict[str, Any]
    ) -> tuple[str, FactOrReading, AsyncIterator[FactOrReading]]:
        """Start the call and follow it in one step, so that no report is missed."""
        call = self._gateway.submit(new_call.tool, new_call.arguments, **options)
        following = self._gateway.follow(call)
        return call, await anext(following), following

    async def _eta(self, call: str) -> Any:
        from afoot.serve.api.views import call_eta

        engine = self._gateway.engine
        return call_eta(engine, engine[call], engine.clock.now()) if call in engine else None

    def _items(
        self, call: str, item: FactOrReading, following: AsyncIterator[FactOrReading]
    ) -> Iterator[StreamItem]:
        seq = 0
        while True:
            if isinstance(item, Reading):
                yield ReadingEvent(call, item, eta=self._run_in_loop(self._eta(call)))
            else:
                seq += 1
                yield Entry(call, seq, item)
            try:
                item = self._run_in_loop(_advance(following))
            except StopAsyncIteration:
                return

    def _run_in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (AlreadyAnswered, IllegalFact) as error:
            raise CliError(USAGE, str(error), status=409) from None
        except ToolError as error:
            raise CliError(USAGE, error.message, status=422) from None
        except AfootError as error:
            raise CliError(USAGE, str(error)) from None

    def _run_thread(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        import logging

        from msgspec.structs import replace

        from afoot.config.settings import load_settings
        from afoot.gateway import MEMORY, Gateway

        logging.getLogger("afoot").addHandler(logging.NullHandler())  # the view shows errors
        settings = replace(load_settings(flags={"store": MEMORY}).settings, mcp_servers=[], servers={})
        async with Gateway(self._target, settings=settings) as gateway:
            await gateway.servers.wait_until_opened(settings.start_limit_s)
            self._ready.set_result(gateway)
            await self._stop.wait()


def _poll_snapshots(look: Callable[[], bytes]) -> Iterator[LiveSnapshot]:
    """A snapshot per second; less often if one takes long (at most a twentieth of the time)."""
    pause_s = SNAPSHOT_PERIOD_S
    while True:
        time.sleep(pause_s)
        began = time.monotonic()
        yield _snapshot_decoder.decode(look())
        pause_s = max(SNAPSHOT_PERIOD_S, 20 * (time.monotonic() - began))


async def _advance(following: AsyncIterator[FactOrReading]) -> FactOrReading:
    return await anext(following)
