"""A site with one tool of the test on the fake clock, and callers that keep what they are sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from afoot.config.settings import Settings
from afoot.core.facts import Answer, Question, Result
from afoot.core.ports import CallOrigin, Run
from afoot.engine.live_call import LiveCall
from afoot.serve.gateway_state import GatewayState
from afoot.serve.mcp.call_request import CallRequest, Era
from afoot.serve.mcp.era_2025 import Era2025
from afoot.serve.mcp.era_2026 import Era2026
from afoot.serve.mcp.pending import PendingRequests
from afoot.testing import run
from afoot.wire import jsonrpc
from afoot.wire.results import Capabilities, ToolCall
from tests.engine.fake_engine import Body, engine_of, form, text

Message = dict[str, Any]
KEY = b"k" * 32
TOKEN = "the operator's secret"
ANYTHING = Capabilities({}, {}, {})
YES: Message = {"action": "accept", "content": {}}


def faked(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test on the fake clock."""

    @wraps(test)
    def outer(*args: Any, **named: Any) -> None:
        run(test(*args, **named))

    return outer


@asynccontextmanager
async def site_of(
    body: Body, *, settings: Mapping[str, object] | None = None, **options: Any
) -> AsyncIterator[GatewayState]:
    """A site with one tool, "tool"; options are those of `Tool`, or `journal`, `limiter`, `slots`."""
    async with engine_of(body, **options) as engine:
        yield GatewayState(engine, msgspec.convert(dict(settings or {}), Settings), "1", KEY, TOKEN)


def now() -> float:
    """Seconds since the test began."""
    return round(asyncio.get_running_loop().time(), 3)


class Tape:
    """An outlet that keeps what is sent, and when. Each send takes `slow_s`; `streaming` as on a pipe."""

    def __init__(self, *, streaming: bool = False, slow_s: float = 0.0) -> None:
        self.gone = False
        self.streaming = streaming
        self.origin = CallOrigin("mcp-http")
        self.slow_s = slow_s
        self.frames: list[tuple[float, Message]] = []
        self.comments: list[float] = []
        self.ended: list[tuple[float, Message | None]] = []  # one finish, and no more
        self._wakes: list[Callable[[], object]] = []

    def watch(self, wake: Callable[[], object]) -> None:
        """Ring when the caller has gone."""
        self._wakes.append(wake)
        if self.gone:
            wake()

    def leave(self) -> None:
        """The caller goes away."""
        self.gone = True
        for wake in self._wakes:
            wake()

    async def send(self, frames: Sequence[bytes]) -> None:
        assert not self.ended, "nothing follows the last frame"
        self.streaming = True
        self.frames += [(now(), json.loads(frame)) for frame in frames]
        await asyncio.sleep(self.slow_s)

    async def finish(self, frames: Sequence[bytes], last: bytes | None) -> None:
        assert not self.ended, "a request has one end"
        self.frames += [(now(), json.loads(frame)) for frame in frames]
        self.ended.append((now(), None if last is None else json.loads(last)))
        await asyncio.sleep(self.slow_s)

    async def keep_alive(self) -> None:
        self.streaming = True
        self.comments.append(now())

    @property
    def last(self) -> Message:
        """The last frame."""
        assert self.ended and self.ended[0][1] is not None, "there was no last frame"
        return self.ended[0][1]

    @property
    def result(self) -> Message:
        """The result in it."""
        found: Message = self.last["result"]
        return found

    @property
    def state(self) -> str:
        """The state of the round that it is."""
        assert self.result["resultType"] == "input_required", self.result
        return str(self.result["requestState"])

    @property
    def progress(self) -> list[Message]:
        """The params of every progress notification."""
        return [sent["params"] for _, sent in self.of("notifications/progress")]

    @property
    def numbers(self) -> list[tuple[float, float | None]]:
        """Progress and total of each."""
        return [(params["progress"], params.get("total")) for params in self.progress]

    @property
    def notices(self) -> list[tuple[float, str]]:
        """When the engine spoke, and what it said."""
        found = self.of("notifications/progress")
        return [(at, sent["params"]["message"]) for at, sent in found if source(sent) == "engine"]

    def of(self, method: str) -> list[tuple[float, Message]]:
        """The frames of one method."""
        return [(at, sent) for at, sent in self.frames if sent.get("method") == method]


def source(sent: Message) -> str:
    """Who speaks in a progress notification."""
    meta: Message = sent["params"].get("_meta", {}).get("dev.afoot/progress", {})
    return str(meta.get("source", "tool"))


def wanted(**parts: Any) -> ToolCall:
    """A call of "tool" by a caller that can be asked everything; parts are those of `Wanted`."""
    return replace(ToolCall(1, "tool", Raw(b"{}"), capabilities=ANYTHING), **parts)


def replies(**answers: object) -> dict[str, Raw]:
    """Answers as a retry carries them."""
    return {key: Raw(json.dumps(given).encode()) for key, given in answers.items()}


async def call_request(
    gateway: GatewayState,
    want: ToolCall,
    tape: Tape | None = None,
    era: Era | None = None,
    caller: str = "local",
) -> Tape:
    """One request from its beginning to its last frame."""
    tape = tape or Tape()
    era = era or Era2026(PendingRequests(gateway), caller, capped=True)
    if want.state is None:
        request = CallRequest.opening(gateway, want, caller, tape, era)
    else:
        request = await CallRequest.retrying(gateway, want, caller, tape, era)
    await request.follow()
    return tape


def begin(gateway: GatewayState, want: ToolCall, tape: Tape | None = None) -> "asyncio.Task[Tape]":
    """One request, and do not wait for it."""
    return asyncio.create_task(call_request(gateway, want, tape))


def only(gateway: GatewayState) -> LiveCall:
    """The one call that lives."""
    [live] = gateway.engine.calls()
    return live


async def asks(run: Run) -> str:
    """A tool that asks whether it may, and says what it was told."""
    return said(await run.ask(form("sure")))


def said(answer: Answer) -> str:
    """An answer in a line."""
    return f"{answer.action} {bytes(answer.content).decode()} by {answer.by}"


def question(kind: str, key: str = "k") -> Question:
    """A question that is no form."""
    return Question("", key, kind, "well?", Raw(b'"https://a.example"' if kind == "url" else b"{}"))


async def nap(run: Run) -> Result:
    """A tool that takes ten seconds and says nothing."""
    await asyncio.sleep(10)
    return text("slept")


class Client:
    """A client of the handshake era without a transport: each request has a tape of its own."""

    def __init__(self, gateway: GatewayState, *, dies: bool = False) -> None:
        self.session = Era2025(gateway, "session:1", dies=dies)
        self._tasks: list[asyncio.Task[None]] = []

    def put(self, message: Message, *, streaming: bool = False) -> Tape:
        """Send a request, and do not wait."""
        tape = Tape(streaming=streaming)
        asked = self.session.request(jsonrpc.read(json.dumps(message).encode()), tape)
        self._tasks.append(asyncio.create_task(asked))
        return tape

    async def ask(self, message: Message) -> Tape:
        """Send a request, and wait for its end; raises Fault."""
        tape = self.put(message)
        await self._tasks.pop()
        return tape

    def tell(self, message: Message) -> None:
        """Send a notification, or an answer."""
        read = jsonrpc.read(json.dumps(message).encode())
        (self.session.take_response if read.is_response else self.session.take_notification)(read)

    def answer(self, asked: Message, **result: object) -> None:
        """Answer a request of the server's."""
        self.tell({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    async def done(self) -> None:
        """Wait for every request that was put."""
        await asyncio.gather(*self._tasks)
