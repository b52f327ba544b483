"""A history of countless short calls: who looks at it keeps nobody waiting."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import json

from afoot.core.ports import CallOutline, CallQuery
from afoot.serve.access.principal import OPERATOR_PRINCIPAL
from afoot.serve.api.history import summary
from afoot.serve.api.request import ApiRequest
from afoot.serve.mcp.asgi import HttpResponse, Message
from afoot.store.outlines import MAX_OUTLINES
from tests.attack.upstream.test_floods import longest_work
from tests.serve.fake_gateway import nap, site_of

OTHERS_WAIT_S = 0.05


def outline(number: int) -> CallOutline:
    """A short call."""
    at = number / 100
    caller, tool = f"session:{number % 500}", f"tool{number % 20}"
    return CallOutline(f"{number:x}", tool, "local", caller, at, at, at + 1, "ok", "", "", 1.0, False)


async def summed_up(calls: Sequence[CallOutline]) -> tuple[dict[str, Any], float]:
    """The summary of such a history, and the longest work that others waited for."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError

    async def outlines(query: CallQuery) -> list[CallOutline]:
        return list(calls)

    async with site_of(nap) as gateway:
        patch = pytest.MonkeyPatch()
        patch.setattr(gateway.engine.journal, "outlines", outlines)
        reply = HttpResponse(send, 60.0)
        scope: dict[str, Any] = {"query_string": b"since=0&until=1000000", "headers": []}
        measuring = asyncio.create_task(longest_work())
        await asyncio.sleep(0)
        await summary.show(ApiRequest(gateway, scope, receive, reply, {}, OPERATOR_PRINCIPAL))
        await asyncio.sleep(0)  # the last pass counts, too
        measuring.cancel()
        patch.undo()
        body = b"".join(bytes(one.get("body", b"")) for one in sent)
        return json.decode(body), await measuring


def test_a_long_history_is_summed_up_beside_everybody_else() -> None:
    """V1, H8: anybody may have made these calls, and half a second of work is for one who looks."""
    calls = [outline(number) for number in reversed(range(MAX_OUTLINES))]
    found, work_s = asyncio.run(summed_up(calls))
    assert (found["calls"], len(found["tools"]), found["left_out"]) == (MAX_OUTLINES, 20, MAX_OUTLINES - 5000)
    assert work_s < OTHERS_WAIT_S
