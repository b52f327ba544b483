"""A server behind HTTP that goes away during a call, and comes back: a safe call waits for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import Raw

from afoot.config.tables import Server
from afoot.core.facts import Limits, Started
from afoot.engine.catalog import Catalog
from afoot.engine.engine import Engine, Submission
from afoot.providers.upstream import reconnect
from afoot.providers.upstream.provider import Upstream
from afoot.store.memory import MemoryJournal
from tests.engine.approval.reviewers import asked, says, told
from tests.engine.fake_engine import facts, over
from tests.providers.upstream import raw_http_server
from tests.providers.upstream.raw_http_server import Asked, Reply, site, text
from tests.providers.upstream.transport.test_http import handshake, modern

GO = Submission("go", Raw(b"{}"), "session:1", can_ask=True)
ERAS = {"2025-11-25": handshake, "2026-07-28": modern}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests wait shortly between starts."""
    monkeypatch.setattr(reconnect, "BACK_OFF_S", (0.01, 0.05))


@asynccontextmanager
async def gateway(url: str, era: str) -> AsyncIterator[Engine]:
    """An engine in front of one server, whose tools are trusted to be read-only."""
    catalog = Catalog()
    upstream = Upstream("site", Server(url=url, era=era, read_only=["go"]), Limits(start_s=20))
    upstream.listen(lambda *_: catalog.put(upstream))
    async with Engine(MemoryJournal(), catalog) as engine:
        try:
            await upstream.open()
            yield engine
        finally:
            await upstream.close()


@pytest.mark.parametrize("era", list(ERAS))
async def test_a_safe_call_waits_for_a_server_that_went_away(era: str) -> None:
    """U4: not only for as long as three attempts to connect take."""
    called = asyncio.Event()

    async def leaves(asked: Asked, reply: Reply) -> None:
        if not await ERAS[era](asked, reply):
            called.set()
            await asyncio.Event().wait()

    async def answers(asked: Asked, reply: Reply) -> None:
        if not await ERAS[era](asked, reply):
            await reply.json(text(asked, "back"))

    async with AsyncExitStack() as stack:
        async with site(leaves) as place:
            engine = await stack.enter_async_context(gateway(place.url, era))
            live = engine.submit(GO)
            await asyncio.wait_for(called.wait(), 10)
        await asyncio.sleep(0.5)  # far longer than three attempts take here
        assert live.call.end is None and live.call.attempt == 1
        async with site(answers, urlsplit(place.url).port or 0):
            assert told(await asyncio.wait_for(over(engine, live), 10)) == ("ok", "")
            assert [fact.attempt for fact in facts(live, Started)] == [1, 2]
            await stack.aclose()


async def test_a_server_that_comes_back_with_another_tool_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A7: over HTTP nothing but the broken stream of the call shows that another one answers there now."""
    has_died = False

    async def answer(asked: Asked, reply: Reply) -> None:
        nonlocal has_died
        if await modern(asked, reply):
            return
        if has_died:
            await reply.json(text(asked, "done"))
        else:
            has_died = True
            hints: dict[str, Any] = {"destructiveHint": True}
            monkeypatch.setattr(
                raw_http_server, "TOOLS", [{**raw_http_server.TOOLS[0], "annotations": hints}]
            )

    async with site(answer) as place, gateway(place.url, "2026-07-28") as engine:
        engine.policy.seen = engine.clock.now()
        live = engine.submit(GO)
        name = await asyncio.wait_for(asked(live), 10)
        assert live.call.attempt == 1 and len(place.calls("tools/call")) == 1
        engine.answer(name, says("run"))
        assert told(await asyncio.wait_for(over(engine, live), 10))[0] == "ok"
