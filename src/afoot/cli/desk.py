"""Where a call is made: at a running gateway, or in this very process."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import msgspec

from afoot.cli.client import Client, events, part
from afoot.cli.ending import LOST, USAGE, Stop
from afoot.cli.pump import Item
from afoot.core.facts import Entry, Fact, Finished, Reading
from afoot.errors import AfootError, AlreadyAnswered, IllegalFact, ToolError
from afoot.observe.scene import Snapshot
from afoot.serve.view import ReadingEvent

T = TypeVar("T")
Told = Fact | Reading
RETRY_S = 5.0
AROUND_S = 1.0

_entry = msgspec.json.Decoder(Entry)
_reading = msgspec.json.Decoder(ReadingEvent)
_snapshot = msgspec.json.Decoder(Snapshot)


class Wanted(msgspec.Struct, frozen=True):
    """A call to make."""

    tool: str
    arguments: dict[str, Any]
    idle_s: float | None = None
    ceiling_s: float | None = None


class Desk(Protocol):
    """What making a call needs. Everything raises Stop."""

    def tool(self, name: str) -> dict[str, Any]: ...

    def start(self, want: Wanted) -> Iterator[Item]:
        """Start the call now; what it tells comes from the iterator, which another thread may read."""
        ...

    def answer(self, question: str, action: str, content: object) -> None: ...

    def cancel(self, call: str, reason: str) -> None: ...

    def around(self) -> Iterator[Item]:
        """What lives, again and again; another thread reads it."""
        ...


class Remote:
    """A running gateway."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def tool(self, name: str) -> dict[str, Any]:
        return self._client.get(f"/api/tools/{part(name)}")

    def start(self, want: Wanted) -> Iterator[Item]:
        body = {key: value for key, value in msgspec.to_builtins(want).items() if value is not None}
        response = self._client.open("POST", "/api/calls", body)
        call = (response.getheader("location") or "").rpartition("/")[2]
        return self._items(call, response)

    def follow(self, call: str) -> Iterator[Item]:
        """Follow a call from its beginning."""
        return self._items(call, self._client.open("GET", f"/api/calls/{part(call)}/events"))

    def answer(self, question: str, action: str, content: object) -> None:
        body = {"action": action} if content is None else {"action": action, "content": content}
        self._client.post(f"/api/questions/{part(question)}/answer", body)

    def cancel(self, call: str, reason: str) -> None:
        self._client.post(f"/api/calls/{part(call)}/cancel", {"reason": reason})

    def around(self) -> Iterator[Item]:
        return _again(lambda: self._client.fetch("/api/snapshot"))

    def _items(self, call: str, response: Any) -> Iterator[Item]:
        """The call's events; a stream that is cut off is taken up again where it was."""
        last, tried = "", time.monotonic()
        while True:
            for event in events(response):
                tried = time.monotonic()
                if event.event == "reading":
                    yield _reading.decode(event.data)
                elif event.event == "fact":
                    last = event.id
                    entry = _entry.decode(event.data)
                    yield entry
                    if type(entry.fact) is Finished:
                        return
            if time.monotonic() - tried > RETRY_S:
                raise Stop(LOST, f"the gateway at {self._client.url} no longer tells of it")
            time.sleep(0.2)
            response = self._client.open("GET", f"/api/calls/{part(call)}/events", last=last)


class Local:
    """A gateway in this process, with its history in memory; opened and closed by `with`."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Event = asyncio.Event()
        self._ready: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name="afoot-local")
        self._gateway: Any = None  # importing its type would import pydantic

    def __enter__(self) -> "Local":
        self._thread.start()
        try:
            self._gateway = self._ready.result()
        except AfootError as error:
            raise Stop(USAGE, str(error)) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(2.0)

    def tool(self, name: str) -> dict[str, Any]:
        from afoot.serve.tools import view

        return msgspec.to_builtins(view(self._do(self._find(name))))

    def start(self, want: Wanted) -> Iterator[Item]:
        options = {
            "idle_s": want.idle_s, "ceiling_s": want.ceiling_s, "caller": "operator", "can_ask": True,
        }  # fmt: skip
        call, first, following = self._do(self._submit(want, options))
        return self._items(call, first, following)

    def answer(self, question: str, action: str, content: object) -> None:
        async def answer() -> None:
            self._gateway.answer(question, content, action=action)

        self._do(answer())

    def cancel(self, call: str, reason: str) -> None:
        async def cancel() -> None:
            self._gateway.cancel(call, reason)

        self._do(cancel())

    def around(self) -> Iterator[Item]:
        return _again(lambda: self._do(self._present()))

    async def _present(self) -> bytes:
        from afoot.serve.forecast import foreseen
        from afoot.serve.view import encode

        engine = self._gateway.engine
        now = engine.clock.now()
        return encode({"now": now, "calls": [foreseen(engine, live, now) for live in engine.calls()]})

    async def _find(self, name: str) -> Any:
        return self._gateway.engine.catalog.get(name)[1]

    async def _submit(self, want: Wanted, options: dict[str, Any]) -> tuple[str, Told, AsyncIterator[Told]]:
        """Start the call and follow it in one go: it cannot report before somebody listens."""
        call = self._gateway.submit(want.tool, want.arguments, **options)
        following = self._gateway.follow(call)
        return call, await anext(following), following

    async def _eta(self, call: str) -> Any:
        from afoot.serve.forecast import forecast

        engine = self._gateway.engine
        return forecast(engine, engine[call], engine.clock.now()) if call in engine else None

    def _items(self, call: str, item: Told, following: AsyncIterator[Told]) -> Iterator[Item]:
        seq = 0
        while True:
            if isinstance(item, Reading):
                yield ReadingEvent(call, item, eta=self._do(self._eta(call)))
            else:
                seq += 1
                yield Entry(call, seq, item)
            try:
                item = self._do(_next(following))
            except StopAsyncIteration:
                return

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except (AlreadyAnswered, IllegalFact) as error:
            raise Stop(USAGE, str(error), status=409) from None
        except ToolError as error:
            raise Stop(USAGE, error.message, status=422) from None
        except AfootError as error:
            raise Stop(USAGE, str(error)) from None

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        import logging

        from msgspec.structs import replace

        from afoot.config import load
        from afoot.gateway import MEMORY, Gateway

        logging.getLogger("afoot").addHandler(logging.NullHandler())  # the screen says what went wrong
        settings = replace(load(flags={"store": MEMORY}).settings, mcp_servers=[], servers={})
        async with Gateway(self._target, settings=settings) as gateway:
            await gateway.servers.settled(settings.start_limit_s)
            self._ready.set_result(gateway)
            await self._stop.wait()


def _again(look: Callable[[], bytes]) -> Iterator[Snapshot]:
    """What a look finds, once a second; where looking takes long, less often."""
    pause_s = AROUND_S
    while True:
        time.sleep(pause_s)
        began = time.monotonic()
        yield _snapshot.decode(look())
        pause_s = max(AROUND_S, 20 * (time.monotonic() - began))


async def _next(following: AsyncIterator[Told]) -> Told:
    return await anext(following)
