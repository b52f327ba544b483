"""A tool knows who calls it, and only those with its scopes may."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.e2e.access.test_tokens import ask, issuing, signed, token
from tests.e2e.gateway_with_servers import Front, fronting
from tests.e2e.raw_client import Http, call, modern
from tests.serve.api_client import Api

TOOLS: Final = Path(__file__).with_name("caller_tools.py")
SECRET: Final = "xyzzy-plugh-31415926"
NAMED: Final = {"io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "3.1"}}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    settings = {"tool_headers": "X-Tenant,x-api-key"}
    with fronting(tmp_path_factory.mktemp("callers"), {}, settings, own=[TOOLS]) as started:
        yield started


@pytest.mark.parametrize("tool", ["who", "who_in_a_thread", "who_in_a_child"])
def test_a_tool_knows_its_caller_wherever_it_runs(gateway: Front, tool: str) -> None:
    """F1: its token's name and scopes, its client, and the headers that are allowed; never the token."""
    secret = token(gateway, f"ada-{tool}", "--scope", "call,billing")
    with Http(gateway.url) as http:
        headers = {"authorization": f"Bearer {secret}", "x_tenant": "acme", "x_other": "no", "cookie": "a=b"}
        told = http.ask(call(tool, **NAMED), **headers)["result"]["structuredContent"]
    assert told == {
        "id": f"token:ada-{tool}", "name": "editor", "version": "3.1", "scopes": ["billing", "call"],
        "team": None, "surface": "mcp-http", "headers": {"x-tenant": "acme"},
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("way", ["mcp-http", "mcp-stdio", "mcp-connect"])
def test_a_tool_knows_the_way_by_which_its_caller_came(gateway: Front, mode: str, way: str) -> None:
    """F1: in both eras; a client says its name, and nobody else's scopes are on it."""
    command = gateway.bridge() if way == "mcp-connect" else gateway.command("--stdio")
    words = [":memory:" if one == str(gateway.store) else one for one in command]  # a store has one gateway
    process = StdioServerParameters(command=words[0], args=words[1:], env=gateway.environment)

    async def talk() -> tuple[Any, set[str]]:
        async with Client(gateway.url if way == "mcp-http" else process, mode=mode) as client:
            told = (await client.call_tool("who", {})).structured_content
            return told, {one.name for one in (await client.list_tools()).tools}

    told, listed = asyncio.run(asyncio.wait_for(talk(), 30))
    assert told is not None and told["surface"] == way and told["name"] == "mcp"
    # The one who started the process, or who holds the operator's token, may call everything.
    assert ("refund" in listed) == (way != "mcp-http")


def test_a_tool_is_not_run_without_its_scope_and_not_listed(gateway: Front) -> None:
    """F1: the error names the scope, and how to come again with it; whoever has it is served."""
    without, billing = token(gateway, "plain"), token(gateway, "biller", "--scope", "call,billing")
    for secret, may in ((without, False), (billing, True)):
        status, told, challenge = ask(gateway, call("refund", {"order": 7}), secret)
        listed = ask(gateway, modern("tools/list"), secret)[1]["result"]["tools"]
        assert ("refund" in {one["name"] for one in listed}) == may
        if may:
            assert told["result"]["content"][0]["text"] == "refunded 7"
        else:
            assert (status, told["error"]["data"]["dev.afoot/error"]["code"]) == (403, "insufficient_scope")
            assert "the scope `billing` is needed for refund" in told["error"]["message"]
            assert challenge == 'Bearer error="insufficient_scope", scope="call billing"'
    callers = [one["caller"] for one in Api(gateway).get("/api/calls?tool=refund").body["calls"]]
    assert [one for one in callers if one.startswith("token:")] == ["token:biller"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_is_told_which_scope_is_missing(gateway: Front, mode: str) -> None:
    """F1: nobody without a token has a scope."""

    async def talk() -> None:
        async with Client(gateway.url, mode=mode) as client:
            with pytest.raises(MCPError, match="`billing` is needed for refund"):
                await client.call_tool("refund", {"order": 7})

    asyncio.run(asyncio.wait_for(talk(), 30))


def test_the_api_refuses_a_call_without_the_scope_too(gateway: Front) -> None:
    """F1: the operator needs none."""
    api = Api(gateway)
    assert api.ended(api.start("refund", order=1))["outcome"] == "ok"
    api.token = token(gateway, "caller-of-the-api")
    refused = api.post("/api/calls", {"tool": "refund", "arguments": {"order": 1}})
    assert (refused.status, refused.error["scopes"]) == (403, ["billing"])


def test_a_secret_header_is_kept_and_shown_nowhere(gateway: Front) -> None:
    """F1, S4: a tool that tells it tells nobody; the caller's token and claims are not told either."""
    secret = token(gateway, "tattler")
    with Http(gateway.url) as http:
        http.ask(call("tattle"), authorization=f"Bearer {secret}", x_api_key=SECRET)
    api = Api(gateway)
    found = api.get("/api/calls?tool=tattle").body["calls"][0]["id"]
    facts = json.dumps(api.send("GET", f"/api/export?call={found}", None, {}).body)
    assert "the key is [redacted]" in facts and "with key [redacted]" in facts
    kept = facts + gateway.errors.read_text() + json.dumps(api.get(f"/api/calls/{found}").body)
    assert SECRET not in kept and secret not in kept
    assert SECRET.encode() not in gateway.store.read_bytes()


def test_claims_of_an_issuers_token_reach_the_tool(tmp_path: Path) -> None:
    """F1: and a scope with the prefix of the gateway is a scope of tools."""
    with (
        issuing() as issuer,
        fronting(tmp_path, {}, {"access": {"required": True, "issuer": issuer}}, [TOOLS]) as one,
    ):
        bearer = signed(issuer, one.url, team="blue", scope="afoot:call afoot:billing other admin")
        told = ask(one, call("who"), bearer)[1]["result"]["structuredContent"]
        assert (told["id"], told["team"], told["scopes"]) == ("oauth:ada", "blue", ["billing", "call"])
        assert ask(one, call("refund", {"order": 1}), bearer)[0] == 200
        plain = signed(issuer, one.url)
        assert 'scope="afoot:call afoot:billing"' in ask(one, call("refund", {"order": 1}), plain)[2]
