"""What is looked up at other servers: it starts no call, but it has a clock, and ends with its caller."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Raw, UnsetType

from afoot.core.facts import Answer, Question
from afoot.engine.bell import Bell
from afoot.errors import AfootError
from afoot.serve.manner import Outlet
from afoot.serve.shelf import Shelf
from afoot.serve.site import Site
from afoot.wire import bookmark, messages
from afoot.wire import shelf as wire
from afoot.wire.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Envelope, Fault, Id
from afoot.wire.mcp import MISSING_CAPABILITY, Plain
from afoot.wire.shelf import Item, Lookup

ROUNDS = 10  # as often as official clients answer
STATE_ONLY_S = 0.2  # before a server is asked again that wants nothing but that

Ask = Callable[[str, object], Awaitable[Item]]
_NO_COMPLETION: Item = {"completion": {"values": [], "total": 0, "hasMore": False}}


def look_up(message: Envelope, asked: Plain, caller: str) -> Lookup:
    """What a checked request of 2026-07-28 looks up; raises Fault."""
    assert not isinstance(asked.meta, UnsetType) and not isinstance(asked.meta.capabilities, UnsetType)
    return wire.read(message, caller, asked.meta.capabilities)


async def hold(site: Site, request: Id, outlet: Outlet, bell: Bell, work: Coroutine[Any, Any, bytes]) -> None:
    """Send what this work comes to, or stop it when its caller goes or the bell cracks; raises Fault."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda _: bell.ring())
    outlet.watch(bell.ring)
    site.bells.append(bell)
    try:
        await _wait(site, task, outlet, bell)
    finally:
        site.bells.remove(bell)
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=site.settings.cancel_grace_s)
    if bell.cracked or outlet.gone:
        await outlet.finish((), None)
        return
    try:
        last = task.result() if task.done() and not task.cancelled() else _closing(site)
    except Fault as fault:
        if not outlet.streaming:
            raise
        last = messages.error(fault, request)
    await outlet.finish((), last)


async def answer_modern(site: Site, lookup: Lookup) -> bytes:
    """What a caller of 2026-07-28 gets: the result, or a round with the server's state inside of ours."""
    search = _Search(site, lookup)
    found, state = _resumed(site, lookup) if lookup.state is not None else (await search.find(), None)
    shelf, result = await search.fetch(found, lookup.answers, state)
    if result.get("resultType", "complete") != "input_required":
        return wire.modern(lookup, site.info, result)
    if lacking := wire.lacking(_requests(shelf, result), lookup.capabilities):
        text = f"server {shelf.name} asks for what this client does not offer: {', '.join(sorted(lacking))}"
        raise Fault(MISSING_CAPABILITY, text, data={"requiredCapabilities": lacking})
    inner = result.get("requestState")
    expires = site.engine.clock.now() + site.settings.answer_s + site.settings.ceiling_s
    slip = bookmark.Slip(
        shelf.name, inner if isinstance(inner, str) else None, lookup.caller, lookup.digest(), expires
    )
    return wire.round_of(lookup, site.info, result, bookmark.seal_slip(slip, site.key))


async def answer_handshake(site: Site, lookup: Lookup, ask: Ask) -> bytes:
    """What a caller of the handshake era gets: what a server wants to know, it is asked meanwhile."""
    search = _Search(site, lookup, ask)
    found = await search.find()
    shelf, result = await search.fetch(found, {}, None)
    for _ in range(ROUNDS):
        if result.get("resultType", "complete") != "input_required":
            return wire.older(lookup, result)
        answers = await _ask_all(site, lookup, shelf, _requests(shelf, result), ask)
        if not answers:
            await asyncio.sleep(STATE_ONLY_S)
        inner = result.get("requestState")
        state = inner if isinstance(inner, str) else None
        shelf, result = await search.fetch([one for one in found if one[0] is shelf], answers, state)
    raise Fault(INTERNAL_ERROR, f"server {shelf.name} asked {ROUNDS} times and gave no answer", status=200)


