"""The provider of tabs as the contract suite sees it: the tools of one origin, by the page's own names."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from afoot.core.ports import RunnerStart, Tool, Work
from afoot.providers.browser.provider import BrowserProvider
from afoot.providers.browser.tools.names import name_stem, tool_name
from tests.providers.fake_run import decoded


class Inner:
    """A view of a provider, and nothing else: `asks` says that its tools have no way to ask questions."""

    asks = False

    def __init__(self, browser: BrowserProvider, origin: str) -> None:
        self.browser, self._stem = browser, name_stem(origin)

    @property
    def name(self) -> str:
        """The provider's."""
        return self.browser.name

    def tools(self) -> Sequence[Tool]:
        """The origin's tools."""
        before = tool_name(self._stem, "x")[:-1]
        return [_renamed(one, before) for one in self.browser.tools() if one.name.startswith(before)]

    def prepare(self, tool: str, arguments: Raw) -> Work:
        """As the provider's, by the page's name."""
        return self.browser.prepare(tool_name(self._stem, tool), arguments)

    def start(self, tool: str, caller: str) -> RunnerStart | None:
        """As the provider's, by the page's name."""
        return self.browser.start(tool_name(self._stem, tool), caller)


def _renamed(tool: Tool, before: str) -> Tool:
    name = tool.name.removeprefix(before)
    definition = Raw(msgspec.json.encode({**decoded(tool.definition), "name": name}))
    return replace(tool, name=name, definition=definition)
