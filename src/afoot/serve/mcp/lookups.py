"""`serve_lookup` answers a request for a resource, a prompt or a completion by asking its server.

A lookup starts no call, but it has a time limit, and ends when its caller leaves. A server may ask the caller
meanwhile: in 2026-07-28 by a round, in the handshake era by a request of ours.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Raw, UnsetType

from afoot.core.facts import Answer, Question
from afoot.engine.followers import Wakeup
from afoot.errors import AfootError
from afoot.serve.gateway_state import GatewayState, unknown_key
from afoot.serve.mcp.streams import ResponseStream, finish_within_bound
from afoot.serve.resources import ServerResources
from afoot.wire import resources as wire
from afoot.wire import results, sealed_state
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Envelope, Fault, Id
from afoot.wire.mcp_2026 import MISSING_CAPABILITY, PlainParams
from afoot.wire.resources import JsonObject, Lookup

MAX_ROUNDS = 10  # as often as official clients answer
STATE_ONLY_S = 0.2  # before a server is asked again that wants its state back, and asks nothing

Ask = Callable[[str, object], Awaitable[JsonObject]]
_NO_COMPLETION: JsonObject = {"completion": {"values": [], "total": 0, "hasMore": False}}


def read_lookup(message: Envelope, asked: PlainParams, caller: str) -> Lookup:
    """Read the lookup out of a checked request of 2026-07-28; raises Fault."""
    assert not isinstance(asked.meta, UnsetType) and not isinstance(asked.meta.capabilities, UnsetType)
    return wire.read_lookup(message, caller, asked.meta.capabilities)


async def serve_lookup(
    gateway: GatewayState,
    request_id: Id,
    caller: str,
    stream: ResponseStream,
    wakeup: Wakeup,
    work: Coroutine[Any, Any, bytes],
) -> None:
    """Send the result of this work; stop it when its caller leaves or the wakeup is closed. Raises Fault."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _: wakeup.wake())
    stream.watch(wakeup.wake)
    gateway.wakeups.append(wakeup)
    try:
        await _wait(gateway, task, stream, wakeup)
    finally:
        gateway.wakeups.remove(wakeup)
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=gateway.settings.cancel_grace_s)
    if wakeup.closed or stream.gone:
        await stream.finish((), None)
        return
    try:
        last = task.result() if task.done() and not task.cancelled() else _raise_closing(gateway)
    except Fault as fault:
        if not stream.streaming:
            raise
        last = results.error_response(fault, request_id)
    await finish_within_bound(stream, last, gateway.unread, caller)


async def answer_lookup_2026(gateway: GatewayState, lookup: Lookup) -> bytes:
    """The answer for a caller of 2026-07-28: the result, or a round whose state holds the server's own."""
    search = _ServerSearch(gateway, lookup)
    if lookup.state is None:
        found, inner = await search.find(), None
    else:
        found, inner = await _unseal(gateway, lookup)
    server, result = await search.fetch(found, lookup.answers, inner)
    if result.get("resultType", "complete") != "input_required":
        return wire.lookup_result_2026(lookup, gateway.info, result)
    if lacking := wire.missing_capabilities(_requests(server, result), lookup.capabilities):
        text = f"server {server.name} asks for what this client does not offer: {', '.join(sorted(lacking))}"
        raise Fault(MISSING_CAPABILITY, text, data={"requiredCapabilities": lacking})
    inner = result.get("requestState")
    key = gateway.sealing_key()
    expires = gateway.engine.clock.now() + gateway.settings.answer_s + gateway.settings.ceiling_s
    state = sealed_state.LookupState(
        server.name, inner if isinstance(inner, str) else None, lookup.caller, lookup.digest(), expires
    )
    sealed = sealed_state.seal_lookup_state(state, key.secret, key.id)
    return wire.lookup_round_2026(lookup, gateway.info, result, sealed)