class _Search:
    """What was looked up where, and how long that may still take."""

    def __init__(self, site: Site, lookup: Lookup, ask: Ask | None = None) -> None:
        """`ask`: how a caller of the handshake era is asked; one of 2026-07-28 has a round for that."""
        self._site = site
        self._lookup = lookup
        self._ask = ask
        self._left_s = site.settings.ceiling_s
        self._asking = 0

    async def find(self) -> list[tuple[Shelf, str]]:
        """Whom to ask, and for what; raises Fault."""
        library = self._site.library
        if not library.is_known:
            await self._site.settled()  # a server that is just being opened may have it
        try:
            return library.find(self._lookup)
        except Fault as fault:
            raise self._told(fault, "") from None

    async def fetch(
        self, found: list[tuple[Shelf, str]], answers: Item, state: str | None
    ) -> tuple[Shelf, Item]:
        """The answer of the first of these that knows what is looked up; raises Fault."""
        for shelf, name in found:
            try:
                return shelf, await self._request(shelf, self._lookup.body(name, answers, state))
            except Fault as fault:
                if len(found) == 1 or not wire.is_unknown(fault):
                    raise self._told(fault, shelf.name) from None
        raise self._told(wire.unknown(self._lookup.subject), "")

    def _told(self, fault: Fault, server: str) -> Fault:
        uri = self._lookup.subject if self._lookup.method == "resources/read" else None
        return wire.passed_on(fault, server, modern=self._ask is None, uri=uri)

    async def _request(self, shelf: Shelf, params: Item) -> Item:
        lookup, can = self._lookup, shelf.capabilities
        if lookup.method == "completion/complete" and can and "completions" not in can:
            return _NO_COMPLETION
        limit = asyncio.timeout(self._left_s)
        ask = None if self._ask is None else partial(self._asked, shelf, limit, self._ask)
        try:
            async with limit:
                return await shelf.request(lookup.method, params, lookup.caller, ask)
        except TimeoutError:
            within = f"within {self._site.settings.ceiling_s:g} s (raise ceiling_s)"
            text = f"server {shelf.name} did not answer {lookup.method} {within}"
            raise Fault(INTERNAL_ERROR, text) from None
        except (AfootError, OSError) as error:
            raise Fault(INTERNAL_ERROR, f"server {shelf.name}: {error}") from None
        finally:
            self._left_s = max(0.0, (limit.when() or 0.0) - asyncio.get_running_loop().time())

    async def _asked(self, shelf: Shelf, limit: asyncio.Timeout, ask: Ask, question: Question) -> Answer:
        """What the caller says to a server that asks in the middle; the clock stands still meanwhile (C6)."""
        if question.to == "operator":  # it may belong to somebody else's call
            return Answer("decline", by="engine")
        method, body = messages.question(question)
        loop = asyncio.get_running_loop()
        self._asking += 1
        if self._asking == 1:
            self._left_s = (limit.when() or 0.0) - loop.time()
            limit.reschedule(None)
        try:
            asked: dict[str, Item] = {question.key: {"method": method, "params": body}}
            given = await _ask_all(self._site, self._lookup, shelf, asked, ask)
            return messages.answer(question, Raw(messages.encode(given[question.key])), self._lookup.caller)
        finally:
            self._asking -= 1
            if not self._asking:
                with suppress(RuntimeError):  # the request is over, and its clock with it
                    limit.reschedule(loop.time() + self._left_s)


async def _wait(site: Site, task: asyncio.Task[bytes], outlet: Outlet, bell: Bell) -> None:
    clock, settings = site.engine.clock, site.settings
    pause = settings.sse_after_s
    while not (task.done() or bell.cracked or outlet.gone):
        timer = clock.at(clock.now() + pause, bell.ring)
        await bell.wait()
        timer.cancel()
        if site.engine.closing is not None:
            return
        if not (task.done() or bell.cracked or outlet.gone):
            await outlet.keep_alive()
            pause = settings.keepalive_s


def _closing(site: Site) -> bytes:
    raise Fault(INTERNAL_ERROR, site.engine.closing or "the gateway is shutting down", status=503)


def _resumed(site: Site, lookup: Lookup) -> tuple[list[tuple[Shelf, str]], str | None]:
    """Whose round a retry belongs to, and the server's own state; raises Fault."""
    slip = bookmark.unseal_slip(lookup.state or "", site.key, site.engine.clock.now())
    bookmark.match(slip, lookup.caller, lookup.digest())
    shelf = site.library.get(slip.server)
    if shelf is None:
        raise Fault(INVALID_PARAMS, f"params.requestState: server {slip.server} is not there any more")
    names = [name for one, name in site.library.find(lookup) if one is shelf]
    return [(shelf, names[0] if names else lookup.subject)], slip.state


async def _ask_all(site: Site, lookup: Lookup, shelf: Shelf, asked: dict[str, Item], ask: Ask) -> Item:
    """The caller's answers; raises Fault if it cannot be asked, or does not answer in time."""
    if lacking := wire.lacking(asked, lookup.capabilities):
        names = ", ".join(sorted(lacking))
        text = f"server {shelf.name} asks for what this client did not offer at initialize: {names}"
        raise Fault(INTERNAL_ERROR, text, status=200)
    answer_s = site.settings.answer_s
    try:
        async with asyncio.timeout(answer_s):
            given = await asyncio.gather(
                *(ask(str(one["method"]), one.get("params") or {}) for one in asked.values())
            )
    except TimeoutError:
        text = f"server {shelf.name} asked the client, which did not answer within {answer_s:g} s (answer_s)"
        raise Fault(INTERNAL_ERROR, text, status=200) from None
    return dict(zip(asked, given, strict=True))


def _requests(shelf: Shelf, result: Item) -> dict[str, Item]:
    try:
        return wire.requests(result)
    except Fault as fault:
        raise Fault(INTERNAL_ERROR, f"server {shelf.name}: {fault.message}", status=200) from None
