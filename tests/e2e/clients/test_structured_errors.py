"""Errors in structured content, for hosts whose model reads nothing else; clients check it by the schema."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client

from tests.e2e.clients.test_typescript_1 import RUN_S, modules, node
from tests.e2e.gateway import Gateway, serving

TOOLS: Final = Path(__file__).with_name("failing_tools.py")
NAMES: Final = ("fail_with_schema", "fail_plainly")
CLIENTS: Final = ("TypeScript 1", "TypeScript 2", "Python legacy", "Python 2026-07-28")
Seen = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose clients have no limit, so that their schemas are the tools' own."""
    with serving(tmp_path_factory.mktemp("plain"), tools=[TOOLS]) as started:
        yield started


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose clients have a limit, so that their schemas are widened."""
    with serving(tmp_path_factory.mktemp("limited"), {"caller_limit_s": 60}, tools=[TOOLS]) as started:
        yield started


def results(client: str, gateway: Gateway) -> Seen:
    """The result of each tool, or the error that the client raised in its place."""
    kind, version = client.split()
    if kind == "Python":
        return asyncio.run(python_results(version, gateway))
    script = Path(__file__).parents[1] / "failing.mjs"
    plan = {"url": gateway.url, "sdk": int(version), "tools": NAMES}
    done = subprocess.run(
        [node(), str(script), str(modules()), json.dumps(plan)],
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: Seen = json.loads(done.stdout)
    return found


async def python_results(mode: str, gateway: Gateway) -> Seen:
    """The results that the Python client gives."""
    async with Client(gateway.url, mode=mode) as client:
        await client.list_tools()
        found = {name: await client.call_tool(name, {}) for name in NAMES}
        return {name: one.model_dump(by_alias=True, exclude_none=True) for name, one in found.items()}


def is_whole(result: dict[str, Any]) -> bool:
    """Whether the text of an error is in its structured content, with how far the call got."""
    text = result["content"][0]["text"]
    told = {"afoot_error": "not_found", "text": text}
    return result["structuredContent"] == told and "no such page. It had got to 1/2: half way" in text


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_of_a_tool_without_a_schema_is_in_the_structured_content(
    client: str, plain: Gateway
) -> None:
    """F7, E2: there is no schema that it could fail to meet."""
    assert is_whole(results(client, plain)["fail_plainly"])


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_of_a_tool_with_a_schema_is_text_alone_for_a_client_that_has_that_schema(
    client: str, plain: Gateway
) -> None:
    """F7: version 1 of the TypeScript SDK checks errors, too; hosts show the text if nothing is beside it."""
    result = results(client, plain)["fail_with_schema"]
    assert "no such page" in result["content"][0]["text"] and "structuredContent" not in result


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_is_in_the_structured_content_where_the_schema_was_widened(
    client: str, limited: Gateway
) -> None:
    """F7, H5: the schema of a client with a limit allows handles and errors; every client takes it."""
    seen = results(client, limited)
    assert all(is_whole(seen[name]) for name in NAMES), seen
