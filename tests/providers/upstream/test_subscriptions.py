"""What servers tell of changes, in the way of each era; and requests that are no tool calls."""

import asyncio
from typing import Any

import pytest

from afoot.config.settings import Server
from afoot.core.facts import Answer, Question
from afoot.providers.upstream import subscriptions
from afoot.providers.upstream.provider import LISTING
from tests.providers.fake_run import accept, decoded, until
from tests.providers.upstream.raw_http_server import TOOLS, Asked, Reply, site
from tests.providers.upstream.started_servers import opened, raw

OFFERED = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests do not wait between attempts."""
    monkeypatch.setattr(subscriptions, "RELISTEN_S", (0.01, 0.02))


async def modern(asked: Asked, reply: Reply, listened: Any) -> None:
    """A server of 2026-07-28 that tells of changes."""
    results: dict[str, dict[str, Any]] = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": OFFERED},
        "tools/list": {"tools": TOOLS},
        "resources/list": {"resources": []},
        "resources/templates/list": {"resourceTemplates": []},
    }
    if asked.method == "initialize":
        error = {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}}
        await reply.json({"jsonrpc": "2.0", "id": asked.body["id"], "error": error}, 400)
    elif asked.method == "subscriptions/listen":
        await reply.stream()
        await reply.event(notice("subscriptions/acknowledged"))
        await listened(asked, reply)
    else:
        await reply.json({"jsonrpc": "2.0", "id": asked.body["id"], "result": results[asked.method]})


def notice(method: str, **params: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


async def test_notices_come_on_a_stream_that_is_held_and_held_again() -> None:
    """U5: one long request on 2026-07-28; a changed list is asked for, and a stream that ends is renewed."""

    async def listened(asked: Asked, reply: Reply) -> None:
        if len(place.calls("subscriptions/listen")) == 1:
            await reply.event(notice("tools/list_changed"))
        else:
            await asyncio.sleep(30)

    async with site(lambda asked, reply: modern(asked, reply, listened)) as place:
        async with opened(Server(url=place.url)):
            await until(lambda: len(place.calls("subscriptions/listen")) > 1)
            await until(lambda: len(place.calls("tools/list")) > 1)
            wanted = [one.body["params"]["notifications"] for one in place.calls("subscriptions/listen")]
            assert wanted[0] == {"toolsListChanged": True}


async def test_a_resource_that_is_subscribed_to_is_told_of() -> None:
    """U5: another wish is another stream, and the old one is closed."""

    async def listened(asked: Asked, reply: Reply) -> None:
        for uri in asked.body["params"]["notifications"].get("resourceSubscriptions", ()):
            await reply.event(notice("resources/updated", uri=uri))
        await asyncio.sleep(30)

    async with site(lambda asked, reply: modern(asked, reply, listened)) as place:
        async with opened(Server(url=place.url)) as upstream:
            told: list[tuple[str, str | None]] = []
            upstream.listen(lambda kind, uri: told.append((kind, uri)))
            await upstream.subscribe("test://a")
            await until(lambda: told)
            assert told == [("resource", "test://a")]
            await upstream.unsubscribe("test://a")
            await until(lambda: _last(place.calls("subscriptions/listen")) == {"toolsListChanged": True})


def _last(asked: list[Asked]) -> dict[str, Any]:
    found: dict[str, Any] = asked[-1].body["params"]["notifications"]
    return found


async def test_a_subscription_outlives_the_server() -> None:
    """U4, U5: after a restart it is asked for again."""
    async with opened(raw("2025")) as upstream:
        told: list[tuple[str, str | None]] = []
        upstream.listen(lambda kind, uri: told.append((kind, uri)))
        await upstream.subscribe("test://a")
        await until(lambda: len(told) == 1)
        connection = upstream._reconnecting(LISTING).connection
        assert connection is not None
        connection.mark_lost("it is gone")
        await upstream.open()
        await until(lambda: len(told) == 2)
        assert told == [("resource", "test://a")] * 2


async def test_a_listener_that_fails_hurts_nobody() -> None:
    """P3: the others are told."""

    def broken(kind: str, uri: str | None) -> None:
        raise RuntimeError("broken")

    async with opened(raw("2025")) as upstream:
        told: list[str] = []
        upstream.listen(broken)
        forget = upstream.listen(lambda kind, uri: told.append(kind))
        await upstream.subscribe("test://a")
        await until(lambda: told)
        forget()
        forget()


async def test_a_prompt_may_ask_too() -> None:
    """U5, Q3: nested before 2026-07-28, where whoever asked for it answers; else the round is passed on."""
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return accept({"name": "me"})

    async with opened(raw("2025")) as upstream:
        found = await upstream.request("prompts/get", {"name": "p"}, ask=ask)
        assert "me" in found["content"][0]["text"]
        assert [(one.kind, one.message) for one in asked] == [("form", "who?")]
        refused = await upstream.request("prompts/get", {"name": "p"})
        assert "nobody to ask" in refused["content"][0]["text"]
    async with opened(raw("2026")) as upstream:
        found = await upstream.request("prompts/get", {"name": "p"})
        assert found["resultType"] == "input_required"
        again = {"name": "p", "inputResponses": {"it": {"action": "accept"}}}
        assert "accept" in (await upstream.request("prompts/get", again))["content"][0]["text"]
        assert decoded(asked[0].body) is None


async def test_what_changed_while_nobody_listened_is_found() -> None:
    """U5: a stream of notices that ended may have missed some."""
    tools = list(TOOLS)

    async def listened(asked: Asked, reply: Reply) -> None:
        if len(place.calls("subscriptions/listen")) == 1:
            later.append({"name": "new", "inputSchema": {}})
        else:
            await asyncio.sleep(30)

    async def answer(asked: Asked, reply: Reply) -> None:
        if asked.method == "tools/list":
            result = {"tools": [*tools, *later]}
            await reply.json({"jsonrpc": "2.0", "id": asked.body["id"], "result": result})
        else:
            await modern(asked, reply, listened)

    later: list[dict[str, Any]] = []
    async with site(answer) as place, opened(Server(url=place.url)) as upstream:
        await until(lambda: "new" in [tool.name for tool in upstream.tools()])
