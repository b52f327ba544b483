"""Arguments with countless mistakes: the error names some of them, and nobody else waits for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.loop_passes import MEASURED_LOOP, LoopPasses
from tests.e2e.gateway import Gateway, serving
from tests.e2e.raw_client import Http, call

TOOLS = Path(__file__).with_name("strict_tools.py")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that measures its loop."""
    folder = tmp_path_factory.mktemp("strict")
    with serving(folder, tools=[TOOLS, MEASURED_LOOP]) as started:
        yield started


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("by_schema", {"numbers": ["a"] * 200_000}),
        ("by_schema", {f"{number:x}": 0 for number in range(80_000)}),
        # pydantic needs 0.4 us for each mistake, whatever is done with them.
        ("add", {f"{number:x}": 0 for number in range(25_000)}),
        ("sum_up", {"numbers": ["a"] * 50_000}),
    ],
    ids=["wrong items by a schema", "unknown names by a schema", "unknown names", "wrong items"],
)
def test_countless_mistakes_keep_nobody_waiting(
    gateway: Gateway, tool: str, arguments: dict[str, object]
) -> None:
    """E4, H8: up to a megabyte of arguments, none of which fits."""
    passes = LoopPasses(gateway)
    with Http(gateway.url) as client, passes:
        answer = client.ask(call(tool, arguments))
    assert answer["result"]["isError"] and len(str(answer)) < 10_000
    passes.check()