async def answer_lookup_2025(gateway: GatewayState, lookup: Lookup, ask: Ask) -> bytes:
    """The answer for a caller of the handshake era; questions of the server are asked before it."""
    search = _ServerSearch(gateway, lookup, ask)
    found = await search.find()
    server, result = await search.fetch(found, {}, None)
    for _ in range(MAX_ROUNDS):
        if result.get("resultType", "complete") != "input_required":
            return wire.lookup_result_2025(lookup, result)
        answers = await _ask_all(gateway, lookup, server, _requests(server, result), ask)
        if not answers:
            await asyncio.sleep(STATE_ONLY_S)
        inner = result.get("requestState")
        state = inner if isinstance(inner, str) else None
        server, result = await search.fetch([one for one in found if one[0] is server], answers, state)
    raise Fault(
        INTERNAL_ERROR, f"server {server.name} asked {MAX_ROUNDS} times and gave no answer", status=200
    )


async def fetch_lookup(gateway: GatewayState, lookup: Lookup) -> JsonObject:
    """The result of a lookup for a caller that cannot be asked anything; raises Fault."""
    search = _ServerSearch(gateway, lookup)
    return (await search.fetch(await search.find(), {}, None))[1]


class _ServerSearch:
    """One lookup at the servers that may know the answer, and the time that is left for it."""

    def __init__(self, gateway: GatewayState, lookup: Lookup, ask: Ask | None = None) -> None:
        """`ask`: how a caller of the handshake era is asked; one of 2026-07-28 has a round for that."""
        self._gateway = gateway
        self._lookup = lookup
        self._ask = ask
        self._left_s = gateway.settings.ceiling_s
        self._asking = 0

    async def find(self) -> list[tuple[ServerResources, str]]:
        """The servers to ask, and the name that each has for it; raises Fault."""
        catalog = self._gateway.resource_catalog
        if not catalog.is_known:
            await self._gateway.wait_until_servers_ready()  # a server that is just being opened may have it
        try:
            return catalog.find(self._lookup)
        except Fault as fault:
            raise self._translate(fault, "") from None

    async def fetch(
        self, found: list[tuple[ServerResources, str]], answers: JsonObject, state: str | None
    ) -> tuple[ServerResources, JsonObject]:
        """The answer of the first of these that knows what is looked up; raises Fault."""
        for server, name in found:
            try:
                return server, await self._request(server, self._lookup.server_params(name, answers, state))
            except Fault as fault:
                if len(found) == 1 or not wire.is_unknown_resource(fault):
                    raise self._translate(fault, server.name) from None
        raise self._translate(self._gateway.resource_catalog.unknown(self._lookup.subject), "")

    def _translate(self, fault: Fault, server: str) -> Fault:
        uri = self._lookup.subject if self._lookup.method == "resources/read" else None
        return wire.translate_fault(fault, server, modern=self._ask is None, uri=uri)

    async def _request(self, server: ServerResources, params: JsonObject) -> JsonObject:
        lookup, can = self._lookup, server.capabilities
        if lookup.method == "completion/complete" and can and "completions" not in can:
            return _NO_COMPLETION
        limit = asyncio.timeout(self._left_s)
        ask = None if self._ask is None else partial(self._ask_caller, server, limit, self._ask)
        try:
            async with limit:
                return await server.request(lookup.method, params, lookup.caller, ask)
        except TimeoutError:
            within = f"within {self._gateway.settings.ceiling_s:g} s (raise ceiling_s)"
            text = f"server {server.name} did not answer {lookup.method} {within}"
            raise Fault(INTERNAL_ERROR, text) from None
        except (AfootError, OSError) as error:
            raise Fault(INTERNAL_ERROR, f"server {server.name}: {error}") from None
        finally:
            self._left_s = max(0.0, (limit.when() or 0.0) - asyncio.get_running_loop().time())

    async def _ask_caller(
        self, server: ServerResources, limit: asyncio.Timeout, ask: Ask, question: Question
    ) -> Answer:
        """Pass a server's question to the caller; the time limit stops until it is answered (C6)."""
        if question.to == "operator":  # it may belong to somebody else's call
            return Answer("decline", by="engine")
        method, body = results.question_params(question)
        loop = asyncio.get_running_loop()
        self._asking += 1
        if self._asking == 1:
            self._left_s = (limit.when() or 0.0) - loop.time()
            limit.reschedule(None)
        try:
            asked: dict[str, JsonObject] = {question.key: {"method": method, "params": body}}
            given = await _ask_all(self._gateway, self._lookup, server, asked, ask)
            return results.read_answer(
                question, Raw(results.encode(given[question.key])), self._lookup.caller
            )
        finally:
            self._asking -= 1
            if not self._asking:
                with suppress(RuntimeError):  # the request is over, and its clock with it
                    limit.reschedule(loop.time() + self._left_s)


