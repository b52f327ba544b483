"""The provider contract, kept by functions in child processes."""

from collections.abc import Callable, Sequence

import pytest
from msgspec import Raw

from afoot.core.ports import Provider, RunnerStart, Tool, Work
from afoot.providers.functions.tool import FunctionProvider
from afoot.providers.isolation.pool import ChildPool
from tests.providers.isolation import isolated_tools as tools
from tests.providers.provider_contract import *  # noqa: F403

CONTRACT = [tools.echo, tools.count, tools.crash, tools.missing, tools.hang, tools.confirm]


class InChildren:
    """The provider with children of its own, opened and closed with them."""

    def __init__(self) -> None:
        self._children = ChildPool()
        self._provider = FunctionProvider(CONTRACT, pool=self._children)
        self.name = self._provider.name

    async def open(self) -> None:
        self._children.keep_ready(self._provider.sources())

    async def close(self) -> None:
        await self._children.__aexit__()

    def tools(self) -> Sequence[Tool]:
        return self._provider.tools()

    def prepare(self, tool: str, arguments: Raw) -> Work:
        return self._provider.prepare(tool, arguments)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        return self._provider.start(tool, caller)


@pytest.fixture
def provider() -> Callable[[], Provider]:
    return InChildren
