"""Servers of the test that offer more than tools, and the callers that ask for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from afoot.serve.gateway_state import GatewayState
from afoot.serve.resources import AskCaller
from afoot.wire.jsonrpc import Fault
from tests.serve.fake_gateway import Client, Message, nap, site_of
from tests.serve.raw_transports import hello, modern

Answering = Callable[[str, Message], Message | Awaitable[Message]]
PROMPT: Message = {"messages": [], "description": "done"}
EVERYTHING: Message = {"resources": {"subscribe": True}, "prompts": {}, "completions": {}}


class Rack:
    """A server that holds what it is given, keeps what it was asked, and tells when it is told to."""

    def __init__(self, name: str, answering: Answering | None = None, **holds: Any) -> None:
        """Holds: `prompts` and `resources` by name, `templates`, `capabilities`."""
        self.name = name
        self.state = "ready"
        self.capabilities: Mapping[str, object] = holds.get("capabilities", EVERYTHING)
        self.prompts: list[Message] = [{"name": one, "title": name} for one in holds.get("prompts", ())]
        self.resources: list[Message] = [{"uri": one, "name": name} for one in holds.get("resources", ())]
        self.templates: list[Message] = [
            {"uriTemplate": one, "name": name} for one in holds.get("templates", ())
        ]
        self.asked: list[tuple[str, Message, str]] = []
        self.subscribed: list[str] = []  # "+uri" and "-uri", as they came
        self.cancelled = 0
        self.ask: AskCaller | None = None
        self.delay_s = 0.0
        self._answering = answering or (lambda method, params: {"from": name})
        self._callbacks: list[Callable[[str, str | None], object]] = []

    async def request(
        self, method: str, params: Message, caller: str = "", ask: AskCaller | None = None
    ) -> Message:
        """Answer as the test wants."""
        self.asked.append((method, params, caller))
        self.ask = ask
        try:
            await asyncio.sleep(self.delay_s)
            found = self._answering(method, params)
            return found if isinstance(found, dict) else await found
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def listen(self, callback: Callable[[str, str | None], object]) -> Callable[[], None]:
        """Be told."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._callbacks)

    def tell(self, kind: str, uri: str | None = None) -> None:
        """Something changed."""
        for callback in list(self._callbacks):
            callback(kind, uri)

    async def subscribe(self, uri: str) -> None:
        """Note it; what begins with `deaf:` cannot be watched."""
        await asyncio.sleep(self.delay_s)
        if uri.startswith("deaf:"):
            raise Fault(-32602, "nobody can")
        self.subscribed.append(f"+{uri}")

    async def unsubscribe(self, uri: str) -> None:
        """Note it."""
        await asyncio.sleep(self.delay_s)
        self.subscribed.append(f"-{uri}")


@asynccontextmanager
async def site_with(*racks: Rack, **settings: object) -> AsyncIterator[GatewayState]:
    """A site in front of these servers."""
    async with site_of(nap, settings=settings) as gateway:
        gateway.resource_servers = lambda: racks
        yield gateway


def get(name: str, id: int | str = 1, **more: Any) -> Message:
    """A `prompts/get` of 2026-07-28; more: params, or `capabilities`."""
    can = {"capabilities": more.pop("capabilities")} if "capabilities" in more else {}
    return modern("prompts/get", {"name": name, **more}, id, **can)


def read(uri: str, id: int | str = 1) -> Message:
    """A `resources/read` of 2026-07-28."""
    return modern("resources/read", {"uri": uri}, id)


def asks(*keys: str, state: str | None = "inner", method: str = "elicitation/create") -> Message:
    """A server's result that asks for these."""
    schema: Message = {"type": "object", "properties": {}}
    form: Message = {"mode": "form", "message": "well?", "requestedSchema": schema}
    body = form if method == "elicitation/create" else {}
    found: Message = {"resultType": "input_required", "_meta": {"io.modelcontextprotocol/serverInfo": {}}}
    if keys:
        found["inputRequests"] = {key: {"method": method, "params": body} for key in keys}
    return found if state is None else {**found, "requestState": state}


class Rounds:
    """Asks for these keys, one round each, then answers; keeps what it was told."""

    def __init__(self, *rounds: Message) -> None:
        self._rounds = list(rounds)
        self.seen: list[Message] = []

    def __call__(self, method: str, params: Message) -> Message:
        self.seen.append(params)
        return self._rounds.pop(0) if self._rounds else {**PROMPT, "resultType": "complete"}


async def opened(gateway: Any, **capabilities: object) -> Client:
    """A client of the handshake era."""
    client = Client(gateway)
    await client.ask(hello(**capabilities))
    return client
