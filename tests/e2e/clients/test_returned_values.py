"""Values of every kind, as the official client gets them: it checks each by the published schema."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client

from tests.e2e.gateway import Gateway, serving

TOOLS: Final = Path(__file__).with_name("value_tools.py")
STRUCTURED: Final[dict[str, Any]] = {
    "text": {"result": "plain text"},
    "number": {"result": 7},
    "names": {"result": ["a", "b"]},
    "place": {"city": "Bern", "metres": 540.0},
    "person": {"name": "Ada", "age": None},
}
KINDS: Final[dict[str, list[str]]] = {
    "image": ["image"],
    "audio": ["audio"],
    "file": ["text", "resource"],
    "nothing": [],
    "pages": ["text"],
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("values"), tools=[TOOLS]) as started:
        yield started


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_every_kind_of_value_reaches_the_official_client(gateway: Gateway, mode: str) -> None:
    """F7: a value that is published has its schema and its structured form; content has neither."""

    async def talk() -> None:
        async with Client(gateway.url, mode=mode) as client:
            listed = {one.name: one for one in (await client.list_tools()).tools}
            for name, value in STRUCTURED.items():
                found = await client.call_tool(name, {})
                assert found.structured_content == value and listed[name].output_schema is not None, name
                assert found.content[0].type == "text"
            for name, kinds in KINDS.items():
                found = await client.call_tool(name, {})
                assert listed[name].output_schema is None and found.structured_content is None, name
                assert [one.type for one in found.content] == kinds, name

    asyncio.run(asyncio.wait_for(talk(), 30))
