"""Dependencies of isolated tools: they run in the child, as their tool does."""

import os
from pathlib import Path
from typing import Final

import msgspec
import pytest

from afoot import Gateway

SOURCE: Final = """
import os
from pathlib import Path
from typing import Annotated

import afoot
from afoot import Context, Depends

STORY = Path(__file__).with_suffix(".story")


async def number(ctx: Context) -> int:
    return os.getpid()


def opened(pid: Annotated[int, Depends(number)]):
    yield pid
    STORY.write_text("closed")


@afoot.tool(isolate=True)
def plain(pid: Annotated[int, Depends(opened)], ctx: Context) -> list[int]:
    return [pid, os.getpid()]


@afoot.tool(isolate=True)
async def awaited(pid: Annotated[int, Depends(opened)]) -> list[int]:
    return [pid, os.getpid()]
"""


@pytest.mark.parametrize("tool", ["plain", "awaited"])
async def test_an_isolated_tool_has_its_dependencies_in_its_child(tmp_path: Path, tool: str) -> None:
    """F4, G1: sync and async, and it cleans up there."""
    file = tmp_path / "tools.py"
    file.write_text(SOURCE)
    async with Gateway(str(file)) as gateway:
        call = await gateway.call(tool)
    assert call.end and call.end.result, call.end
    theirs, own = msgspec.json.decode(call.end.result.structured)["result"]
    assert theirs == own != os.getpid()
    assert file.with_suffix(".story").read_text() == "closed"