async def _wait(
    gateway: GatewayState, task: asyncio.Task[bytes], stream: ResponseStream, wakeup: Wakeup
) -> None:
    """Wait for the task and keep the stream alive, until the caller leaves or the gateway closes."""
    clock, settings = gateway.engine.clock, gateway.settings
    pause = settings.sse_after_s
    while not (task.done() or wakeup.closed or stream.gone):
        timer = clock.at(clock.now() + pause, wakeup.wake)
        await wakeup.wait()
        timer.cancel()
        if gateway.engine.closing is not None:
            return
        if not (task.done() or wakeup.closed or stream.gone):
            await stream.keep_alive()
            pause = settings.keepalive_s


def _raise_closing(gateway: GatewayState) -> bytes:
    raise Fault(INTERNAL_ERROR, gateway.engine.closing or "the gateway is shutting down", status=503)


async def _unseal(
    gateway: GatewayState, lookup: Lookup
) -> tuple[list[tuple[ServerResources, str]], str | None]:
    """The server that a retry goes to, with the name it has for it, and its own state; raises Fault."""
    sealed = lookup.state or ""
    key = await gateway.key_of(sealed)
    if key is None:
        raise unknown_key()
    state = sealed_state.unseal_lookup_state(sealed, key, gateway.engine.clock.now())
    sealed_state.check_binding(state, lookup.caller, lookup.digest())
    server = gateway.resource_catalog.get(state.server)
    if server is None:
        raise Fault(INVALID_PARAMS, f"params.requestState: server {state.server} is not there any more")
    names = [name for one, name in gateway.resource_catalog.find(lookup) if one is server]
    return [(server, names[0] if names else lookup.subject)], state.state


async def _ask_all(
    gateway: GatewayState, lookup: Lookup, server: ServerResources, asked: dict[str, JsonObject], ask: Ask
) -> JsonObject:
    """The caller's answers to a server; raises Fault if it cannot be asked, or does not answer in time."""
    if lacking := wire.missing_capabilities(asked, lookup.capabilities):
        names = ", ".join(sorted(lacking))
        text = f"server {server.name} asks for what this client did not offer at initialize: {names}"
        raise Fault(INTERNAL_ERROR, text, status=200)
    answer_s = gateway.settings.answer_s
    try:
        async with asyncio.timeout(answer_s):
            given = await asyncio.gather(
                *(ask(str(one["method"]), one.get("params") or {}) for one in asked.values())
            )
    except TimeoutError:
        text = f"server {server.name} asked the client, which did not answer within {answer_s:g} s (answer_s)"
        raise Fault(INTERNAL_ERROR, text, status=200) from None
    return dict(zip(asked, given, strict=True))


def _requests(server: ServerResources, result: JsonObject) -> dict[str, JsonObject]:
    try:
        return wire.input_requests(result)
    except Fault as fault:
        raise Fault(INTERNAL_ERROR, f"server {server.name}: {fault.message}", status=200) from None
