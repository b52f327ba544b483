"""A watcher sees facts in order, also while the history can neither be written nor read (H2)."""

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from msgspec import Raw

from afoot.core.facts import Entry
from afoot.core.ports import Run
from afoot.engine.engine import Submission
from afoot.errors import StoreError
from afoot.serve.access.principal import OPERATOR_PRINCIPAL
from afoot.serve.api.live.event_feed import events
from afoot.serve.api.request import ApiRequest
from afoot.serve.mcp.asgi import HttpResponse
from afoot.wire.framing import EventParser
from tests.engine.fake_engine import Journalist
from tests.serve.fake_gateway import faked, site_of


class Unreadable(Journalist):
    """A journal that cannot be read behind a position while it fails."""

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """Raise while it fails, as SQLite does where its index cannot grow."""
        if self.failing and limit > 1:
            raise StoreError("the disk is full")
        return await super().since(position, limit)


class SlowToRead(Journalist):
    """A journal that takes a while to be read: what is written meanwhile is not in its answer."""

    takes_s = 0.0

    async def since(self, position: int, limit: int = 1000) -> list[tuple[int, Entry]]:
        """Read now, and answer later."""
        found = await super().since(position, limit)
        if self.takes_s and limit > 1:
            await asyncio.sleep(self.takes_s)
        return found


class Watching:
    """A watcher's connection, and the numbers of the facts that came over it."""

    def __init__(self) -> None:
        self._parser = EventParser()
        self.numbers: list[int] = []
        self.without_place: list[int] = []  # facts that a watcher who resumes is sent once more

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Take in what the gateway sends."""
        for event in self._parser.feed(message.get("body", b"")):
            if event.event == "changes":
                body = json.loads(event.data)
                numbers = [fact["seq"] for fact in body["facts"]]
                self.numbers += numbers
                if not event.id and body["degraded"] is None:
                    self.without_place += numbers

    async def receive(self) -> dict[str, Any]:
        """The watcher stays."""
        await asyncio.Event().wait()
        raise AssertionError


@faked
async def test_facts_of_the_history_come_before_those_of_memory() -> None:
    """H2: a watcher that has not read them all waits until it can; else the older ones would be lost."""
    journal = Unreadable()

    async def works(run: Run) -> str:
        await asyncio.sleep(5)
        return "done"

    async with site_of(works, journal=journal) as gateway:
        gateway.engine.submit(Submission("tool", Raw(b"{}")))
        await asyncio.sleep(1)  # its first facts are in the history
        watching = Watching()
        scope = {"query_string": f"after={journal.epoch}:0".encode(), "headers": list[tuple[bytes, bytes]]()}
        reply = HttpResponse(watching.send, 1.0)
        request = ApiRequest(gateway, scope, watching.receive, reply, {}, OPERATOR_PRINCIPAL)
        stream = asyncio.create_task(events(request))
        journal.failing = True
        await asyncio.sleep(8)  # it ends while the disk is full
        assert gateway.engine.recorder.degraded and watching.numbers == []
        journal.failing = False
        await asyncio.sleep(60)
        stream.cancel()
    assert watching.numbers == [1, 2, 3, 4]


@faked
async def test_facts_that_were_written_meanwhile_come_with_their_place() -> None:
    """H2: the history is back while a watcher reads it; the facts of memory have a place in it now."""
    journal = SlowToRead()

    async def works(run: Run) -> str:
        await asyncio.sleep(5)
        return "done"

    async with site_of(works, journal=journal) as gateway:
        gateway.engine.submit(Submission("tool", Raw(b"{}")))
        await asyncio.sleep(1)
        watching = Watching()
        scope = {"query_string": f"after={journal.epoch}:0".encode(), "headers": list[tuple[bytes, bytes]]()}
        reply = HttpResponse(watching.send, 1.0)
        request = ApiRequest(gateway, scope, watching.receive, reply, {}, OPERATOR_PRINCIPAL)
        stream = asyncio.create_task(events(request))
        await asyncio.sleep(1)
        assert watching.numbers == [1, 2]
        journal.takes_s = 3
        journal.failing = True
        await asyncio.sleep(3.5)  # the call ends during one read, and the next one begins
        assert gateway.engine.recorder.degraded
        journal.failing = False
        await asyncio.sleep(2)
        assert gateway.engine.recorder.degraded is None
        journal.takes_s = 0
        await asyncio.sleep(60)
        stream.cancel()
    assert watching.numbers == [1, 2, 3, 4]
    assert watching.without_place == []
