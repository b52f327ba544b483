"""Callers that cannot wait, on their wires: by what they are known, and what they are offered."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.serve.fake_gateway import faked, nap, site_of
from tests.serve.mcp.handle_requests import LASTING, sleeping
from tests.serve.raw_transports import Pipe, Web, call, modern, older

INFO = "io.modelcontextprotocol/clientInfo"
ZED: dict[str, Any] = {INFO: {"name": "Zed", "version": "1"}}
HURRIED: dict[str, Any] = {"dev.afoot/budget": {"wait_s": 9}}
NOBODY: dict[str, Any] = {}


@faked
async def test_a_client_is_known_by_its_name_on_every_request() -> None:
    """H5: on 2026-07-28 it stands in the request, over HTTP and on a pipe."""
    async with site_of(sleeping(50), limits=LASTING) as gateway:
        web, pipe = Web(gateway), Pipe(gateway)
        pipe.put(call(capabilities={}, **ZED))
        over_http = await web.ask(call(capabilities={}, **ZED))
        await asyncio.sleep(1)
        for found in (over_http.messages[-1], pipe.said[-1]):
            assert "afoot_call" in found["result"]["structuredContent"]
        assert 45 <= over_http.chunks[-1][0] < 46
        await pipe.close()


@faked
@pytest.mark.parametrize("key", ["idle_s", "left_s", "wait_s"])
@pytest.mark.parametrize("value", [-1, -0.001, "1", "HUGE"])
async def test_a_budget_that_is_none_is_refused(key: str, value: object) -> None:
    """E4, C3, H5: negative or not finite; the field is named, and nothing runs."""
    async with site_of(nap) as gateway:
        web = Web(gateway)
        meta: dict[str, Any] = {"dev.afoot/budget": {key: value}}
        for message in (call(**meta), older(**meta)):
            if "protocolVersion" not in str(message):
                await web.shake_hands()
            body = msgspec.json.encode(message).replace(b'"HUGE"', b"1e999")
            named = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "tool"}
            found = await web.ask(body, **(named if "protocolVersion" in str(message) else {}))
            error = found.messages[-1]["error"]
            assert error["code"] == -32602 and f"dev.afoot/budget.{key}" in error["message"]
        assert not gateway.engine.calls()


@faked
async def test_a_client_info_that_is_none_is_refused() -> None:
    """E4: the field is named."""
    async with site_of(nap) as gateway:
        found = await Web(gateway).ask(call(**{INFO: "Zed"}))
        assert INFO in found.messages[0]["error"]["message"]


@faked
async def test_only_who_cannot_wait_is_offered_the_three_tools() -> None:
    """H5: and every tool may end in a handle for it."""
    async with site_of(nap) as gateway:
        web, pipe = Web(gateway), Pipe(gateway)
        for meta, more in ((ZED, 3), (HURRIED, 3), (NOBODY, 0)):
            message = modern("tools/list", **meta)
            listed = (await web.ask(message)).messages[0]["result"]
            assert len(listed["tools"]) == 1 + more and listed["cacheScope"] == "private"
            assert (await pipe.ask(message))["result"]["tools"] == listed["tools"]
        await pipe.close()
