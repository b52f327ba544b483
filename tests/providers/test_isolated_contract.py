"""The provider contract, kept by functions in child processes."""

from collections.abc import Callable, Sequence

import pytest
from msgspec import Raw

from afoot.core.ports import Provider, Start, Tool, Work
from afoot.providers.function import FunctionProvider
from afoot.providers.isolated.children import Children
from tests.providers import isolated_tools as tools
from tests.providers.contract import *  # noqa: F403

CONTRACT = [tools.echo, tools.count, tools.crash, tools.missing, tools.hang, tools.confirm]


class InChildren:
    """The provider with children of its own, opened and closed with them."""

    def __init__(self) -> None:
        self._children = Children()
        self._provider = FunctionProvider(CONTRACT, children=self._children)
        self.name = self._provider.name

    async def open(self) -> None:
        self._children.follow(self._provider.sources())

    async def close(self) -> None:
        await self._children.__aexit__()

    def tools(self) -> Sequence[Tool]:
        return self._provider.tools()

    def prepare(self, tool: str, arguments: Raw) -> Work:
        return self._provider.prepare(tool, arguments)

    def start(self, tool: str, caller: str) -> Start | None:
        return self._provider.start(tool, caller)


@pytest.fixture
def provider() -> Callable[[], Provider]:
    return InChildren
